// Folds a pointwise node into the product, convolution or batch norm whose result it reads. That
// operator then computes the pointwise function itself, while the result is in the cache. The new
// node takes the place of the pointwise one.
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
  // Returns the folding of the pointwise node `last`, whose input `taken` is the other node's
  // result. It reads all inputs element by element. Returns nothing if folding is impossible:
  // something else reads that result, or an input of the other node has changed before `last` runs.
  static std::optional<Folding> of(Draft& draft, uint32_t last, uint32_t taken);

  // Return the two nodes, and the place of the first.
  const TraceNode& product() const { return draft_.trace.nodes[first_]; }
  const TraceNode& last() const { return draft_.trace.nodes[last_]; }
  uint32_t place() const { return first_; }

  // Replaces both nodes by one, or notes why that is impossible. `change` turns the call of the
  // product into that of the new node. If `added` is given, the new node also reads that input of
  // `last`. It has the numbers of both calls. Returns whether the nodes were replaced.
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
