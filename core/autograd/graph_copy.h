// The part of the recorded graph that one call made, without its values. With the values of another
// call that did the same, it is the graph of that call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/core/autograd/node.h>
#include <tenon/core/graph/open_trace.h>
#include <tenon/core/graph/program_ref.h>

namespace tenon {

class GraphCopy {
 public:
  // A tensor that rules read.
  struct KeptTensor {
    TensorImpl* tensor;  // as long as the graph of the call lives
    uint32_t handles;    // that the graph has
  };
  // An argument of the call, as it was when the call began.
  struct Argument {
    Edge edge;
    DType dtype = DType::f32;
    Device device;
    Shape shape;
  };
  // Where gradients leave the graph: a leaf, or an argument of the call.
  struct Target {
    int32_t argument = -1;
    graph::ProgramRef<TensorImpl> leaf;
    DType dtype = DType::f32;
    Device device;
    Shape shape;
  };
  // A tensor of the call through which backward passes enter.
  struct Root {
    uint32_t result = 0;
    uint32_t node = 0, output = 0;
    DType dtype = DType::f32;
    Device device;
    Shape shape;
  };
  struct Difference {
    std::string text;  // empty if there is none
    bool by_value = false;
  };

  // Nodes with numbers up to `start` were there before the call.
  GraphCopy(uint64_t start, std::vector<Argument> arguments)
      : start_(start), arguments_(std::move(arguments)) {}
  bool is_older(const Node& node) const { return node.sequence <= start_; }
  // Adds a result of the call and what leads to it.
  void add_root(const Tensor& tensor, uint32_t result);
  // Ends the copying. Returns why the graph cannot be copied; null if it could.
  const char* finish();

  // Runs a backward pass over the graph with these values, of which rule `i` of a node expects the
  // given versions, as the engine would through the graph of the call. `grads` are those of the
  // roots, undefined where there is none. Returns the gradients of the targets that are needed.
  std::vector<Tensor> backward(std::span<const Tensor> grads, std::span<const Tensor> values,
                               std::span<const uint64_t> versions,
                               std::span<const bool> needed) const;
  Difference compare(const GraphCopy& later) const { return compare(later, false); }
  // The same, where all numbers may differ that can follow from the sizes of arguments.
  Difference compare_but_sizes(const GraphCopy& later) const { return compare(later, true); }
  // Visits these numbers, while nobody else uses the copy.
  void visit(graph::NumberVisitor& visitor);
  // Returns one that shares nothing with this.
  GraphCopy apart() const;

  const std::vector<KeptTensor>& kept_tensors() const { return held_; }
  const std::vector<Target>& targets() const { return targets_; }
  const std::vector<Root>& roots() const { return roots_; }
  size_t size() const { return nodes_.size(); }

 private:
  struct EdgeCopy {
    int32_t node = -1;  // or a target; none of both where there is no gradient
    uint32_t output = 0;
    int32_t target = -1;
    bool operator==(const EdgeCopy&) const = default;
  };
  struct SavedCopy {
    uint32_t value = 0;
    uint32_t index = 0;
    uint64_t behind = 0;  // versions by which the value changed after it was saved
    bool operator==(const SavedCopy&) const = default;
  };
  struct NodeCopy {
    Ref<Node> node;  // without edges and values
    std::vector<EdgeCopy> edges;
    std::vector<SavedCopy> inputs, outputs;
  };

  void find(Node* node);
  const char* add_node(Node& node);
  int32_t target_of(const Edge& edge);
  uint32_t hold(const Tensor& value);
  std::vector<SavedCopy> copy_saved(const std::vector<Saved>& all);
  Ref<Node> make_node(const NodeCopy& copy, std::span<const Ref<Node>> before,
                      std::span<const Tensor> stand_ins, std::span<const Tensor> values,
                      std::span<const uint64_t> versions) const;
  Difference compare(const GraphCopy& later, bool any_size) const;
  static Difference compare(const NodeCopy& a, const NodeCopy& b, bool any_size);

  uint64_t start_;
  std::vector<Argument> arguments_;  // until finish()
  std::vector<Ref<Node>> found_;     // until finish()
  std::unordered_map<const Node*, uint32_t> places_;
  std::unordered_map<const TensorImpl*, uint32_t> held_places_;

  std::vector<NodeCopy> nodes_;  // the oldest first
  std::vector<KeptTensor> held_;
  std::vector<Target> targets_;
  std::vector<Root> roots_;
};

}  // namespace tenon
