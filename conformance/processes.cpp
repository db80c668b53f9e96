#include <algorithm>
#include <chrono>
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

using std::chrono::steady_clock;

// What a process said, until it ended.
struct Said {
  Outcome outcome;
  std::string running;               // the check that it was in
  std::string failure, unsupported;  // the first of each
  bool done = false;
  std::string words;  // printed since it began
};

void note(Said& said, const Result& result) {
  auto& first = result.status == Status::failed ? said.failure : said.unsupported;
  if (result.status != Status::failed && result.status != Status::not_offered) return;
  if (first.empty()) first = result.name + ": " + result.detail;
}

Said listen(const Launch& launch, const char* option, const char* value) {
  auto command = launch.command;
  command.insert(command.end(), {option, value});
  WorkerProcess process(command, launch.checked, launch.program);
  // Before somebody waits too long for the process that waits here.
  const auto end = steady_clock::now() + std::chrono::milliseconds(launch.limit * 700);
  Said said;
  std::string line;
  const auto left = [&] {
    return std::max(std::chrono::ceil<std::chrono::seconds>(end - steady_clock::now()),
                    std::chrono::seconds(1));
  };
  while (process.read_line(line, left(), said.outcome)) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("error"))
      said.failure = json["error"].get<std::string>();
    else if (json.contains("begin"))
      said.running = result_from_json(json).name, process.take_words();
    else if (json.contains("end"))
      note(said, result_from_json(json));
    said.done = said.done || json.contains("done");
  }
  said.words = process.take_words();
  return said;
}

// What the host logged about the plugin, "[npu] warning: drain: …"; else nothing.
std::string complaint_in(const std::string& words, const std::string& plugin) {
  std::istringstream lines(words);
  for (std::string line; std::getline(lines, line);)
    for (auto* level : {"warning", "error"})
      if (line.starts_with(fmt::format("[{}] {}: ", plugin, level))) return line;
  return "";
}

void require_good_end(const Said& said) {
  if (!said.failure.empty()) throw Mismatch(said.failure);
  if (!said.outcome.how.empty() || !said.done) {
    const std::string how =
        said.outcome.how.empty() ? "the process ended without a word" : said.outcome.how;
    throw Mismatch(fmt::format("{}{}{}", said.done ? "at its end, it " : "", how,
                               said.words.empty() ? "" : "; it had written:\n" + said.words));
  }
}

void require_right_under(const Launch& launch, const char* host) {
  const Said said = listen(launch, "--host", host);
  if (!said.done && said.failure.empty() && !said.running.empty())
    throw Mismatch(said.running + ": " + said.outcome.how);
  require_good_end(said);
}

void require_end(const Launch& launch, const char* how) {
  const Said said = listen(launch, "--end", how);
  require_good_end(said);
  if (const auto text = complaint_in(said.words, said.running); !text.empty()) throw Mismatch(text);
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
