// What an overlay that is checked has to do with each check: whether its plans have run, how many
// it made of which operators, and why it refused others.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <tenon/conformance/check.h>
#include <tenon/core/runtime/dispatch_stats.h>

namespace tenon::conformance {

// Asks the overlay, in each dtype, for an operator that does not exist, and returns its answers:
// the reasons that it gives for operators it does not have. Empty if the subject is no overlay.
std::shared_ptr<const std::set<std::string>> refusals_of_unknown(const Subject& subject);

// The overlay's own words among the reasons for which nobody made a plan; empty if there are none.
std::string words_of_overlay(const Subject& subject, const std::string& reasons);
// Whether it refuses `op` for another reason than that it does not have the operator.
bool refuses_what_it_has(const Subject& subject, const std::string& op, const std::string& words);
// Runs of the overlay's plans since the counts were reset, after waiting for what is queued.
uint64_t runs_of_overlay(const Subject& subject);

// What it did in some checks.
struct OverlayNotes {
  std::map<std::string, uint64_t> plans;       // that it made, of each operator
  std::map<std::string, std::string> refused;  // operators that it has, and its last reason

  void add(const OverlayNotes& other);
};

class OverlayWatch {
 public:
  // Begins to count, if the subject is an overlay.
  explicit OverlayWatch(const Subject& subject);
  Result result_of(const Check& check);
  // Those of the last check.
  const OverlayNotes& notes() const { return notes_; }

 private:
  void note(const DispatchStats& stats);
  std::string reason_for(const Check& check, const DispatchStats& stats) const;

  const Subject& subject_;
  OverlayNotes notes_;
  // The last reason for each operator: plans are kept, so that it is asked once for each.
  std::map<std::string, std::string> reasons_;
};

}  // namespace tenon::conformance
