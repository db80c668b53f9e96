#include <algorithm>

#include <tenon/core/graph/passes/pointwise_layout.h>
#include <tenon/core/layout.h>

namespace tenon::graph {

namespace {

// A plan that was made for a number of elements: all its tensors are lines.
PointwiseLayout layout_of_line(const TraceNode& node) {
  PointwiseLayout layout;
  if (const int64_t numel = node.shape.numel(); numel != 1) layout.shape = {numel};
  for (auto& input : node.plan->call.inputs)
    layout.strides.push_back(input ? Strides(Shape::filled(layout.shape.size(), 1)) : Strides());
  return layout;
}

Strides strides_of_result(const PlanEntry& plan) {
  const PlanOutput& out = plan.outputs[0];
  if (plan.call.out) return plan.call.out->strides;
  if (out.kind == OutputKind::in_place) return plan.call.inputs[out.input]->strides;
  return out.row_major ? Shape::row_major(out.shape) : out.strides;
}

}  // namespace

std::optional<PointwiseLayout> pointwise_layout(const TraceNode& node) {
  const PlanEntry& plan = *node.plan;
  if (!plan.call.op->pointwise || plan.outputs.size() != 1 || node.num_outputs != 1)
    return std::nullopt;
  if (node.flat) return layout_of_line(node);
  const Shape& shape = plan.outputs[0].shape;
  const Strides result = strides_of_result(plan);
  if (plan.outputs[0].kind == OutputKind::absent || !is_dense(shape, result)) return std::nullopt;
  const DimsByStride by(shape, result);
  PointwiseLayout layout;
  for (size_t i = by.count; i-- > 0;) layout.shape.push_back(shape[by.dims[i]]);
  for (auto& input : plan.call.inputs) {
    Strides& strides = layout.strides.emplace_back();
    if (!input) continue;
    const Strides expanded = expanded_strides(input->shape, input->strides, shape);
    for (size_t i = by.count; i-- > 0;) strides.push_back(expanded[by.dims[i]]);
  }
  return layout;
}

PointwiseLayout row_layout(const TensorDesc& operand) {
  const int64_t row = operand.shape.back(), rows = operand.numel / row;
  PointwiseLayout layout;
  if (rows > 1) layout.shape.push_back(rows);
  layout.shape.push_back(row);
  layout.strides.push_back(Shape::row_major(layout.shape));
  return layout;
}

std::optional<Shape> common_refinement(const Shape& a, const Shape& b) {
  int64_t reversed[2 * Shape::max_rank];
  size_t count = 0, i = a.size(), j = b.size();
  int64_t x = 1, y = 1;
  for (;;) {
    while (x == 1 && i > 0) x = a[--i];
    while (y == 1 && j > 0) y = b[--j];
    if (x == 1 && y == 1) break;
    const int64_t step = std::min(x, y);
    if (step == 1 || x % step || y % step || count == Shape::max_rank) return std::nullopt;
    reversed[count++] = step;
    x /= step, y /= step;
  }
  Shape shape;
  while (count > 0) shape.push_back(reversed[--count]);
  return shape;
}

Strides refined_strides(const Shape& shape, const Strides& strides, const Shape& refinement) {
  Strides result = Shape::filled(refinement.size(), 0);
  size_t at = refinement.size();
  for (size_t d = shape.size(); d-- > 0;) {
    int64_t stride = strides[d];
    for (int64_t left = shape[d]; left > 1; left /= refinement[at]) {
      result[--at] = stride;
      stride *= refinement[at];
    }
  }
  return result;
}

void merge_dimensions(Shape& shape, std::vector<Strides>& strides) {
  for (size_t d = shape.size(); d-- > 1;) {
    const bool in_one_step = std::all_of(strides.begin(), strides.end(), [&](const Strides& s) {
      return s.empty() || s[d - 1] == s[d] * shape[d];
    });
    if (!in_one_step) continue;
    shape[d - 1] *= shape[d];
    shape.erase(d);
    for (auto& s : strides)
      if (!s.empty()) {
        s[d - 1] = s[d];
        s.erase(d);
      }
  }
}

}  // namespace tenon::graph
