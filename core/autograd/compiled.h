// The history of what a replay of a compiled function returns: one node, whose backward pass is a
// compiled function itself. Its function runs the engine over a copy of the graph that a recorded
// call had, with the values of the present call, and so does the same as eager execution for any
// results that have a gradient and any tensors whose gradient is wanted.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include <tenon/core/autograd/graph_copy.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/graph/compile.h>
#include <tenon/core/graph/history.h>
#include <tenon/core/graph/program_ref.h>

namespace tenon {

class CompiledHistory final : public graph::History,
                              public std::enable_shared_from_this<CompiledHistory> {
 public:
  CompiledHistory(std::span<const Tensor* const> arguments, const CompileOptions& options);

  bool look(std::span<const Tensor> results) override;
  bool covers(const TensorImpl& result) const override { return results_.contains(&result); }
  std::span<KeptTensor> kept_tensors() override { return held_; }
  void settle(graph::Trace& trace) override;
  graph::Match compare(graph::History& now) const override;
  const char* obstacle(std::span<const Tensor* const> arguments) const override;
  void give(std::span<const Tensor* const> arguments, std::vector<Tensor>& results) override;
  std::string compare_but_sizes(const History& now) const override;
  void note_arguments(const History& second) override;
  void visit(graph::NumberVisitor& visitor) override;
  std::shared_ptr<History> copy() const override;
  const char* fault(std::span<const Tensor* const> arguments,
                    const graph::Trace& trace) const override;
  void join(const History& other, const graph::Sizes& sizes) override;
  const graph::Sizes& sizes() const override { return sizes_; }
  bool has_passes_of(const History& other) const override;
  std::string explain() const override;
  std::string explain_passes() const override;

  // Returns the gradients of all targets that are needed, given those of the roots, and the values
  // of a call with the versions that its rules expect.
  std::vector<Tensor> backward(std::span<const Tensor> grads, std::span<const Tensor> values,
                               std::span<const uint64_t> versions, std::span<const bool> needed);

 private:
  // A value that rules read: a part of an argument, or what follows the results.
  struct Value {
    int32_t argument = -1;
    DType dtype = DType::f32;
    Shape shape;
    Strides strides;
    uint64_t offset = 0;  // in bytes, from the first of the argument
  };
  // The backward programs for one choice of gradients that are wanted.
  struct Pass {
    std::vector<bool> needed;
    detail::CompiledCalls calls;
  };
  // Those of histories that do the same, sizes aside.
  struct Passes {
    ForkMutex mutex{ForkOrder::tables};  // of the list
    std::list<Pass> all;
  };

  void find_values();
  Tensor value_of(const Value& value, std::span<const Tensor* const> arguments,
                  Tensor*& next) const;
  // Returns null if there are so many choices already that this one gets no programs.
  detail::CompiledCalls* calls_for(std::span<const bool> needed);

  GraphCopy copy_;
  CompileOptions options_;                // of backward programs
  std::vector<const Tensor*> arguments_;  // until settle()
  std::vector<size_t> first_like_;        // of each argument: the first with the same edge
  // Arguments that are leaves, until the first replay; and those of them that were the same in both
  // recordings, so that nothing tells whether the function uses them as arguments.
  std::vector<graph::ProgramRef<TensorImpl>> leaves_, pinned_;
  std::unordered_set<const TensorImpl*> results_;  // that lead into the graph, until settle()
  std::vector<KeptTensor> held_;
  std::vector<Value> values_;
  size_t num_results_ = 0;
  std::shared_ptr<Passes> passes_ = std::make_shared<Passes>();
  graph::Sizes sizes_;  // of the call; none if it has no passes in common with other sizes
};

}  // namespace tenon
