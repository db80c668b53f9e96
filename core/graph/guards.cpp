// When a program may run.
#include <algorithm>

#include <tenon/core/dispatch/replica.h>
#include <tenon/core/dispatch/shares_memory.h>
#include <tenon/core/graph/program.h>
#include <tenon/core/runtime/context.h>

namespace tenon::graph {

const TensorImpl* Program::tensor_of(const Input& input,
                                     std::span<const Tensor* const> arguments) const {
  if (input.argument >= 0) return arguments[static_cast<size_t>(input.argument)]->impl().get();
  const Leaf& leaf = trace_.leaves[static_cast<size_t>(input.leaf)];
  if (!leaf.tensor || !leaf.tensor->autograd) return nullptr;
  return leaf.tensor->autograd->grad.impl().get();
}

// A gradient that the function does not ask for is no obstacle: it is replaced, or stays.
const char* Program::obstacle_of_leaf(const Leaf& leaf) const {
  if (!leaf.tensor) return nullptr;
  if (is_let_go(*leaf.tensor)) return "a leaf that it uses does not exist any more";
  const AutogradMeta* meta = leaf.tensor->autograd.get();
  if (is_hooked(*leaf.tensor)) return "a parameter has hooks now";
  if ((meta && meta->replicas) != leaf.shared) return "a parameter may have replicas now, or not";
  if (!leaf.asked) return nullptr;
  if (leaf.shared && !meta->replicas->held.empty())
    return "an earlier pass left gradients on several devices (no_sync)";
  const Tensor* grad = meta && meta->grad.defined() ? &meta->grad : nullptr;
  if (!grad != !leaf.had)
    return "a leaf has a gradient and had none before, or has none and had one";
  if (!grad) return nullptr;
  const TensorImpl& g = impl_of(*grad);
  if (g.shape != leaf.shape || g.strides != leaf.strides || g.dtype != leaf.tensor->dtype ||
      g.device != leaf.tensor->device || g.autograd)
    return "a gradient lies in another way, or has a history";
  return nullptr;
}

namespace {
bool overlaps(uint64_t x_begin, uint64_t x_extent, uint64_t y_begin, uint64_t y_extent) {
  return x_begin < y_begin + std::max<uint64_t>(y_extent, 1) &&
         y_begin < x_begin + std::max<uint64_t>(x_extent, 1);
}
}  // namespace

const char* Program::obstacle_of_input(size_t k, Storage& storage, uint64_t offset) const {
  const Input& input = trace_.inputs[k];
  if (wiring_.pinned[k] && (input.id != &storage || input.offset != offset))
    return "an argument is another tensor than before";
  if (storage.written.load(std::memory_order_relaxed) < offset + input.extent)
    return "an argument has no values yet";
  if (wiring_.pinned[k]) return nullptr;
  for (size_t f = 0; f < fixed_.size(); ++f)
    if ((fixed_[f] == &storage ||
         lie_over(storage, offset, input.extent, *fixed_[f], 0, fixed_[f]->bytes)) &&
        (fixed_written_[f] || input_written_[k]))
      return "an argument is a tensor that the function also changes or reads in another way";
  return nullptr;
}

const char* Program::obstacle(std::span<const Tensor* const> arguments) const {
  for (auto* device : schedule_.devices)
    if (device->stream->own_capture()) return "a stream graph is captured";
  for (auto& part : trace_.parts)
    if (part.again && part.owner.expired()) return "an optimizer does not exist any more";
  for (auto* storage : fixed_)
    if (is_let_go(*storage)) return "a tensor that it uses does not exist any more";
  for (auto& result : trace_.results)
    if (result.outside && is_let_go(*result.outside))
      return "a tensor that it returns does not exist any more";
  for (auto& leaf : trace_.leaves)
    if (auto* why = obstacle_of_leaf(leaf)) return why;
  for (size_t k = 0; k < places_.size(); ++k) {
    const Input& input = trace_.inputs[k];
    places_[k] = {};
    const TensorImpl* t = tensor_of(input, arguments);
    if (!t) continue;
    if (input.is_leaf >= 0 && t != trace_.leaves[static_cast<size_t>(input.is_leaf)].tensor.get())
      return "an argument is another leaf than before";
    places_[k] = {t->storage.get(), static_cast<uint64_t>(t->offset) * size_of(t->dtype)};
    if (auto* why = obstacle_of_input(k, *t->storage, places_[k].second)) return why;
  }
  return obstacle_of_sharing();
}

// What lies in several inputs goes through one of them, so these have to keep their distance; one
// without elements takes a byte here, as when it is compared. Versions belong to memory: where one
// of two inputs in one memory is changed, its version counts for both, in find_change() and for
// what a history has of the other, so these have to stay in one memory, apart from each other.
void Program::find_neighbors() {
  for (size_t a = 0; a < trace_.inputs.size(); ++a)
    for (size_t b = a + 1; b < trace_.inputs.size(); ++b) {
      const Input &x = trace_.inputs[a], &y = trace_.inputs[b];
      if (x.id != y.id) continue;
      const bool overlap = overlaps(x.offset, x.extent, y.offset, y.extent);
      if (overlap || input_written_[a] || input_written_[b])
        neighbors_.push_back({a, b, static_cast<int64_t>(y.offset - x.offset), overlap});
    }
}

// Inputs that the program does not tell apart must lie as they did when it was made.
const char* Program::obstacle_of_sharing() const {
  for (auto& n : neighbors_) {
    const auto &a = places_[n.a], &b = places_[n.b];
    const bool fits = n.overlap ? static_cast<int64_t>(b.second - a.second) == n.distance
                                : !overlaps(a.second, trace_.inputs[n.a].extent, b.second,
                                            trace_.inputs[n.b].extent);
    if (a.first != b.first || !fits) return "arguments do not share memory any more as they did";
  }
  for (size_t a = 0; a < places_.size(); ++a)
    for (size_t b = a + 1; b < places_.size(); ++b) {
      const auto& [x, x_begin] = places_[a];
      const auto& [y, y_begin] = places_[b];
      if (!x || !y || (!input_written_[a] && !input_written_[b])) continue;
      if (x != y) {
        if (lie_over(*x, x_begin, trace_.inputs[a].extent, *y, y_begin, trace_.inputs[b].extent))
          return "arguments share memory that the function changes";
        continue;
      }
      const bool known = std::any_of(neighbors_.begin(), neighbors_.end(),
                                     [&](const Neighbors& n) { return n.a == a && n.b == b; });
      if (!known) return "arguments share memory that the function changes";
    }
  return nullptr;
}

bool Program::lies_as(const Trace& call) const {
  for (size_t k = 0; k < places_.size(); ++k)
    places_[k] = {call.inputs[k].id, call.inputs[k].offset};
  return !obstacle_of_sharing();
}

std::optional<std::pair<int32_t, int32_t>> Program::arguments_that_share() const {
  for (auto& n : neighbors_) {
    const int32_t a = trace_.inputs[n.a].argument, b = trace_.inputs[n.b].argument;
    if (n.overlap && a >= 0 && b >= 0) return std::pair(a, b);
  }
  return std::nullopt;
}

}  // namespace tenon::graph
