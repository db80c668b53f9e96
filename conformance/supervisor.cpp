#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tenon/conformance/levels.h>
#include <tenon/conformance/report.h>
#include <tenon/conformance/speed.h>
#include <tenon/conformance/supervisor.h>
#include <tenon/conformance/worker_process.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>

namespace tenon::conformance {

namespace {

using nlohmann::json;

// An operator that ended the process this often is not tried again; a hang, which takes its time,
// counts as much as both.
constexpr int kMaxCrashes = 2;
// So many operators or files that hang are enough to know.
constexpr size_t kMaxHangs = 5;
// The same of checks of a section that are about no operator.
constexpr size_t kMaxHangsOfSection = 3;

// The operator with which the device was lost, such as "matmul" in a check of linear: that of the
// line "  in matmul: (2, 3), (3, 4) on npu:0" below the error. Of several in flight it is not known
// which one it was, so that it counts as the operator of the check.
std::string operator_in_flight(const Result& result) {
  constexpr std::string_view kBegin = "\n  in ";
  const size_t at = result.detail.find(kBegin);
  if (at == result.detail.npos) return result.op;
  const size_t begin = at + kBegin.size();
  if (result.detail.substr(begin).starts_with("one of the ")) return result.op;
  return result.detail.substr(begin, result.detail.find_first_of(": \n", begin) - begin);
}

// Whether the device was lost because its work did not end, as the host's error says then.
bool is_out_of_time(const Result& result) {
  return result.detail.find("TENON_CHECK_TIMEOUT") != result.detail.npos;
}

class Supervisor {
 public:
  Supervisor(const Options& options, const std::vector<std::string>& command, std::ostream& out)
      : options_(options), command_(command), out_(out), report_(out, options.seed) {}

  int run() {
    while (run_once()) {
    }
    report_.print_summary();
    if (!options_.json.empty()) write_json();
    return report_.exit_status();
  }

 private:
  // Returns whether another process has to go on.
  bool run_once() {
    WorkerProcess worker({.command = arguments(),
                          .variables = variables_of_checks(options_.checked, options_.limit)});
    running_.reset();
    reading_.clear();
    loaded_ = opened_ = done_ = false;
    Outcome outcome;
    // Before it loads a plugin, nothing can hold it up but the machine. A line {"alive": true} says
    // that the making of the list goes on, or a check which waits for other processes.
    const auto limit = [&] { return loaded_ ? options_.limit : std::max(options_.limit, 600u); };
    while (worker.read_line(line_, std::chrono::seconds(limit()), outcome)) {
      std::cerr << printable_lines(worker.take_words());
      try {
        const json line = json::parse(line_);
        take(line);
        if (line.value("lost", false)) {
          const Result result = result_from_json(line);
          note_hang_of(result.section, result.op, is_out_of_time(result));
          return goes_on_without(result.op, /*hung=*/true, operator_in_flight(result));
        }
      } catch (const std::exception& e) {
        note_line_of_others(e.what());
      }
    }
    const std::string words = printable_lines(worker.take_words());
    if (done_) note_lost_result();
    if (!done_ || !outcome.how.empty()) return explain(outcome, words);
    std::cerr << words;
    return false;
  }

  std::vector<std::string> arguments() const {
    std::vector<std::string> all = command_;
    all.insert(all.end(), {"--from", std::to_string(resumption_.from)});
    for (auto& op : resumption_.without) all.insert(all.end(), {"--without", op});
    for (auto& section : resumption_.without_sections)
      all.push_back("--without-section=" + section);
    for (auto& file : resumption_.without_files) all.push_back("--without-file=" + file);
    for (auto& name : resumption_.passed) all.insert(all.end(), {"--passed", name});
    return all;
  }

  // Once for each operator, because it may do so in every run.
  void note_line_of_others(const std::string& why) {
    const std::string op = running_ ? running_->op : "";
    if (!intruders_.insert(op).second) return;
    report_.add({"start", op, running_ ? running_->dtype : "", "the results", Status::failed,
                 line_of_others(line_, why)});
  }

  // The check has ended, as others have begun since, and nobody knows how.
  void note_lost_result() {
    if (!running_) return;
    running_->status = Status::failed;
    running_->detail = "its result did not arrive completely";
    report_.add(*std::exchange(running_, std::nullopt));
  }

  void take(const json& line) {
    if (line.contains("title")) {
      opened_ = true;
      count_ = line["count"].get<size_t>();
      if (resumption_.from == 0 && !titled_)
        out_ << printable_lines(line["title"].get<std::string>()) << "\n"
             << (options_.speed ? speed_heading()
                                : fmt::format("{} checks of operator set {}, --seed {}", count_,
                                              kOperatorSet, options_.seed))
             << std::endl;
      titled_ = true;
    } else if (line.contains("opening")) {
      loaded_ = true;
    } else if (line.contains("reading")) {
      reading_ = line["reading"].get<std::string>();
    } else if (line.contains("begin")) {
      Result begun = result_from_json(line);
      resumption_.from = line["begin"].get<size_t>() + 1;
      note_lost_result();
      running_ = std::move(begun);
    } else if (line.contains("end")) {
      const Result result = result_from_json(line);
      resumption_.from = line["end"].get<size_t>() + 1;
      running_.reset();
      if (result.section == "joint" && result.status == Status::passed)
        resumption_.passed.push_back(result.name);
      if (result.status == Status::skipped) note_rest_of(result.section);
      report_.add(result);
      report_.add(notes_from_json(line));
    } else if (line.contains("known")) {
      report_.add(result_from_json(line));
    } else if (line.contains("error")) {
      done_ = failed_to_open_ = true;
      // After the last check it waits for whatever may still be queued.
      report_.add({opened_ ? "exit" : "start", "", "",
                   opened_ ? "the end of the checks" : "the device", Status::failed,
                   line["error"].get<std::string>()});
    } else if (line.contains("done")) {
      done_ = true;
    }
  }

  // Each check that waits for something that never comes takes all of its time.
  void note_hang_of(const std::string& section, const std::string& op, bool hung) {
    if (!hung || !op.empty() || ++hung_of_section_[section] != kMaxHangsOfSection) return;
    resumption_.without_sections.push_back(section);
    given_up_.insert(section);
  }

  // The first check that is left out of a section shows that the last one which hung was not its
  // last.
  void note_rest_of(const std::string& section) {
    if (given_up_.erase(section) == 0) return;
    report_.add(
        {section, "", "", "the rest", Status::failed,
         fmt::format("not run, because {} checks of it did not end in time", kMaxHangsOfSection)});
  }

  // A check of `op` has ended the process, in `culprit`, which may be a part of it. Returns whether
  // another one has to go on.
  bool goes_on_without(const std::string& op, bool hung, const std::string& culprit) {
    crashes_[op] += hung ? kMaxCrashes : 1;
    // Checks that are about no operator have nothing else in common.
    if (crashes_[op] >= kMaxCrashes && !op.empty()) resumption_.without.push_back(op);
    return goes_on_after(hung, culprit, "operators");
  }

  // What a case file holds has ended the process, inside of HDF5. The other files are read.
  bool goes_on_without_file(bool hung, const std::string& how) {
    report_.add(
        {"cases", "", "", reading_, Status::failed, "cannot be read: HDF5, which read it, " + how});
    const std::string file = reading_.substr(0, reading_.find('/'));
    resumption_.without_files.push_back(file);
    return goes_on_after(hung, file, "files");
  }

  bool goes_on_after(bool hung, const std::string& culprit, const char* kind) {
    if (hung) hung_.insert(culprit);
    if (hung_.size() < kMaxHangs) return true;
    if (!opened_ || resumption_.from < count_)
      report_.add({"start", "", "", "the rest", Status::failed,
                   fmt::format("not run, because {} {} have hung", hung_.size(), kind)});
    return false;
  }

  // No check has hung, but a function of a plugin.
  void note_hang_outside_of_checks(const Outcome& outcome, const std::string& words) {
    report_.add({done_ ? "exit" : "start", "", "", outcome.inside + " " + outcome.how,
                 Status::failed,
                 words.empty() ? "look with gdb where it waits, or give it more time with --limit"
                               : "it had written:\n" + words});
  }

  // The process has ended otherwise than it should.
  bool explain(const Outcome& outcome, const std::string& words) {
    const std::string how =
        (outcome.how.empty() ? "ended the process without a message" : outcome.how) +
        (outcome.inside.empty() ? "" : "; it was inside " + outcome.inside) +
        (words.empty() ? "" : "; it had written:\n" + words);
    if (failed_to_open_) return false;
    if (running_) {
      running_->status = Status::failed;
      running_->detail = how;
      const std::string op = running_->op, section = running_->section;
      report_.add(*std::move(running_));
      running_.reset();
      note_hang_of(section, op, outcome.hung);
      return goes_on_without(op, outcome.hung, op);
    }
    if (!reading_.empty()) return goes_on_without_file(outcome.hung, how);
    if (!outcome.inside.empty()) return note_hang_outside_of_checks(outcome, words), false;
    const char* when = done_     ? "the end of the process"
                       : opened_ ? "between two checks"
                       : loaded_ ? "while the plugin was opened and the list of checks was made"
                                 : "the start of the process";
    report_.add({done_ ? "exit" : "start", "", "", when, Status::failed, how});
    return false;
  }

  void write_json() const {
    json all = report_.to_json();
    all["device"] = options_.plugin.empty() ? json(options_.device) : json();
    all["plugin"] = options_.plugin;
    all["seed"] = options_.seed;
    std::ofstream file(options_.json);
    file << all.dump(1, ' ', true, json::error_handler_t::replace) << "\n";
    if (!file.flush()) throw Error(fmt::format("{}: cannot be written", options_.json));
  }

  const Options& options_;
  const std::vector<std::string>& command_;
  std::ostream& out_;
  Report report_;
  Resumption resumption_;
  std::string line_;
  std::optional<Result> running_;
  bool loaded_ = false, opened_ = false, done_ = false, titled_ = false, failed_to_open_ = false;
  size_t count_ = 0;  // of the checks
  std::map<std::string, int> crashes_;
  std::map<std::string, size_t> hung_of_section_;
  std::set<std::string> given_up_;   // sections of which no check is left out so far
  std::set<std::string> hung_;       // operators of which work did not end, and files
  std::set<std::string> intruders_;  // operators in whose checks somebody wrote to the pipe
  std::string reading_;              // the file or the case in it that HDF5 reads
};

}  // namespace

int supervise(const Options& options, const std::vector<std::string>& command, std::ostream& out) {
  return Supervisor(options, command, out).run();
}

}  // namespace tenon::conformance
