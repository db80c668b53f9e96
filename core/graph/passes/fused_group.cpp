#include <algorithm>
#include <utility>

#include <tenon/core/error.h>
#include <tenon/core/graph/passes/fused_group.h>
#include <tenon/core/layout.h>

namespace tenon::graph {

namespace {

// The bytes from the first element to the end of the last.
uint64_t span_of(const Shape& shape, const Strides& strides, DType dtype) {
  int64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d) last += (shape[d] - 1) * strides[d];
  return (static_cast<uint64_t>(last) + 1) * size_of(dtype);
}

}  // namespace

std::optional<Member> member_of(const Draft& draft, uint32_t i) {
  const TraceNode& node = draft.trace.nodes[i];
  if (!node.plan || !node.plan->plan || node.draw >= 0 || !node.living.empty() ||
      node.plan->make_contiguous)
    return std::nullopt;
  const CallDesc& call = node.plan->call;
  if (can_be_fused_reduction(*call.op)) {
    const auto& x = call.inputs[0];
    if (call.out || node.num_outputs != 1 || node.num_inputs != 1 || !x || x->numel == 0 ||
        !can_be_fused_reduction(*call.op, call.attrs, *x) || x->shape.back() < 2)
      return std::nullopt;
    return Member{i, row_layout(*x), x->shape.back()};
  }
  if (!can_be_fused(*call.op)) return std::nullopt;
  auto layout = pointwise_layout(node);
  if (!layout) return std::nullopt;
  return Member{i, std::move(*layout)};
}

bool FusedGroup::fits(const Member& member) const {
  if (member.row && row_ && member.row != row_) return false;
  return member.numel() == numel_ || (row_ && !member.row && member.numel() * row_ == numel_);
}

std::optional<FusedGroup> FusedGroup::of(const Draft& draft, std::vector<Member> members) {
  FusedGroup group;
  group.members_ = std::move(members);
  const auto device_of = [&](const Member& m) { return draft.trace.nodes[m.node].plan->context; };
  const bool one_device =
      std::all_of(group.members_.begin(), group.members_.end(),
                  [&](const Member& m) { return device_of(m) == device_of(group.members_[0]); });
  if (!one_device || group.members_.size() > FusedProgram::kMaxSteps || !group.find_shape())
    return std::nullopt;
  try {
    for (auto& member : group.members_)
      if (!group.add_member(draft, member)) return std::nullopt;
  } catch (const Error&) {
    // A program cannot have this member, because of an attribute or a dtype, or has too many
    // tensors.
    return std::nullopt;
  }
  return group;
}

bool FusedGroup::find_shape() {
  for (auto& member : members_) {
    numel_ = std::max(numel_, member.numel());
    if (member.row && row_ && member.row != row_) return false;
    if (member.row) row_ = member.row;
  }
  if (row_ && numel_ % row_ != 0) return false;
  shape_ = numel_ == 1 ? Shape() : Shape{numel_};
  for (auto& member : members_) {
    Shape shape = member.layout.shape;
    if (member.numel() != numel_) {
      if (!row_ || member.row || member.numel() * row_ != numel_ || shape.size() == Shape::max_rank)
        return false;
      shape.push_back(row_);
    }
    const auto finer = common_refinement(shape_, shape);
    if (!finer) return false;
    shape_ = *finer;
  }
  for (int64_t row = 1; row < row_; ++row_dims_) row *= shape_[shape_.size() - 1 - row_dims_];
  return true;
}

Strides FusedGroup::strides_of(const Member& member, size_t input) const {
  Shape shape = member.layout.shape;
  Strides strides = member.layout.strides[input];
  if (member.numel() != numel_) {
    shape.push_back(row_);
    strides.push_back(0);
  }
  return refined_strides(shape, strides, shape_);
}

Strides FusedGroup::dense_strides(bool of_rows) const {
  if (!of_rows) return Shape::row_major(shape_);
  const size_t outer = shape_.size() - row_dims_;
  Strides strides = Shape::row_major(Shape(shape_.span().first(outer)));
  while (strides.size() < shape_.size()) strides.push_back(0);
  return strides;
}

uint64_t FusedGroup::bytes_of(bool of_rows, DType dtype) const {
  return static_cast<uint64_t>(of_rows ? numel_ / row_ : numel_) * size_of(dtype);
}

bool FusedGroup::add_member(const Draft& draft, const Member& member) {
  const TraceNode& node = draft.trace.nodes[member.node];
  std::vector<FusedValue> operands;
  for (uint32_t k = 0; k < node.num_inputs; ++k) {
    const auto value = operand(draft, member, k);
    if (!value) return false;
    operands.push_back(*value);
  }
  // If all operands have one value for each row, so has the result, even if the node's shape
  // differs.
  const bool of_rows = is_of_rows(member);
  if (row_ && !of_rows &&
      std::all_of(operands.begin(), operands.end(), [this](auto& o) { return is_row_value(o); }))
    return false;
  of_rows_.push_back(of_rows);
  const FusedValue step =
      builder_.step(*node.plan->call.op, operands, node.plan->call.attrs, node.num_scalars);
  const Scalar* numbers = draft.trace.scalars.data() + node.first_scalar;
  scalars_.insert(scalars_.end(), numbers, numbers + node.num_scalars);
  // A copy does not tell the dtype of its target, which may be another one than that of the step.
  return builder_.dtype_of(step) == node.plan->outputs[0].dtype && add_written(draft, member, step);
}

bool FusedGroup::is_row_value(const FusedValue& value) const {
  return value.kind == FusedValue::absent ||
         (value.kind == FusedValue::input ? inputs_[value.index].of_rows : of_rows_[value.index]);
}

// Returns what a member reads: the result of an earlier member, or an input in memory.
std::optional<FusedValue> FusedGroup::operand(const Draft& draft, const Member& member,
                                              uint32_t k) {
  const TraceNode& node = draft.trace.nodes[member.node];
  const Access& access = draft.inputs_of(node)[k];
  if (access.value == kAbsent) return FusedValue{};
  const DType dtype = node.plan->call.inputs[k]->dtype;
  const Strides strides = strides_of(member, k);
  const Range range{access.value, access.offset, access.offset + span_of(shape_, strides, dtype)};
  for (auto& written : written_) {
    if (!written.range.overlaps(range)) continue;
    const bool same = written.access.offset == access.offset && written.dtype == dtype &&
                      strides == dense_strides(written.of_rows);
    if (!same || (written.of_rows && member.row)) return std::nullopt;
    return written.value;
  }
  const int32_t wired = draft.wiring.input_of_access[node.first_access + k];
  for (auto& known : inputs_)
    if (known.access.value == access.value && known.access.offset == access.offset &&
        known.dtype == dtype && known.strides == strides && known.wired == wired)
      return known.value;
  const bool of_rows =
      row_ && std::all_of(strides.end() - row_dims_, strides.end(), [](auto s) { return s == 0; });
  if (of_rows && member.row) return std::nullopt;  // nothing to reduce
  inputs_.push_back({access, wired, dtype, strides, range, builder_.input(dtype), of_rows});
  return inputs_.back().value;
}

bool FusedGroup::add_written(const Draft& draft, const Member& member, FusedValue step) {
  const TraceNode& node = draft.trace.nodes[member.node];
  const Access& access = draft.outputs_of(node)[0];
  if (access.value == kAbsent) return false;
  Written mine{.access = access,
               .wired = draft.wiring.input_of_access[node.first_access + node.num_inputs],
               .dtype = node.plan->outputs[0].dtype,
               .range = {},
               .value = step,
               .node = member.node,
               .of_rows = is_of_rows(member)};
  mine.range = {access.value, access.offset, access.offset + bytes_of(mine.of_rows, mine.dtype)};
  const Strides dense = dense_strides(mine.of_rows);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].range.overlaps(mine.range)) continue;
    const bool same = inputs_[i].access.offset == access.offset && inputs_[i].dtype == mine.dtype &&
                      inputs_[i].strides == dense;
    if (!same || mine.over_input >= 0) return false;
    mine.over_input = static_cast<int32_t>(i);
  }
  for (auto& earlier : written_) {
    if (!earlier.range.overlaps(mine.range)) continue;
    if (earlier.access.offset != access.offset || earlier.dtype != mine.dtype ||
        earlier.of_rows != mine.of_rows)
      return false;
    earlier = mine;
    return true;
  }
  written_.push_back(mine);
  return true;
}

// Whether anybody but the members reads it, or it is there after the call.
bool FusedGroup::is_needed(Draft& draft, const Written& written) const {
  if (draft.needed_outside(written.access.value)) return true;
  for (auto& use : draft.uses_of(written.access.value)) {
    if (use.node < members_[0].node) continue;
    const bool mine = std::any_of(members_.begin(), members_.end(),
                                  [&](const Member& m) { return m.node == use.node; });
    if (!mine && !use.writes) return true;
  }
  return false;
}

bool FusedGroup::finish(Draft& draft) {
  size_t outputs = 0;
  for (auto& written : written_) {
    written.is_output = is_needed(draft, written);
    if (!written.is_output) continue;
    const bool holds = draft.trace.nodes[written.node].outputs_hold_values;
    if (outputs > 0 && holds != outputs_hold_values_) return false;
    outputs_hold_values_ = holds;
    if (++outputs > FusedProgram::kMaxOutputs) return false;
    builder_.output(written.value);
  }
  if (outputs == 0) return false;
  program_ = &builder_.finish();
  return true;
}

bool FusedGroup::writes(const Range& range) const {
  return std::any_of(written_.begin(), written_.end(),
                     [&](const Written& w) { return w.range.overlaps(range); });
}

bool FusedGroup::reads(const Range& range) const {
  return std::any_of(inputs_.begin(), inputs_.end(),
                     [&](const Input& i) { return i.range.overlaps(range); });
}

bool FusedGroup::conflicts_with(const Draft& draft, const TraceNode& node) const {
  for (uint32_t k = 0; k < node.num_inputs + node.num_outputs; ++k) {
    const Range range = range_of(draft, node, k);
    if (writes(range) || (k >= node.num_inputs && reads(range))) return true;
  }
  return false;
}

bool FusedGroup::shares_with(const Draft& draft, const TraceNode& node) const {
  for (uint32_t k = 0; k < node.num_inputs; ++k) {
    const Range range = range_of(draft, node, k);
    if (writes(range) || reads(range)) return true;
  }
  return false;
}

std::string FusedGroup::names(const Draft& draft) const {
  std::string text;
  for (auto& member : members_) {
    if (!text.empty()) text += ", ";
    text += draft.trace.nodes[member.node].plan->name();
  }
  return text;
}

// A row is one dimension of the call. What lies before it becomes as few dimensions as possible.
bool FusedGroup::add_inputs(CallDesc& call) const {
  const size_t outer = shape_.size() - row_dims_;
  Shape shape(shape_.span().first(outer)), row(shape_.span().last(row_dims_));
  std::vector<Strides> strides, in_row;
  for (auto& input : inputs_) {
    strides.emplace_back(Shape(input.strides.span().first(outer)));
    in_row.emplace_back(Shape(input.strides.span().last(row_dims_)));
  }
  merge_dimensions(shape, strides);
  merge_dimensions(row, in_row);
  if (row.size() > 1 || shape.size() + row.size() > Shape::max_rank) return false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Shape whole = shape;
    if (row_) {
      whole.push_back(inputs_[i].of_rows ? 1 : row_);
      strides[i].push_back(inputs_[i].of_rows ? 1 : in_row[i][0]);
    }
    call.inputs.push_back(TensorDesc{inputs_[i].dtype, whole, strides[i],
                                     has_format(whole, strides[i], contiguous_format),
                                     suggested_format(whole, strides[i]), whole.numel()});
  }
  return true;
}

std::optional<CallDesc> FusedGroup::call() const {
  std::vector<int32_t> in_place;
  for (auto& written : written_)
    if (written.is_output) in_place.push_back(written.over_input);
  const Attrs attrs = fused_attrs(*program_, in_place);
  CallDesc call({fused_op_of(*program_), {}, attrs, scalars_}, nullptr);
  call.format = contiguous_format;  // the result is row-major in this order of dimensions
  if (!add_inputs(call)) return std::nullopt;
  return call;
}

Ref<PlanEntry> FusedGroup::make_plan(const Draft& draft, std::string& why) const {
  uint64_t cost = 0;
  const PlanEntry& first = *draft.trace.nodes[members_[0].node].plan;
  for (auto& member : members_) {
    const PlanEntry& plan = *draft.trace.nodes[member.node].plan;
    if (plan.planner != first.planner) {
      why = "several plugins compute them";
      return {};
    }
    cost += plan.cost_ns;
  }
  auto joint = call();
  if (joint) return make_joint_plan(first, cost, *std::move(joint), why);
  why = "a row of one of its tensors has gaps";
  return {};
}

Draft::Replacement FusedGroup::replacement(Ref<PlanEntry> plan) const {
  Draft::Replacement r;
  r.plan = std::move(plan);
  r.scalars = scalars_;
  r.outputs_hold_values = outputs_hold_values_;
  for (auto& input : inputs_) {
    r.inputs.push_back(input.access);
    r.inputs_of.push_back(input.wired);
  }
  for (auto& written : written_) {
    if (!written.is_output) continue;
    r.outputs.push_back(written.access);
    r.inputs_of.push_back(written.wired);
  }
  return r;
}

}  // namespace tenon::graph
