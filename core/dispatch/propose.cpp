#include <algorithm>
#include <vector>

#include <tenon/core/dispatch/propose.h>
#include <tenon/core/layout.h>

namespace tenon {

namespace {

// What the key of a plan knows of the strides: of a contiguous tensor the format alone.
Strides known_strides(const TensorDesc& t) {
  return t.contiguous ? strides_in(t.shape, t.format) : t.strides;
}

bool in_own_order(const Shape& order) { return std::is_sorted(order.begin(), order.end()); }

}  // namespace

void order_dimensions(PlanEntry& entry) {
  const CallDesc& call = entry.call;
  if (entry.outputs.empty()) return;
  const Shape& shape = entry.outputs[0].shape;
  Shape order;
  if (call.format != preserve_format) {
    order = order_of(shape.size(), call.format);
  } else {
    std::vector<Strides> operands;
    if (call.out) operands.push_back(known_strides(*call.out));
    for (auto& t : call.inputs)
      if (t) operands.push_back(expanded_strides(t->shape, known_strides(*t), shape));
    order = memory_order(shape, operands);
  }
  if (in_own_order(order)) return;
  entry.order = order;
  for (auto& o : entry.outputs) {
    if (o.kind != OutputKind::made) continue;
    o.strides = strides_in_order(o.shape, order);
    o.row_major = false;
  }
}

// The i-th tensors of all lists belong together.
bool lie_alike(const PlanEntry& entry) {
  const CallDesc& call = entry.call;
  if (!call.op->by_element || call.out || call.inputs.empty()) return false;
  for (auto& o : entry.outputs)
    if (o.kind == OutputKind::made) return false;
  const auto n = static_cast<size_t>(call.attrs.get_int("n"));
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const auto &t = call.inputs[i], &first = call.inputs[i % n];
    if (!t) continue;
    if (!first || !(t->shape == first->shape) || !is_dense(t->shape, t->strides)) return false;
    for (size_t d = 0; d < t->shape.size(); ++d)
      if (t->shape[d] > 1 && t->strides[d] != first->strides[d]) return false;
  }
  return true;
}

MemoryFormat proposed_format(const CallDesc& call) {
  if (call.out || call.op->pointwise || call.flat) return contiguous_format;
  if (call.format != preserve_format) return call.format;
  for (size_t i = 0; i < std::min<size_t>(call.inputs.size(), 32); ++i)
    if (call.op->keeps_format >> i & 1 && call.inputs[i] && moves_channels(call.inputs[i]->format))
      return call.inputs[i]->format;
  return contiguous_format;
}

void set_format(PlanEntry& entry, MemoryFormat format) {
  for (auto& o : entry.outputs) {
    if (o.kind != OutputKind::made) continue;
    o.row_major = !moves_channels(format) || o.shape.size() != rank_of(format);
    if (!o.row_major) o.strides = strides_in(o.shape, format);
  }
}

bool any_differs(const CallDesc& call, MemoryFormat format) {
  return std::any_of(call.inputs.begin(), call.inputs.end(), [&](auto& t) {
    return t && t->shape.size() == rank_of(format) && !has_format(t->shape, t->strides, format);
  });
}

}  // namespace tenon
