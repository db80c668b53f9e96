// The recorded graph: a node for each call of an operator.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/core/autograd/hook_list.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/dispatch/record.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

class DeviceContext;
class Recomputation;

// Where a gradient goes next: to an output of an earlier node, or to a leaf. An edge that has
// neither ends here.
struct Edge {
  Ref<Node> node;
  uint32_t output = 0;
  Ref<TensorImpl> leaf;
  explicit operator bool() const { return node || leaf; }
  bool operator==(const Edge&) const = default;
};
// Returns the edge of a tensor, which is empty if the tensor requires no gradient.
Edge edge_of(const Tensor& tensor);

// A value that the gradient rule will read. An output of its own node is kept without its history,
// which would be a cycle. What was computed inside a checkpoint is not kept but computed again: it
// has no value, and the `version` is its number in the recomputation of the node.
struct Saved {
  Tensor value;
  uint64_t version = 0;
  uint32_t index = 0;  // the number of the input or output
};

// Whether a comparison treats two shapes as equal. With `any_size`, these only need the same number
// of dimensions.
inline bool same_shape(const Shape& a, const Shape& b, bool any_size) {
  return any_size ? a.size() == b.size() : a == b;
}

// The gradient rule of a node without an operator, such as that of an autograd::Function. The rule
// itself decides what it reads, and the node's `inputs` and `outputs` contain exactly that.
class NodeRule {
 public:
  explicit NodeRule(std::string name) : name(std::move(name)) {}
  virtual ~NodeRule() = default;
  // `saved` has the saved inputs at their indices, and `outputs` the saved outputs.
  virtual std::vector<Tensor> backward(std::span<const Tensor> grads, std::span<const Tensor> saved,
                                       std::span<const Tensor> outputs,
                                       std::span<const bool> needed) const = 0;
  // Why this rule cannot replace that of a later call that did the same with other tensors; the
  // text is empty if it can. `by_value`: both rules keep values, and one of these differs.
  struct Difference {
    std::string text;
    bool by_value = false;
  };
  // `any_size`: shapes may differ, but not in their number of dimensions.
  virtual Difference compare(const NodeRule&, bool /*any_size*/) const {
    return {"the gradient of " + name + " keeps what cannot be compared"};
  }
  // Returns a rule for a call of other sizes: `change` is applied to each shape that the rule has.
  // Returns null if the rule cannot be changed in this way.
  virtual std::shared_ptr<NodeRule> with_shapes(
      const std::function<void(Shape&)>& /*change*/) const {
    return nullptr;
  }
  const std::string name;
  size_t num_saved = 0;          // the largest index of a saved input, plus 1
  bool checks_versions = false;  // whether it also gets saved tensors that were changed
};

struct Node : RefCounted, Pooled<Node> {
  uint64_t sequence = 0;  // consumers have higher numbers than what they consume
  const Op* op = nullptr;
  std::shared_ptr<NodeRule> rule;  // in place of an operator
  std::unique_ptr<Attrs> attrs;    // null if there are none
  std::vector<Scalar> scalars;
  std::vector<Edge> edges;  // one for each input
  std::vector<Saved> inputs, outputs;
  std::vector<Shape> input_shapes;
  std::vector<DType> input_dtypes;
  uint64_t inputs_with_channels_last = 0;        // bit i: input i had a format of channels
  std::shared_ptr<Recomputation> recomputation;  // that of the checkpoint in which it was recorded
  NodeHooks hooks;
  uint32_t num_outputs = 0;
  const PathNode* path = nullptr;
  // A lock guards `inputs`, `outputs` and `released`, because two threads may run backward passes
  // through one node.
  bool released = false;            // a backward pass has freed what was saved
  bool saves = false;               // whether there are saved values at all; `record` sets it once
  bool stands_in = false;           // for a history that was spent, of which it has no edges
  DeviceContext* stream = nullptr;  // that of the forward call, if it was a further one of a device
  Node* next_to_end = nullptr;

  const char* name() const { return rule ? rule->name.c_str() : op->name; }
  // Returns the gradients of the inputs that are `needed`, given those of the outputs. The caller
  // has entered the module of `path`.
  std::vector<Tensor> backward(std::span<const Tensor> grads, std::span<const bool> needed) const;
  void release_saved();

 private:
  Tensor unpack(const Saved& saved, bool is_output) const;
  void refuse_released() const;
};

// Tensors that a rule leaves for a later rule of the same backward pass, under an address of its
// own. They end with the pass.
class PassValues {
 public:
  PassValues();  // those of the pass that this thread begins
  ~PassValues();
  PassValues(const PassValues&) = delete;
  PassValues& operator=(const PassValues&) = delete;
  static void leave(const void* key, std::vector<Tensor> tensors);
  // Returns and forgets what was left; nothing if nothing was.
  static std::vector<Tensor> take(const void* key);

 private:
  std::unordered_map<const void*, std::vector<Tensor>> left_;
  PassValues* const before_;  // the pass in which this one runs
};

// Returns a new node for these inputs, of which undefined ones have no gradient, and for these
// results. Its outputs are added by `record_output`, what it saves by `save_value`.
Ref<Node> new_node(std::unique_ptr<NodeRule> rule, std::span<const Tensor> inputs,
                   std::span<Tensor* const> results);
void record_output(const Ref<Node>& node, const Tensor& output, uint32_t index);
// Returns what a node keeps of an input, or of output `index` of its own.
Saved save_value(Node& node, const Tensor& value, uint32_t index, bool is_output);

}  // namespace tenon
