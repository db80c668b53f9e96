// A trace on its way to becoming a program, as passes see and change it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tenon/core/graph/match.h>
#include <tenon/core/graph/trace.h>

namespace tenon::graph {

// One read or write of a value.
struct Use {
  uint32_t node = 0;
  uint32_t access = 0;  // its number in Trace::accesses
  bool writes = false;
};

// A pass may mark nodes as removed, change where a node reads, and put another node in the place of
// one. Nodes keep their numbers until `compact`.
class Draft {
 public:
  Draft(Trace& trace, Wiring& wiring);

  Trace& trace;
  Wiring& wiring;

  bool removed(uint32_t node) const { return removed_[node]; }
  void remove(uint32_t node) { removed_[node] = true; }
  // Puts a node in the place of another, with what it reads and writes. `inputs_of` says for each
  // access through which input of the trace it goes, or -1.
  struct Replacement {
    Ref<PlanEntry> plan;
    std::vector<Access> inputs, outputs;
    std::vector<int32_t> inputs_of;
    std::vector<Scalar> scalars;
    bool outputs_hold_values = false;
  };
  void replace(uint32_t node, Replacement&& by);
  // Takes out the removed nodes. Returns how many there were.
  size_t compact();

  // All uses of a value by nodes that are not removed, in their order. Built on demand; `changed`
  // says that they have to be built again.
  std::span<const Use> uses_of(uint32_t value);
  void changed() { uses_are_known_ = false; }
  // Whether one access alone writes the value.
  bool has_one_writer(uint32_t value);
  // Whether the host itself neither reads nor writes the value, which it would do as a tensor.
  bool only_plans_use(uint32_t value);

  // Whether anything but the nodes needs the value: it is from outside, or lives on.
  bool needed_outside(uint32_t value) const { return !trace.values[value].inside || kept_[value]; }
  // The part that a node belongs to.
  uint32_t part_of(uint32_t node) const;

  std::span<const Access> inputs_of(const TraceNode& n) const {
    return {trace.inputs_of(n), n.num_inputs};
  }
  std::span<const Access> outputs_of(const TraceNode& n) const {
    return {trace.outputs_of(n), n.num_outputs};
  }

 private:
  void build_uses();

  std::vector<bool> removed_, kept_;
  bool uses_are_known_ = false;
  std::vector<uint32_t> first_use_;
  std::vector<Use> uses_;
};

// Makes the plan of a call that computes what several plans do: `first`, and others by the same
// plugin, which cost `cost` together. Returns nothing, and the reason in `why`, if the plugin
// refuses it, another one would compute it, or it would cost more.
Ref<PlanEntry> make_joint_plan(const PlanEntry& first, uint64_t cost, CallDesc call,
                               std::string& why);

// Bytes of a value that a node reads or writes, from its first one on.
struct Range {
  uint32_t value = kAbsent;
  uint64_t begin = 0, end = 0;

  bool overlaps(const Range& o) const {
    return value == o.value && value != kAbsent && begin < o.end && o.begin < end;
  }
};
// What input or output `k` of a node may touch; the outputs come after the inputs.
Range range_of(const Draft& draft, const TraceNode& node, uint32_t k);

}  // namespace tenon::graph
