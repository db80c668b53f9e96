#include <algorithm>
#include <cerrno>
#include <exception>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <tenon/conformance/checklist.h>
#include <tenon/conformance/report.h>
#include <tenon/conformance/subject.h>
#include <tenon/conformance/worker.h>
#include <tenon/core/device.h>

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

void run_from(const Checklist& list, const Resumption& resumption, const Channel& channel) {
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
    channel.say(with(to_json(result_of(check)), "end", i));
  }
}

}  // namespace

int run_checks(const Options& options, const Resumption& resumption, int pipe) {
  const Channel channel(pipe);
  try {
    const Opened opened = open_subject(options);
    const Checklist list = make_checklist(options, opened.subject);
    channel.say({{"title", opened.description}, {"count", list.checks.size()}});
    if (resumption.from == 0)
      for (auto& result : list.known) channel.say(with(to_json(result), "known", true));
    run_from(list, resumption, channel);
    synchronize();
    channel.say({{"done", true}});
    return 0;
  } catch (const std::exception& e) {
    channel.say({{"error", e.what()}});
    return 1;
  }
}

}  // namespace tenon::conformance
