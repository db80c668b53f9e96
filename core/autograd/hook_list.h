// The hooks of tensors, as the backward pass finds them.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include <tenon/core/autograd/hooks.h>
#include <tenon/core/tensor.h>

namespace tenon {

// The hooks of one tensor. Any thread may add, remove and run them.
class HookList : public std::enable_shared_from_this<HookList> {
 public:
  HookHandle add(GradientHook hook);
  void remove(uint64_t id);
  // Returns the gradient that the hooks leave.
  Tensor run(Tensor gradient) const;
  bool empty() const;

 private:
  struct Entry {
    uint64_t id;
    std::shared_ptr<const GradientHook> hook;
  };
  std::vector<Entry> entries_;
  uint64_t next_id_ = 1;
};

// Where backward() leaves the gradient of a tensor that is no leaf. Its tensor and the node share
// it, so that neither owns the other.
struct RetainedGrad {
  Tensor grad;  // behind the lock of all gradients, in engine.cpp
};

// What a node has for its outputs, empty for most nodes.
class NodeHooks {
 public:
  ~NodeHooks();
  // The hooks of an output, which are made when they are first asked for.
  std::shared_ptr<HookList> list_of(uint32_t output);
  void retain(uint32_t output, std::shared_ptr<RetainedGrad> where);
  bool any() const { return slots_.load(std::memory_order_acquire) != nullptr; }
  // Runs the hooks, which replace gradients.
  void run(std::span<Tensor> gradients) const;
  // Calls visit(output, where) for each output whose gradient is kept.
  template <class F>
  void each_retained(F&& visit) const {
    for (auto& [output, where] : retained()) visit(output, *where);
  }

 private:
  struct Slots {
    std::vector<std::pair<uint32_t, std::shared_ptr<HookList>>> lists;
    std::vector<std::pair<uint32_t, std::shared_ptr<RetainedGrad>>> retained;
  };
  Slots& slots();
  std::vector<std::pair<uint32_t, std::shared_ptr<RetainedGrad>>> retained() const;
  std::atomic<Slots*> slots_{nullptr};
};

// Runs the hooks of a leaf.
Tensor run_leaf_hooks(const TensorImpl& leaf, Tensor gradient);

}  // namespace tenon
