#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/autograd/graph_copy.h>
#include <tenon/core/autograd/lanes.h>

namespace tenon {

namespace {

bool is_number(const Attr& a) {
  return a.kind == TN_ATTR_INT || a.kind == TN_ATTR_FLOAT || a.kind == TN_ATTR_INTS;
}

bool same_attr(const Attr& a, const Attr& b, bool any_size) {
  if (std::strcmp(a.name, b.name) != 0 || a.kind != b.kind || a.num_ints != b.num_ints)
    return false;
  if (any_size && is_number(a)) return true;
  return a.i == b.i && std::memcmp(&a.f, &b.f, sizeof a.f) == 0 &&
         (!a.s || !b.s ? a.s == b.s : std::strcmp(a.s, b.s) == 0) &&
         std::equal(a.ints, a.ints + a.num_ints, b.ints);
}

bool same_attrs(const Node& a, const Node& b, bool any_size) {
  const auto x = a.attrs ? a.attrs->all() : no_attrs.all(),
             y = b.attrs ? b.attrs->all() : no_attrs.all();
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [any_size](auto& one, auto& other) { return same_attr(one, other, any_size); });
}

bool same_shapes(const Node& a, const Node& b, bool any_size) {
  return std::equal(
      a.input_shapes.begin(), a.input_shapes.end(), b.input_shapes.begin(), b.input_shapes.end(),
      [any_size](auto& one, auto& other) { return same_shape(one, other, any_size); });
}

// The first two numbers of an operator that draws are of the generator.
size_t first_number(const Node& node) { return node.op && node.op->draws ? 2 : 0; }

bool same_numbers(const Node& a, const Node& b, bool any_size) {
  const size_t first = first_number(a);
  return a.scalars.size() == b.scalars.size() &&
         (any_size || a.scalars.size() <= first ||
          std::memcmp(a.scalars.data() + first, b.scalars.data() + first,
                      (a.scalars.size() - first) * sizeof(Scalar)) == 0);
}

// Returns a node with the rule of another, without its number, edges and values.
Ref<Node> with_rule_of(const Node& node) {
  auto made = Ref<Node>::adopt(new Node);
  made->op = node.op, made->rule = node.rule;
  if (node.attrs) made->attrs = std::make_unique<Attrs>(*node.attrs);
  made->scalars = node.scalars;
  made->input_shapes = node.input_shapes, made->input_dtypes = node.input_dtypes;
  made->inputs_with_channels_last = node.inputs_with_channels_last;
  made->num_outputs = node.num_outputs;
  made->path = node.path, made->saves = node.saves, made->stream = node.stream;
  return made;
}

// A tensor that only says of what shape gradients are. Nobody reads its values.
Tensor stand_in(const Shape& shape, DType dtype, Device device) {
  return Tensor(
      Ref<TensorImpl>::adopt(new TensorImpl(dtype, device, shape, shape.numel(), Ref<Storage>())));
}

}  // namespace

// ---- copying

void GraphCopy::add_root(const Tensor& tensor, uint32_t result) {
  const Edge edge = edge_of(tensor);
  for (auto& root : roots_)
    if (found_[root.node] == edge.node && root.output == edge.output) return;
  find(edge.node.get());
  roots_.push_back({result, places_.at(edge.node.get()), edge.output, tensor.dtype(),
                    tensor.device(), tensor.shape()});
}

// Finds the nodes of the call from here on, without recursion, because graphs can be deep.
void GraphCopy::find(Node* root) {
  std::vector<Node*> rest{root};
  while (!rest.empty()) {
    Node* const node = rest.back();
    rest.pop_back();
    const auto place = static_cast<uint32_t>(found_.size());
    if (is_older(*node) || !places_.try_emplace(node, place).second) continue;
    found_.push_back(Ref<Node>::share(node));
    for (auto& edge : node->edges)
      if (edge.node) rest.push_back(edge.node.get());
  }
}

const char* GraphCopy::finish() {
  std::vector<Node*> entered;
  for (auto& root : roots_) entered.push_back(found_[root.node].get());
  std::sort(found_.begin(), found_.end(),
            [](auto& a, auto& b) { return a->sequence < b->sequence; });
  for (uint32_t i = 0; i < found_.size(); ++i) places_[found_[i].get()] = i;
  for (size_t i = 0; i < roots_.size(); ++i) roots_[i].node = places_.at(entered[i]);
  const char* why = nullptr;
  for (size_t i = 0; i < found_.size() && !why; ++i) why = add_node(*found_[i]);
  found_.clear();
  places_.clear();
  held_places_.clear();
  arguments_.clear();
  return why;
}

const char* GraphCopy::add_node(Node& node) {
  if (node.hooks.any()) return "a tensor that is made inside has a hook, or retains its gradient";
  if (node.recomputation) return "a gradient checkpoint is inside";
  for (auto& edge : node.edges)
    if (edge.leaf && edge.leaf->autograd && edge.leaf->autograd->replicas)
      return "the gradient of a parameter with replicas (DataParallel) is for later; call "
             "backward() "
             "inside";
  NodeCopy& copy = nodes_.emplace_back();
  for (auto& edge : node.edges) {
    EdgeCopy& c = copy.edges.emplace_back();
    if (!edge) continue;
    if (const auto inside = places_.find(edge.node.get()); inside != places_.end())
      c = {static_cast<int32_t>(inside->second), edge.output, -1};
    else
      c.target = target_of(edge);
    if (c.node < 0 && c.target < 0)
      return "it uses a tensor from outside that has a history; pass that as an argument";
  }
  copy.inputs = copy_saved(node.inputs);
  copy.outputs = copy_saved(node.outputs);
  copy.node = with_rule_of(node);
  return nullptr;
}

// Returns the number of a target, or -1 for a tensor from outside that is none.
int32_t GraphCopy::target_of(const Edge& edge) {
  Target target;
  const auto argument = std::find_if(arguments_.begin(), arguments_.end(),
                                     [&](const Argument& a) { return a.edge == edge; });
  if (argument != arguments_.end())
    target = {static_cast<int32_t>(argument - arguments_.begin()),
              {},
              argument->dtype,
              argument->device,
              argument->shape};
  else if (edge.leaf)
    target = {-1, edge.leaf, edge.leaf->dtype, edge.leaf->device, edge.leaf->shape};
  else
    return -1;
  for (size_t i = 0; i < targets_.size(); ++i)
    if (targets_[i].argument == target.argument && targets_[i].leaf == target.leaf)
      return static_cast<int32_t>(i);
  targets_.push_back(std::move(target));
  return static_cast<int32_t>(targets_.size()) - 1;
}

uint32_t GraphCopy::hold(const Tensor& value) {
  const auto [found, fresh] =
      held_places_.try_emplace(value.impl().get(), static_cast<uint32_t>(held_.size()));
  if (fresh) held_.push_back({value.impl().get(), 0});
  ++held_[found->second].handles;
  return found->second;
}

std::vector<GraphCopy::SavedCopy> GraphCopy::copy_saved(const std::vector<Saved>& all) {
  std::vector<SavedCopy> copies;
  for (auto& saved : all)
    copies.push_back({hold(saved.value), saved.index, saved.value.version() - saved.version});
  return copies;
}

// ---- backward

Ref<Node> GraphCopy::make_node(const NodeCopy& copy, std::span<const Ref<Node>> before,
                               std::span<const Tensor> stand_ins, std::span<const Tensor> values,
                               std::span<const uint64_t> versions) const {
  auto made = with_rule_of(*copy.node);
  made->sequence = next_node_number(0);
  for (auto& edge : copy.edges) {
    Edge& e = made->edges.emplace_back();
    if (edge.node >= 0)
      e = {before[static_cast<size_t>(edge.node)], edge.output, nullptr};
    else if (edge.target >= 0)
      e.leaf = stand_ins[static_cast<size_t>(edge.target)].impl();
  }
  const auto fill = [&](std::vector<Saved>& saved, const std::vector<SavedCopy>& from) {
    for (auto& s : from) saved.push_back({values[s.value], versions[s.value] - s.behind, s.index});
  };
  fill(made->inputs, copy.inputs);
  fill(made->outputs, copy.outputs);
  return made;
}

std::vector<Tensor> GraphCopy::backward(std::span<const Tensor> grads,
                                        std::span<const Tensor> values,
                                        std::span<const uint64_t> versions,
                                        std::span<const bool> needed) const {
  std::vector<Tensor> stand_ins, inputs, outputs, given;
  for (size_t i = 0; i < targets_.size(); ++i) {
    stand_ins.push_back(stand_in(targets_[i].shape, targets_[i].dtype, targets_[i].device));
    impl_of(stand_ins[i]).meta().requires_grad = true;
    if (needed[i]) inputs.push_back(stand_ins[i]);
  }
  std::vector<Ref<Node>> nodes;
  for (auto& copy : nodes_) nodes.push_back(make_node(copy, nodes, stand_ins, values, versions));
  for (size_t i = 0; i < roots_.size(); ++i) {
    if (!grads[i].defined()) continue;
    given.push_back(grads[i]);
    outputs.push_back(stand_in(roots_[i].shape, roots_[i].dtype, roots_[i].device));
    record_output(nodes[roots_[i].node], outputs.back(), roots_[i].output);
  }
  return grad(outputs, inputs, given, {.allow_unused = true});
}

// ---- comparing

GraphCopy::Difference GraphCopy::compare(const NodeCopy& a, const NodeCopy& b, bool any_size) {
  const Node &x = *a.node, &y = *b.node;
  if (x.op != y.op || !x.rule != !y.rule || !same_attrs(x, y, any_size) || a.edges != b.edges ||
      a.inputs != b.inputs || a.outputs != b.outputs || !same_shapes(x, y, any_size) ||
      x.input_dtypes != y.input_dtypes ||
      x.inputs_with_channels_last != y.inputs_with_channels_last || x.num_outputs != y.num_outputs)
    return {fmt::format("the history of a result had {}, and then {}", x.name(), y.name())};
  if (!same_numbers(x, y, any_size))
    return {fmt::format("a number that the gradient of {} uses differs from before", x.name()),
            true};
  if (!x.rule) return {};
  auto rule = x.rule->compare(*y.rule, any_size);
  return {std::move(rule.text), rule.by_value};
}

GraphCopy::Difference GraphCopy::compare(const GraphCopy& later, bool any_size) const {
  const auto same_target = [any_size](const Target& a, const Target& b) {
    return a.argument == b.argument && a.leaf == b.leaf && a.dtype == b.dtype &&
           a.device == b.device && same_shape(a.shape, b.shape, any_size);
  };
  const auto same_root = [any_size](const Root& a, const Root& b) {
    return a.result == b.result && a.node == b.node && a.output == b.output && a.dtype == b.dtype &&
           a.device == b.device && same_shape(a.shape, b.shape, any_size);
  };
  if (nodes_.size() != later.nodes_.size() || held_.size() != later.held_.size() ||
      !std::equal(roots_.begin(), roots_.end(), later.roots_.begin(), later.roots_.end(),
                  same_root))
    return {"the results had another history than before"};
  if (!std::equal(targets_.begin(), targets_.end(), later.targets_.begin(), later.targets_.end(),
                  same_target))
    return {"the results led to other parameters or arguments than before"};
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (auto found = compare(nodes_[i], later.nodes_[i], any_size); !found.text.empty())
      return found;
  return {};
}

// ---- calls of other sizes

void GraphCopy::visit(graph::NumberVisitor& visitor) {
  const std::function<void(Shape&)> visit_shape = [&](Shape& shape) { visitor.shape(shape); };
  for (auto& copy : nodes_) {
    Node& node = *copy.node;
    if (node.attrs) visitor.attributes(*node.attrs);
    for (auto& shape : node.input_shapes) visitor.shape(shape);
    for (size_t i = first_number(node); i < node.scalars.size(); ++i)
      visitor.scalar(node.scalars[i]);
    if (node.rule)
      if (auto rule = node.rule->with_shapes(visit_shape)) node.rule = std::move(rule);
  }
  for (auto& target : targets_) visitor.shape(target.shape);
  for (auto& root : roots_) visitor.shape(root.shape);
}

GraphCopy GraphCopy::apart() const {
  GraphCopy made = *this;
  for (auto& copy : made.nodes_) copy.node = with_rule_of(*copy.node);
  return made;
}

}  // namespace tenon
