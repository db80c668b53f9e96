#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tenon/conformance/compare.h>
#include <tenon/conformance/joint/checks.h>
#include <tenon/conformance/processes.h>
#include <tenon/conformance/report.h>
#include <tenon/conformance/worker_process.h>

namespace tenon::conformance {

namespace {

// What a process said, until it ended.
struct Said {
  Outcome outcome;
  std::string running;                            // the check that it was in
  std::string failure, unsupported, skipped;      // the first of each
  std::map<std::string, std::string> not_passed;  // why, by name
  std::set<std::string> passed;
  bool done = false;
  std::string words;  // printed since the last check began
};

void note(Said& said, const Result& result) {
  if (result.status == Status::passed) return void(said.passed.insert(result.name));
  said.not_passed[result.name] = result.detail;
  auto& first = result.status == Status::failed        ? said.failure
                : result.status == Status::not_offered ? said.unsupported
                                                       : said.skipped;
  if (first.empty()) first = result.name + ": " + result.detail;
}

constexpr size_t kWordsOfMessages = 4000;

std::string since_the_last_beginning(const std::string& words) {
  const size_t at = words.rfind(kBeginning);
  return at == words.npos ? words : words.substr(at + kBeginning.size());
}

void take(Said& said, const nlohmann::json& line) {
  if (line.contains("error"))
    said.failure = line["error"].get<std::string>();
  else if (line.contains("begin"))
    said.running = result_from_json(line).name;
  else if (line.contains("end"))
    note(said, result_from_json(line));
  said.done = said.done || line.contains("done");
}

Said listen(const Launch& launch, const char* option, const char* value,
            const Variables& changes = {}) {
  Start start{.program = launch.program, .command = launch.command};
  start.command.insert(start.command.end(), {option, value});
  start.variables = variables_of_checks(launch.checked, launch.limit);
  for (auto& [name, text] : changes) start.variables[name] = text;
  start.most_words = 1 << 20;  // complaints are searched for in them
  WorkerProcess process(std::move(start));
  // Before somebody waits too long for the process that waits here.
  const std::chrono::seconds limit(std::max(launch.limit - std::max(launch.limit / 10, 1u), 1u));
  Said said;
  std::string line;
  while (process.read_line(line, limit, said.outcome)) {
    launch.alive();
    try {
      take(said, nlohmann::json::parse(line));
    } catch (const std::exception& e) {
      if (said.failure.empty()) said.failure = line_of_others(line, e.what());
    }
  }
  said.words = since_the_last_beginning(process.take_words());
  return said;
}

// What the host logged about the plugin, "[npu] warning: drain: …", or about work that failed,
// "[tenon] error: work failed, …"; else nothing.
std::string complaint_in(const std::string& words, const std::string& plugin) {
  std::istringstream lines(words);
  for (std::string line; std::getline(lines, line);)
    for (auto& start :
         {"[" + plugin + "] warning: ", "[" + plugin + "] error: ", std::string("[tenon] error: ")})
      if (line.starts_with(start)) return line;
  return "";
}

void require_good_end(const Said& said) {
  if (!said.failure.empty()) throw Mismatch(said.failure);
  if (!said.outcome.how.empty() || !said.done) {
    const std::string how =
        said.outcome.how.empty() ? "the process ended without a message" : said.outcome.how;
    const size_t most = std::min(said.words.size(), kWordsOfMessages);
    const std::string words = said.words.substr(said.words.size() - most);
    throw Mismatch(fmt::format("{}{}{}", said.done ? "at its end, it " : "", how,
                               words.empty() ? "" : "; it had written:\n" + words));
  }
}

void require_right_under(const Launch& launch, const char* host) {
  if (launch.passed->empty())
    throw Skipped("because nothing of the joint has passed under the present host");
  const Said said = listen(launch, "--host", host);
  if (!said.done && said.failure.empty() && !said.running.empty()) {
    const std::string how = said.running + ": " + said.outcome.how;
    if (!launch.passed->count(said.running))
      throw Skipped("because it ended in what has not passed under the present host: " + how);
    throw Mismatch(how);
  }
  require_good_end(said);
  // A plugin that refuses everything under another host does not work under it.
  for (auto& name : *launch.passed)
    if (!said.passed.count(name))
      throw Mismatch(
          fmt::format("{}: this passes under the present host, and not under that one{}", name,
                      said.not_passed.count(name) ? ": " + said.not_passed.at(name) : ""));
}

void require_end(const Launch& launch, const char* how) {
  // Work is queued only where nobody waits for each call.
  const Said said = listen(launch, "--end", how,
                           {{"TENON_CHECK", ""}, {"TENON_SYNC", ""}, {"TENON_LOG", "warning"}});
  require_good_end(said);
  if (const auto text = complaint_in(said.words, said.running); !text.empty()) throw Mismatch(text);
  if (!said.skipped.empty()) throw Skipped(said.skipped);
  if (!said.unsupported.empty()) throw UnsupportedError(said.unsupported);
}

}  // namespace

std::vector<Check> process_checks(const Launch& launch) {
  std::vector<Check> checks;
  const auto add = [&](const char* about, const char* name, const char* how,
                       void (*look)(const Launch&, const char*)) {
    checks.push_back({"joint", about, name, f32, [launch, look, how] { look(launch, how); }});
  };
  const char* const about = "hosts";
  add(about, "under a host of ABI 1.0, all of this is so", "1.0", require_right_under);
  add(about, "under a host of ABI 1.1, all of this is so", "1.1", require_right_under);
  add(about, "under a host of ABI 1.2, all of this is so", "1.2", require_right_under);
  add(about, "under a newer host, all of this is so", "newer", require_right_under);
  add("the end", "drain waits for what is queued", "drain", require_end);
  add("the end", "a process with queued work returns from main", "return", require_end);
  add("the end", "a process with queued work calls exit", "exit", require_end);
  return checks;
}

void queue_before_the_end(const Options& options, const Subject& subject) {
  joint::Bench bench(subject);
  if (options.end == "drain") return joint::require_drain_to_wait(bench);
  const auto op = joint::known_operator(bench);
  // Some of them live until the process has ended, some are destroyed on the way.
  static std::vector<Tensor> kept;
  const Tensor x = full({1 << 18}, -2, {.device = subject.reference}).to(subject.device);
  for (int i = 0; i < 100; ++i) {
    const Tensor y = op.call(x);
    if (i % 10 == 0) kept.push_back(y), kept.push_back(y.to(subject.reference));
  }
}

}  // namespace tenon::conformance
