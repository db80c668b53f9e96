// What a backward pass is asked for: the tensors of `grad`, and the part of the graph that leads to
// them.
#pragma once

#include <span>
#include <unordered_set>

#include <tenon/core/autograd/node.h>

namespace tenon {

class PassTargets {
 public:
  // The targets that are reached from the outputs, by way of any nodes.
  PassTargets(std::span<const Tensor> outputs, std::span<const Tensor> targets);

  // Whether the node's gradients themselves are asked for.
  bool contain(const Node& node) const { return nodes_.contains(&node); }
  // Whether a target lies behind the node, or may have.
  bool lead_from(const Node& node) const { return useful_.contains(&node); }
  // Whether the edge leads to a target, or to a node behind which one lies.
  bool lead_from(const Edge& e) const;

 private:
  void find_useful(const Node* root);

  std::unordered_set<const TensorImpl*> leaves_;
  std::unordered_set<const Node*> nodes_, useful_, seen_;
};

}  // namespace tenon
