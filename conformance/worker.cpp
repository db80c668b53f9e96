#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <span>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <tenon/conformance/checklist.h>
#include <tenon/conformance/overlay.h>
#include <tenon/conformance/processes.h>
#include <tenon/conformance/report.h>
#include <tenon/conformance/subject.h>
#include <tenon/conformance/worker.h>
#include <tenon/conformance/worker_process.h>
#include <tenon/core/device.h>
#include <tenon/plugins/host/checked_api.h>
#include <tenon/plugins/host/host_version.h>

namespace tenon::conformance {

namespace {

using nlohmann::json;

class Channel {
 public:
  // `prints`: also that a check begins, as processes.h says.
  Channel(int pipe, bool prints) : pipe_(pipe), prints_(prints) {}
  void begin(json line, size_t check) const {
    if (prints_) std::cerr << kBeginning << std::flush;
    line["begin"] = check;
    say(line);
  }
  // Texts may hold any bytes, which JSON does not. What somebody else wrote before, without an end,
  // becomes a line of its own.
  void say(const json& line) const {
    const std::string text = "\n" + line.dump(-1, ' ', true, json::error_handler_t::replace) + "\n";
    for (size_t at = 0; at < text.size();) {
      const ssize_t n = write(pipe_, text.data() + at, text.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) _exit(3);  // nobody listens any more
      at += static_cast<size_t>(n);
    }
  }

 private:
  int pipe_;
  bool prints_;
};

// Where the answer of say_where goes.
int pipe_of_answers = -1;

// The handler of SIGTERM, which a plugin may also send. Whoever waits for an answer has waited long
// enough and ends this process, so that it stays where it is. A handler must not allocate.
void say_where(int signal, siginfo_t* info, void*) {
  if (info->si_code != SI_USER || info->si_pid != getppid()) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  char text[512];
  size_t used = 0;
  const auto add = [&](std::string_view part) {
    used += part.copy(text + used, std::min(part.size(), sizeof text - 8 - used));
  };
  add("\n");
  add(kInside);
  if (const auto* inside = plugins::InsidePlugin::current()) {
    add(inside->function());
    add(" of plugin ");
    add(inside->name());
  }
  for (char& c : std::span(text).subspan(1 + kInside.size(), used - 1 - kInside.size()))
    if (c < ' ' || c == '"' || c == '\\') c = '?';
  used += kInsideEnd.copy(text + used, kInsideEnd.size());
  text[used++] = '\n';
  [[maybe_unused]] const auto written = write(pipe_of_answers, text, used);
  for (;;) pause();
}

void answer_on(int pipe) {
  pipe_of_answers = pipe;
  struct sigaction action {};
  action.sa_sigaction = say_where;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTERM, &action, nullptr);
}

json with(json line, const char* key, const json& value) {
  line[key] = value;
  return line;
}

// A device that is lost, such as by work that did not end, computes nothing in this process any
// more: it fails whenever it is waited for. Each other failure that the check has not read is told
// once, and a device keeps fewer than these.
constexpr int kMaxUnreported = 1000;

bool is_lost(Device device) {
  for (int told = 0; told < kMaxUnreported; ++told) {
    try {
      synchronize(device);
      return false;
    } catch (const std::exception&) {
    }
  }
  return true;
}

std::string why_left_out(const Check& check, const Resumption& resumption) {
  const auto holds = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (holds(resumption.without, check.op))
    return "because checks of these operators had ended the process";
  if (holds(resumption.without_sections, check.section))
    return fmt::format("because checks of {} had not ended in time", check.section);
  return "";
}

// Returns false if the rest needs another process.
bool run_from(const Checklist& list, const Subject& subject, const Resumption& resumption,
              const Channel& channel) {
  OverlayWatch overlay(subject);
  for (size_t i = resumption.from; i < list.checks.size(); ++i) {
    const Check& check = list.checks[i];
    Result begun{
        check.section, check.op,        std::string(check.op.empty() ? "" : name_of(check.dtype)),
        check.name,    Status::skipped, ""};
    begun.detail = why_left_out(check, resumption);
    if (!begun.detail.empty()) {
      channel.say(with(to_json(begun), "end", i));
      continue;
    }
    channel.begin(to_json(begun), i);
    const Result result = overlay.result_of(check);
    bool lost = false;
    if (result.status != Status::passed)
      for (Device device : {subject.device, subject.reference}) lost |= is_lost(device);
    json ended = with(with(to_json(result), "lost", lost), "end", i);
    add_notes(ended, overlay.notes());
    channel.say(ended);
    if (lost) return false;
  }
  return true;
}

plugins::HostVersion host_named(const std::string& name) {
  if (name == "1.0") return plugins::HostVersion::v1_0();
  if (name == "1.1") return plugins::HostVersion::v1_1();
  if (name == "1.2") return plugins::HostVersion::v1_2();
  return plugins::HostVersion::newer();
}

int end_with_queued_work(const Options& options, const Subject& subject, const Channel& channel) {
  const std::string plugin(subject.overlay.empty() ? subject.device.type() : subject.overlay);
  const Check check{"joint", "", plugin, f32, [&] { queue_before_the_end(options, subject); }};
  const Result begun{"joint", "", "", plugin, Status::skipped, ""};
  channel.begin(to_json(begun), 0);
  channel.say(with(to_json(result_of(check)), "end", 0));
  channel.say({{"done", true}});
  if (options.end == "exit") std::exit(0);
  return 0;
}

}  // namespace

int run_checks(const Options& options, const std::vector<std::string>& command,
               const Resumption& resumption, int pipe) {
  // A process that a plugin starts would keep it open after the end of this one.
  fcntl(pipe, F_SETFD, FD_CLOEXEC);
  const Channel channel(pipe, !options.host.empty() || !options.end.empty());
  answer_on(pipe);
  try {
    if (!options.host.empty()) plugins::pretend_host_version(host_named(options.host));
    channel.say({{"opening", true}});
    Opened opened = open_subject(options);
    channel.say({{"opening", false}});
    if (!options.end.empty()) return end_with_queued_work(options, opened.subject, channel);
    opened.subject.refusals_of_unknown = refusals_of_unknown(opened.subject);
    // A process that pretends to have another host starts no others.
    const bool alone = !options.host.empty();
    const Listener listener{.alive =
                                [&] {
                                  channel.say({{"alive", true}});
                                },
                            .reading =
                                [&](const std::string& part) {
                                  channel.say({{"reading", part}});
                                }};
    const Checklist list =
        make_checklist(options, opened.subject, alone ? std::vector<std::string>() : command,
                       resumption, listener);
    channel.say({{"title", opened.description}, {"count", list.checks.size()}});
    if (resumption.from == 0)
      for (auto& result : list.known) channel.say(with(to_json(result), "known", true));
    if (!run_from(list, opened.subject, resumption, channel)) return 1;
    synchronize();
    channel.say({{"done", true}});
    return 0;
  } catch (const std::exception& e) {
    channel.say({{"error", e.what()}});
    return 1;
  }
}

}  // namespace tenon::conformance
