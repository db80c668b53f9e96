// A pointwise node that becomes part of the product, convolution or batch norm whose result it
// takes, which computes it while that result is in the cache. The node of both is where the
// pointwise one was.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <tenon/core/graph/passes/draft.h>
#include <tenon/core/graph/passes/passes.h>

namespace tenon::graph {

class Folding {
 public:
  // Returns the folding of the node `last`, which takes through its input `taken` what the other
  // one makes, element for element, and reads its other inputs in the same way. Nothing if it
  // cannot be: somebody else sees what is taken, or what the other node reads is not there any
  // more.
  static std::optional<Folding> of(Draft& draft, uint32_t last, uint32_t taken);

  // The two nodes, and where the first is.
  const TraceNode& product() const { return draft_.trace.nodes[first_]; }
  const TraceNode& last() const { return draft_.trace.nodes[last_]; }
  uint32_t place() const { return first_; }

  // Puts one node in the place of both, or notes why not. `change` makes the call of both of that
  // of the product. The node also reads what `last` reads through its input `added`, if that is one
  // of them, and has the numbers of both. Returns whether it did.
  bool make(const std::function<void(CallDesc&)>& change, std::optional<uint32_t> added,
            Notes& notes);

 private:
  Folding(Draft& draft, uint32_t last, uint32_t taken)
      : draft_(draft), last_(last), taken_(taken) {}

  bool find_product();
  bool is_alone();
  bool may_run_last() const;
  bool others_are_apart() const;
  bool has_one_planner() const;
  Ref<PlanEntry> make_plan(CallDesc call, std::string& why) const;
  void replace(Ref<PlanEntry> plan, std::optional<uint32_t> added);

  const Access& made() const { return draft_.outputs_of(product())[0]; }
  const Access& taken() const { return draft_.inputs_of(last())[taken_]; }
  const Access& result() const { return draft_.outputs_of(last())[0]; }

  Draft& draft_;
  uint32_t first_ = 0, last_, taken_;
};

}  // namespace tenon::graph
