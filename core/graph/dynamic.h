// One program for all sizes of some dimensions: from calls with a few sizes, it is worked out what
// a call with another size does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/core/graph/history.h>
#include <tenon/core/graph/match.h>
#include <tenon/core/graph/open_trace.h>
#include <tenon/core/graph/size_laws.h>
#include <tenon/core/graph/trace.h>

namespace tenon::graph {

// Sizes with the same remainder, for a divisor up to this, may have laws of their own.
constexpr int64_t kMaxParts = 16;

// Calls that differ in sizes and in nothing else.
class DynamicProgram {
 public:
  // `history` is null if no backward pass goes through the results.
  DynamicProgram(Trace first, std::span<const Tensor* const> arguments, Sizes sizes,
                 const History* history);

  // Adds a call and returns "" if it differs from the others in nothing but sizes. Otherwise
  // returns the difference and changes nothing.
  std::string add(const Trace& trace, std::span<const Tensor* const> arguments, Sizes sizes,
                  History* history);
  // The sizes of all calls that were added, and of those from which the laws were found.
  const std::vector<Sizes>& sizes() const { return calls_; }
  const std::vector<Sizes>& telling_sizes() const { return symbols_.calls(); }
  // The largest divisor in the laws, of quotients and of remainders. A law may hold only for sizes
  // that are this far apart.
  int64_t step() const { return step_; }
  // Whether each number of a call is known for all sizes. If not, `why` says what is missing.
  bool is_ready() const { return ready_; }
  const std::string& why() const { return why_; }
  // The history that has the backward passes of all calls; null if there are none.
  const History* history() const { return history_.get(); }

  // Whether all sizes that were equal in every added call are equal here, too. If not, nothing is
  // known about a call with these sizes.
  bool knows(const Sizes& sizes) const { return symbols_.values(sizes).has_value(); }
  struct Call {
    Trace trace;
    Wiring wiring;
    std::shared_ptr<History> history;
  };
  // Returns what a call with these arguments does. Returns nothing, and the reason in `why`, if it
  // does not follow from the others.
  std::optional<Call> derive(std::span<const Tensor* const> arguments, const Sizes& sizes,
                             std::string& why) const;

 private:
  // The law of a number, and whether it gives some call another value than the first call.
  struct IntegerAt {
    size_t at = 0;
    IntegerLaw law = {};
    bool differs = false;
  };
  struct ScalarAt {
    size_t at = 0;
    bool is_real = true;
    IntegerLaw integer = {};
    RealLaw real = {};
    bool differs = false;
  };
  class Following;
  // Calls whose sizes leave the same remainder in one place; all calls at first.
  struct Selection {
    size_t at = 0;
    int64_t parts = 1, rest = 0;
    bool has(const Sizes& sizes) const { return sizes[at] % parts == rest; }
  };
  // Numbers that are equal in each call follow one law, which is found for the first of them.
  struct Alike {
    std::vector<size_t> group;  // of each number
    std::vector<size_t> first;  // of each group
    // Splits the groups whose numbers are not equal in this call.
    void part(std::span<const int64_t> numbers);
  };

  // The outcome of a search for laws: every number has one, more calls are needed, or no law fits
  // all of these calls.
  enum class Found { laws, too_little, none };
  void find_laws();
  Found find_laws_of(std::span<const size_t> calls);
  Found find_law_of_integer(std::span<const size_t> calls, size_t at, IntegerAt& found);
  Found find_law_of_scalar(std::span<const size_t> calls, size_t at, ScalarAt& found);
  void take_laws(std::span<const IntegerAt> integers, std::span<const ScalarAt> scalars);
  bool find_laws_of_some();
  void note_alike(const NumberList& numbers);
  bool agrees(size_t call) const;
  std::string owner_of(size_t integer) const;
  const char* sharing_fault(const Trace& trace, const Wiring& wiring) const;
  const char* derive(OpenTrace& open, History* history, std::span<const int64_t> values,
                     std::span<const Tensor* const> arguments) const;
  const char* take_inputs(Trace& trace, std::span<const Tensor* const> arguments) const;
  const char* plan_again(Trace& trace, size_t at, const OpenTrace::Node& opened) const;

  OpenTrace first_;
  std::shared_ptr<History> history_;
  std::vector<uint32_t> first_in_memory_;  // of each input: the first one in the same memory
  Wiring wiring_;                          // from the second call on
  std::vector<Sizes> calls_;
  SizeSymbols symbols_;              // of those that tell what others do
  std::vector<NumberList> numbers_;  // of the calls, from the second on
  Alike alike_integers_, alike_scalars_;
  Selection selection_;  // of those that tell what others do
  int64_t step_ = 1;
  std::vector<IntegerAt> integers_;
  std::vector<ScalarAt> scalars_;
  bool ready_ = false;
  std::string why_;
};

}  // namespace tenon::graph
