#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <tenon/conformance/checklist.h>
#include <tenon/conformance/processes.h>
#include <tenon/conformance/report.h>
#include <tenon/conformance/subject.h>
#include <tenon/conformance/worker.h>
#include <tenon/core/device.h>
#include <tenon/core/runtime/dispatch_stats.h>
#include <tenon/plugins/host/host_version.h>

namespace tenon::conformance {

namespace {

using nlohmann::json;

class Channel {
 public:
  explicit Channel(int pipe) : pipe_(pipe) {}
  // Texts may hold any bytes, which JSON does not.
  void say(const json& line) const {
    const std::string text = line.dump(-1, ' ', true, json::error_handler_t::replace) + "\n";
    for (size_t at = 0; at < text.size();) {
      const ssize_t n = write(pipe_, text.data() + at, text.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) _exit(3);  // nobody listens any more
      at += static_cast<size_t>(n);
    }
  }

 private:
  int pipe_;
};

json with(json line, const char* key, const json& value) {
  line[key] = value;
  return line;
}

bool has_run(const std::string& overlay) {
  const auto stats = dispatch_stats();
  return std::any_of(stats.runs.begin(), stats.runs.end(),
                     [&](auto& r) { return r.owner == overlay; });
}

// What passes without a run of the overlay's plans was computed by the plugin below it.
// The checks of the joint ask the overlay themselves.
Result result_with(const std::string& overlay, const Check& check) {
  if (overlay.empty() || check.section == "joint") return result_of(check);
  Check whole = check;
  bool used = false;
  whole.run = [&] {
    reset_dispatch_stats();
    check.run();
    synchronize();  // what is still queued is counted, too
    used = has_run(overlay);
  };
  Result result = result_of(whole);
  if (result.status != Status::passed || used) return result;
  result.status = Status::not_offered;
  result.detail = "no plan of the overlay was used";
  return result;
}

void run_from(const Checklist& list, const std::string& overlay, const Resumption& resumption,
              const Channel& channel) {
  for (size_t i = resumption.from; i < list.checks.size(); ++i) {
    const Check& check = list.checks[i];
    Result begun{
        check.section, check.op,        std::string(check.op.empty() ? "" : name_of(check.dtype)),
        check.name,    Status::skipped, ""};
    const auto& without = resumption.without;
    if (std::find(without.begin(), without.end(), check.op) != without.end()) {
      begun.detail = "because checks of these operators had ended the process";
      channel.say(with(to_json(begun), "end", i));
      continue;
    }
    channel.say(with(to_json(begun), "begin", i));
    channel.say(with(to_json(result_with(overlay, check)), "end", i));
  }
}

plugins::HostVersion host_named(const std::string& name) {
  if (name == "1.0") return plugins::HostVersion::v1_0();
  if (name == "1.1") return plugins::HostVersion::v1_1();
  return plugins::HostVersion::newer();
}

int end_with_queued_work(const Options& options, const Subject& subject, const Channel& channel) {
  const std::string plugin(subject.overlay.empty() ? subject.device.type() : subject.overlay);
  const Check check{"joint", "", plugin, f32, [&] { queue_before_the_end(options, subject); }};
  const Result begun{"joint", "", "", plugin, Status::skipped, ""};
  channel.say(with(to_json(begun), "begin", 0));
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
  const Channel channel(pipe);
  try {
    if (!options.host.empty()) plugins::pretend_host_version(host_named(options.host));
    const Opened opened = open_subject(options);
    if (!options.end.empty()) return end_with_queued_work(options, opened.subject, channel);
    // A process that pretends to have another host starts no others.
    const bool alone = !options.host.empty();
    const Checklist list =
        make_checklist(options, opened.subject, alone ? std::vector<std::string>() : command, [&] {
          channel.say({{"alive", true}});
        });
    const std::string& overlay = opened.subject.overlay;
    channel.say({{"title", opened.description}, {"count", list.checks.size()}});
    if (resumption.from == 0)
      for (auto& result : list.known) channel.say(with(to_json(result), "known", true));
    if (!overlay.empty()) count_dispatch();
    run_from(list, overlay, resumption, channel);
    synchronize();
    channel.say({{"done", true}});
    return 0;
  } catch (const std::exception& e) {
    channel.say({{"error", e.what()}});
    return 1;
  }
}

}  // namespace tenon::conformance
