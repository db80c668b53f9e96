#include <utility>
#include <vector>

#include <tenon/core/autograd/pass_targets.h>

namespace tenon {

PassTargets::PassTargets(std::span<const Tensor> outputs, std::span<const Tensor> targets) {
  for (auto& t : targets) {
    const Edge e = edge_of(t);
    if (e.leaf) leaves_.insert(e.leaf.get());
    if (e.node) nodes_.insert(e.node.get());
  }
  for (auto& o : outputs) find_useful(edge_of(o).node.get());
}

bool PassTargets::lead_from(const Edge& e) const {
  return e.leaf ? leaves_.contains(e.leaf.get()) : lead_from(*e.node) || contain(*e.node);
}

// Depth first, but without recursion, because graphs can be deep.
void PassTargets::find_useful(const Node* root) {
  if (!root || !seen_.emplace(root).second) return;
  std::vector<std::pair<const Node*, size_t>> stack{{root, 0}};
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next < node->edges.size()) {
      auto& e = node->edges[next++];
      if (e.leaf && leaves_.contains(e.leaf.get())) useful_.insert(node);
      if (e.node && seen_.insert(e.node.get()).second) {
        stack.emplace_back(e.node.get(), 0);
      } else if (e.node && (lead_from(*e.node) || contain(*e.node))) {
        useful_.insert(node);
      }
      continue;
    }
    // Any target may have been behind it, so the pass has to get there, where it ends.
    if (node->stands_in) useful_.insert(node);
    const bool useful = lead_from(*node) || contain(*node);
    stack.pop_back();
    if (useful && !stack.empty()) useful_.insert(stack.back().first);
  }
}

}  // namespace tenon
