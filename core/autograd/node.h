// The recorded graph: a node for each call of an operator.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include <tenon/core/base/module_path.h>
#include <tenon/core/dispatch/record.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

// Where a gradient goes next: to an output of an earlier node, or to a leaf. An edge that has
// neither ends here.
struct Edge {
  Ref<Node> node;
  uint32_t output = 0;
  Ref<TensorImpl> leaf;
  explicit operator bool() const { return node || leaf; }
};
// Returns the edge of a tensor, which is empty if the tensor requires no gradient.
Edge edge_of(const Tensor& tensor);

// A value that the gradient rule will read. An output of its own node is kept without its history,
// which would be a cycle.
struct Saved {
  Tensor value;
  uint64_t version = 0;
  uint32_t index = 0;  // the number of the input or output
};

struct Node : RefCounted, Pooled<Node> {
  uint64_t sequence = 0;  // consumers have higher numbers than what they consume
  const Op* op = nullptr;
  std::unique_ptr<Attrs> attrs;  // null if there are none
  std::vector<Scalar> scalars;
  std::vector<Edge> edges;  // one for each input
  std::vector<Saved> inputs, outputs;
  std::vector<Shape> input_shapes;
  std::vector<DType> input_dtypes;
  std::vector<Device> input_devices;
  uint32_t num_outputs = 0;
  const PathNode* path = nullptr;
  // A lock guards `inputs`, `outputs` and `released`, because two threads may run backward passes
  // through one node.
  bool released = false;  // a backward pass has freed what was saved
  bool saves = false;     // whether there are saved values at all; `record` sets it once
  Node* next_to_end = nullptr;

  // Returns the gradients of the inputs that are `needed`, given those of the outputs. The caller
  // has entered the module of `path`.
  std::vector<Tensor> backward(std::span<const Tensor> grads, std::span<const bool> needed) const;
  void release_saved();

 private:
  void unpack(const Saved& saved, bool is_output, Tensor& value) const;
};

}  // namespace tenon
