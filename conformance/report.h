// What the kit found: a line for each failure as it comes, a table by operator at the end, JSON,
// and the exit status.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <tenon/conformance/check.h>
#include <tenon/conformance/overlay.h>

namespace tenon::conformance {

struct Counts {
  size_t passed = 0, failed = 0, not_offered = 0, skipped = 0;
  void add(Status status);
};

// How the detail of a check begins that the plugin below an overlay has computed alone.
inline constexpr std::string_view kNoPlanOfOverlay = "no plan of the overlay was used";

class Report {
 public:
  // Failures are printed to `out` when they are added, with the seed that gives them again.
  explicit Report(std::ostream& out, uint64_t seed = 0) : out_(out), seed_(seed) {}

  void add(Result result);
  void add(const OverlayNotes& notes) { notes_.add(notes); }
  // Prints the table by operator, what is not offered and why, and a line for each section.
  void print_summary() const;

  const std::vector<Result>& results() const { return results_; }
  Counts totals() const;
  // Operators that the overlay has, and of which it made no plan in any check, with its last
  // reason.
  std::map<std::string, std::string> never_tried() const;
  nlohmann::json to_json() const;
  // Operators of which in a dtype nothing passed but that they repeat themselves: their values were
  // compared with nothing. By operator, the dtypes.
  std::map<std::string, std::set<std::string>> not_compared() const;
  // 0 if something passed, nothing failed and values were compared wherever something passed;
  // otherwise 1.
  int exit_status() const;

 private:
  void print_table() const;
  void print_not_offered() const;
  std::set<std::string> left_to_plugin_below() const;
  void print_missing() const;
  void print_skipped() const;
  void print_plans() const;
  void print_sections() const;

  std::ostream& out_;
  uint64_t seed_;
  std::vector<Result> results_;
  OverlayNotes notes_;
};

// What is said of a line that somebody else wrote to the pipe on which results come; `why` it is
// none of them.
std::string line_of_others(const std::string& line, const std::string& why);

// Those that a process tells with the end of a check; none where it tells nothing.
void add_notes(nlohmann::json& line, const OverlayNotes& notes);
OverlayNotes notes_from_json(const nlohmann::json& line);

nlohmann::json to_json(const Result& result);
// Throws a DataError if it is not what to_json made.
Result result_from_json(const nlohmann::json& json);

}  // namespace tenon::conformance
