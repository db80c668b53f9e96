#include <algorithm>
#include <ostream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tenon/conformance/levels.h>
#include <tenon/conformance/report.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>

namespace tenon::conformance {

namespace {

constexpr DType kColumns[] = {f32, f64, f16, bf16, i64, i32, u8, boolean};
constexpr Status kStatuses[] = {Status::passed, Status::failed, Status::not_offered,
                                Status::skipped};

// The first of its lines that gives a reason: below "… no plugin of this device offers it:", what
// was refused and the plugin's own words.
std::string reason_in(const Result& result) {
  const std::string& detail = result.detail;
  const size_t first = detail.find('\n');
  if (first == detail.npos) return detail;
  const size_t begin = detail.find_first_not_of(" \n", first),
               end = std::min(detail.find('\n', begin), detail.size());
  const std::string words =
      begin == detail.npos ? detail.substr(0, first) : detail.substr(begin, end - begin);
  return result.refused.empty() ? words : result.refused + ": " + words;
}

// "36" passed, "2 bad", "-" not offered.
std::string cell_of(const Counts& c) {
  if (c.failed) return fmt::format("{} bad", c.failed);
  if (c.passed) return std::to_string(c.passed);
  return c.not_offered ? "-" : "";
}

std::string sentence(const Counts& c) {
  std::string text = fmt::format("{} passed, {} failed", c.passed, c.failed);
  if (c.not_offered) text += fmt::format(", {} not offered", c.not_offered);
  if (c.skipped) text += fmt::format(", {} skipped", c.skipped);
  return text;
}

}  // namespace

void Counts::add(Status status) {
  switch (status) {
    case Status::passed:
      ++passed;
      break;
    case Status::failed:
      ++failed;
      break;
    case Status::not_offered:
      ++not_offered;
      break;
    case Status::skipped:
      ++skipped;
      break;
  }
}

void Report::add(Result result) {
  if (result.section == "speed" && result.status == Status::passed)
    out_ << printable(result.detail) << std::endl;
  if (result.status == Status::failed) {
    out_ << "FAILED " << result.section << ": ";
    if (!result.op.empty()) out_ << result.op << " ";
    out_ << printable(result.name);
    if (!result.dtype.empty()) out_ << " in " << result.dtype;
    out_ << ": " << printable_lines(result.detail);
    if (result.section == "shapes" && seed_ != 0) out_ << fmt::format(" (--seed {})", seed_);
    out_ << std::endl;
  }
  results_.push_back(std::move(result));
}

Counts Report::totals() const {
  Counts counts;
  for (auto& r : results_) counts.add(r.status);
  return counts;
}

void Report::print_table() const {
  std::map<std::string, std::map<std::string, Counts>> rows;
  for (auto& r : results_)
    if (!r.op.empty() && r.section != "speed" && r.status != Status::skipped)
      rows[r.op][r.dtype].add(r.status);
  if (rows.empty()) return;
  out_ << fmt::format("\n{:22}", "operator");
  for (DType t : kColumns) out_ << fmt::format("{:>8}", name_of(t));
  out_ << "\n";
  for (auto& [op, types] : rows) {
    std::string line = fmt::format("{:22}", op);
    for (DType t : kColumns) {
      const auto found = types.find(std::string(name_of(t)));
      line += fmt::format("{:>8}", found == types.end() ? "" : cell_of(found->second));
    }
    out_ << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
  }
  out_ << "Checks that passed; \"-\" is not offered.\n";
}

// Operators with which an overlay has nothing to do, where there are many: it is made for a few.
std::set<std::string> Report::left_to_plugin_below() const {
  constexpr size_t kMany = 12;
  std::set<std::string> all, others;
  for (auto& r : results_) {
    if (r.op.empty() || r.status == Status::skipped) continue;
    const bool left = r.status == Status::not_offered && r.detail.starts_with(kNoPlanOfOverlay);
    (left ? all : others).insert(r.op);
  }
  for (auto& op : others) all.erase(op);
  return all.size() < kMany ? std::set<std::string>() : all;
}

// A line for each operator and reason, with the dtypes that it is about.
void Report::print_not_offered() const {
  const auto left = left_to_plugin_below();
  std::map<std::string, std::map<std::string, std::set<std::string>>> reasons;
  for (auto& r : results_)
    if (r.status == Status::not_offered && !left.count(r.op))
      reasons[r.op.empty() ? r.section : r.op][reason_in(r)].insert(r.dtype);
  if (reasons.empty() && left.empty()) return;
  out_ << "\nNot offered:\n";
  if (!left.empty())
    out_ << fmt::format("  {}, in any check, of (--json FILE has the reasons): {}\n",
                        kNoPlanOfOverlay, fmt::join(left, ", "));
  constexpr size_t kMax = 3;
  for (auto& [op, by_reason] : reasons) {
    size_t count = 0;
    for (auto& [reason, types] : by_reason) {
      if (++count > kMax) break;
      const std::string list = fmt::format("{}", fmt::join(types, ", "));
      out_ << fmt::format("  {}{}{}: {}\n", op, list.empty() ? "" : " in ", list,
                          printable(reason));
    }
    if (by_reason.size() > kMax)
      out_ << fmt::format("  {}: and {} more reasons (--json FILE has all)\n", op,
                          by_reason.size() - kMax);
  }
}

// Where not to offer something is a failure: what is missing.
void Report::print_missing() const {
  std::set<std::string> missing;
  for (auto& r : results_)
    if (r.status == Status::failed && !r.refused.empty()) missing.insert(r.refused);
  if (!missing.empty())
    out_ << fmt::format("\nRequired, and not offered: {}\n", fmt::join(missing, ", "));
}

// A line for each reason, with the operators that it is about.
void Report::print_skipped() const {
  std::map<std::string, std::map<std::string, size_t>> reasons;
  for (auto& r : results_)
    if (r.status == Status::skipped && !r.detail.empty())
      ++reasons[reason_in(r)][r.op.empty() ? r.name.substr(0, r.name.find('/')) : r.op];
  for (auto& [reason, ops] : reasons) {
    out_ << "\nSkipped, " << printable(reason) << ":\n ";
    for (auto& [op, count] : ops) out_ << " " << printable(op) << "(" << count << ")";
    out_ << "\n";
  }
}

std::map<std::string, std::string> Report::never_tried() const {
  std::map<std::string, std::string> never;
  for (auto& [op, reason] : notes_.refused)
    if (!notes_.plans.count(op)) never[op] = reason;
  return never;
}

// What an overlay had to do with all that.
void Report::print_plans() const {
  std::vector<std::string> made;
  for (auto& [op, count] : notes_.plans) made.push_back(fmt::format("{} {}", op, count));
  if (!made.empty()) out_ << fmt::format("\nPlans of the overlay: {}\n", fmt::join(made, ", "));
  const auto never = never_tried();
  if (never.empty()) return;
  out_
      << "\nNever tried, because the overlay refused each request, although it has the operator:\n";
  for (auto& [op, reason] : never) out_ << fmt::format("  {}: {}\n", op, printable(reason));
}

void Report::print_sections() const {
  std::map<std::string, Counts> sections;
  for (auto& r : results_) sections[r.section].add(r.status);
  out_ << "\n";
  for (auto& [section, counts] : sections)
    out_ << fmt::format("{:12} {}\n", section, sentence(counts));
  out_ << fmt::format("{:12} {}\n", "total", sentence(totals()));
}

void Report::print_summary() const {
  print_table();
  print_not_offered();
  print_missing();
  print_skipped();
  print_plans();
  print_sections();
  if (totals().passed == 0) out_ << "Nothing passed, so nothing is shown.\n";
  for (auto& [op, types] : not_compared())
    out_ << fmt::format(
        "{} in {} is not shown to be right: it gives the same bits twice, but no check that "
        "compares its values was offered.\n",
        op, fmt::join(types, ", "));
  out_.flush();
}

std::map<std::string, std::set<std::string>> Report::not_compared() const {
  struct Found {
    bool repeats = false, compares = false, would_compare = false;
  };
  std::map<std::pair<std::string, std::string>, Found> all;
  for (auto& r : results_) {
    if (r.op.empty() || r.section == "speed") continue;
    Found& found = all[{r.op, r.dtype}];
    const bool is_done = r.status == Status::passed || r.status == Status::failed;
    if (r.section == "repeat")
      found.repeats = found.repeats || is_done;
    else
      found.would_compare = true, found.compares = found.compares || is_done;
  }
  std::map<std::string, std::set<std::string>> result;
  for (auto& [key, found] : all)
    if (found.repeats && found.would_compare && !found.compares)
      result[key.first].insert(key.second);
  return result;
}

int Report::exit_status() const {
  const Counts counts = totals();
  return counts.failed == 0 && counts.passed > 0 && not_compared().empty() ? 0 : 1;
}

nlohmann::json Report::to_json() const {
  const Counts c = totals();
  nlohmann::json results = nlohmann::json::array();
  for (auto& r : results_) results.push_back(conformance::to_json(r));
  nlohmann::json all = {{"operator_set", kOperatorSet}, {"passed", c.passed},
                        {"failed", c.failed},           {"not_offered", c.not_offered},
                        {"skipped", c.skipped},         {"results", std::move(results)}};
  all["plans_of_overlay"] = notes_.plans;
  all["never_tried"] = never_tried();
  return all;
}

std::string line_of_others(const std::string& line, const std::string& why) {
  return fmt::format("somebody else has written to the pipe on which they come: \"{}\" ({})",
                     excerpt(line), why);
}

void add_notes(nlohmann::json& line, const OverlayNotes& notes) {
  if (!notes.plans.empty()) line["plans"] = notes.plans;
  if (!notes.refused.empty()) line["refused_of_known"] = notes.refused;
}

OverlayNotes notes_from_json(const nlohmann::json& line) {
  OverlayNotes notes;
  if (line.contains("plans")) notes.plans = line["plans"].get<decltype(notes.plans)>();
  if (line.contains("refused_of_known"))
    notes.refused = line["refused_of_known"].get<decltype(notes.refused)>();
  return notes;
}

nlohmann::json to_json(const Result& r) {
  return {{"section", r.section}, {"op", r.op},         {"dtype", r.dtype},
          {"name", r.name},       {"detail", r.detail}, {"status", std::string(name_of(r.status))},
          {"refused", r.refused}};
}

Result result_from_json(const nlohmann::json& json) {
  try {
    Result r{json.at("section"), json.at("op"),     json.at("dtype"),  json.at("name"),
             Status::failed,     json.at("detail"), json.at("refused")};
    const std::string status = json.at("status");
    for (Status s : kStatuses)
      if (status == name_of(s)) {
        r.status = s;
        return r;
      }
    throw DataError("no status is called " + status);
  } catch (const nlohmann::json::exception& e) {
    throw DataError(std::string("no result of a check: ") + e.what());
  }
}

}  // namespace tenon::conformance
