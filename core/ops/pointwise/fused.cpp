// The operator `fused` (core/ops/pointwise/fused.h): its rules are those of its members.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/module_path.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/shares_memory.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise/fused.h>
#include <tenon/core/ops/pointwise/fused_rules.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

constexpr const char *kProgram = "program", *kInPlace = "in_place";

TensorDesc row_major_desc(DType dtype, const Shape& shape) {
  return {dtype, shape, Shape::row_major(shape), true, contiguous_format, shape.numel()};
}

int64_t overwritten_by(const Attrs& attrs, size_t output) {
  return attrs.has(kInPlace) ? attrs.get_list(kInPlace)[output] : -1;
}

Shape whole_shape(std::span<const TensorDesc> inputs) {
  Shape whole;
  for (auto& input : inputs) whole = broadcast_shapes(whole, input.shape, "fused");
  return whole;
}

void infer_fused(Infer& infer) {
  const auto& program = fused_program(infer.attrs.get_string(kProgram));
  if (&infer.op != &fused_op_of(program))
    throw Error("fused: a program that reduces is a call of fused_rows_op, any other of fused_op");
  std::vector<TensorDesc> inputs;
  for (size_t i = 0; i < infer.size(); ++i) inputs.push_back(infer.in(i));
  const Shape whole = whole_shape(inputs);
  const auto results = infer_steps(program, inputs);
  for (size_t i = 0; i < program.results().size(); ++i) {
    const TensorDesc& result = results[program.results()[i]];
    if (!(result.shape == whole) && !(program.reduces() && result.shape == row_values(whole)))
      infer.shape_error(fmt::format("output {} has shape {}, but all inputs together {}", i,
                                    result.shape, whole));
    const int64_t input = overwritten_by(infer.attrs, i);
    if (input < 0) {
      infer.output(result.dtype, result.shape);
      continue;
    }
    const TensorDesc& target = infer.in(static_cast<size_t>(input));
    if (!(target.shape == result.shape) || target.dtype != result.dtype)
      infer.shape_error(fmt::format("output {} is {} {}, but input {}, which it overwrites, {} {}",
                                    i, result.dtype, result.shape, input, target.dtype,
                                    target.shape));
    infer.output_in_place(static_cast<size_t>(input));
  }
}

size_t count_fused_scalars(const Attrs& attrs) {
  return fused_program(attrs.get_string(kProgram)).num_scalars();
}

void decompose_fused(const Call& call, Outputs& out) {
  const auto& program = fused_program(call.attrs.get_string(kProgram));
  out = run_parts(program, call.inputs, call.scalars);
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t input = overwritten_by(call.attrs, i);
    if (!(call.wanted >> i & 1)) out[i] = Tensor();
    if (input < 0 || !out[i].defined()) continue;
    Tensor target = call.in(static_cast<size_t>(input));
    target.copy_(out[i]);
    out[i] = target;
  }
}

}  // namespace

// | `fused` | x0, x1, … -> y0, y1, … | `program` string; those of its steps, one after the other |
//   a [graph](#fused) of pointwise operators, and of reductions of rows, in one pass over memory;
//   1 to 24 inputs, 1 to 8 outputs, 1 to 64 steps. Unless it reduces, all tensors have the outputs'
//   shape (stride 0 where an input is broadcast). Dtypes are each tensor's own; any output may
//   alias any one input |
const Op fused_op{{
    .name = "fused",
    .infer = infer_fused,
    .pointwise = true,
    .core_attr = kInPlace,
    .decompose = decompose_fused,
    .decomposes_halves = true,
    .count_scalars = count_fused_scalars,
}};
// Dimensions keep their order, and inputs their shapes.
const Op fused_rows_op{{
    .name = "fused",
    .infer = infer_fused,
    .core_attr = kInPlace,
    .decompose = decompose_fused,
    .decomposes_halves = true,
    .count_scalars = count_fused_scalars,
}};

Shape row_values(Shape shape) {
  if (!shape.empty()) shape[shape.size() - 1] = 1;
  return shape;
}

Attrs attrs_over_rows(const FusedProgram::Step& step, const Shape& shape) {
  if (shape.empty())
    throw ShapeError(fmt::format("fused: {} reduces rows, which a single number does not have{}",
                                 step.op->name, path_suffix()));
  Attrs attrs = step.attrs;
  return attrs.set("dims", Shape{static_cast<int64_t>(shape.size()) - 1});
}

void FusedShapes::add(std::optional<DType> dtype) {
  operands_.push_back(dtype ? std::optional(row_major_desc(*dtype, {1})) : std::nullopt);
}

TensorDesc FusedShapes::infer(const FusedProgram::Step& step) const {
  if (step.reduces) return infer_reduction(step);
  require_one_dtype(*step.op);
  const std::vector<Scalar> scalars(step.num_scalars);
  CallDesc call({*step.op, {}, step.attrs, scalars}, nullptr);
  call.inputs = operands_;
  Infer infer(call);
  step.op->infer(infer);
  return row_major_desc(infer.outputs.at(0).dtype, infer.outputs.at(0).shape);
}

TensorDesc FusedShapes::infer_reduction(const FusedProgram::Step& step) const {
  const Attrs attrs = attrs_over_rows(step, operands_.at(0)->shape);
  CallDesc call({*step.op, {}, attrs}, nullptr);
  call.inputs = operands_;
  Infer infer(call);
  step.op->infer(infer);
  return row_major_desc(infer.outputs.at(0).dtype, row_values(operands_[0]->shape));
}

// Where users call the member, `run` converts first; a program says each conversion.
void FusedShapes::require_one_dtype(const Op& op) const {
  const TensorDesc* first = nullptr;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (!operands_[i] || op.keeps_types >> i & 1) continue;
    if (!first) first = &*operands_[i];
    if (first->dtype != operands_[i]->dtype)
      throw DTypeError(
          fmt::format("{}: a member of a fused program takes operands of one dtype; found {} and "
                      "{}{}",
                      op.name, first->dtype, operands_[i]->dtype, path_suffix()));
  }
}

namespace {
void require_rows(const FusedProgram::Step& step, const Shape& shape, const Shape& whole) {
  if (!shape.empty() && shape[shape.size() - 1] == whole[whole.size() - 1]) return;
  throw ShapeError(fmt::format(
      "fused: {} reduces rows of the shape of all inputs together, {}; found an operand of shape "
      "{}{}",
      step.op->name, whole, shape, path_suffix()));
}
}  // namespace

std::vector<TensorDesc> infer_steps(const FusedProgram& program,
                                    std::span<const TensorDesc> inputs) {
  const Shape whole = program.reduces() ? whole_shape(inputs) : Shape();
  std::vector<TensorDesc> results;
  for (auto& step : program.steps()) {
    FusedShapes values;
    for (auto& operand : step.operands) {
      if (operand.kind == FusedValue::absent) {
        values.add(std::optional<TensorDesc>());
        continue;
      }
      const TensorDesc& value =
          operand.kind == FusedValue::input ? inputs[operand.index] : results[operand.index];
      if (step.reduces) require_rows(step, value.shape, whole);
      values.add(value);
    }
    results.push_back(values.infer(step));
    if (results.back().dtype != step.dtype)
      throw DTypeError(fmt::format(
          "fused: step {}, {}, makes {} of these inputs, but the program was built for {}{}",
          results.size() - 1, step.op->name, results.back().dtype, step.dtype, path_suffix()));
  }
  return results;
}

Attrs fused_attrs(const FusedProgram& program, std::span<const int32_t> in_place) {
  Attrs attrs;
  attrs.set(kProgram, program.text().c_str());
  if (std::all_of(in_place.begin(), in_place.end(), [](int32_t i) { return i < 0; })) return attrs;
  Shape inputs;
  for (const int32_t input : in_place) inputs.push_back(input);
  return attrs.set(kInPlace, inputs);
}

namespace {
void require_arguments(const FusedProgram& program, Inputs inputs, std::span<const Scalar> scalars,
                       std::span<const int32_t> in_place) {
  if (inputs.size() != program.num_inputs() || scalars.size() != program.num_scalars() ||
      (!in_place.empty() && in_place.size() != program.results().size()))
    throw ValueError(fmt::format(
        "fused: the program takes {} inputs and {} scalars and has {} outputs; found {}, {} and "
        "places for {}{}",
        program.num_inputs(), program.num_scalars(), program.results().size(), inputs.size(),
        scalars.size(), in_place.size(), path_suffix()));
  for (size_t i = 0; i < inputs.size(); ++i) require_tensor("fused", *inputs[i], "inputs", i);
  for (size_t i = 0; i < in_place.size(); ++i) {
    const auto before = in_place.begin() + static_cast<std::ptrdiff_t>(i);
    if (in_place[i] >= static_cast<int64_t>(inputs.size()) ||
        (in_place[i] >= 0 && std::find(in_place.begin(), before, in_place[i]) != before))
      throw ValueError(fmt::format("fused: output {} cannot overwrite input {}{}", i, in_place[i],
                                   path_suffix()));
  }
}
}  // namespace

Tensor run_step(const FusedProgram::Step& step, Inputs operands, std::span<const Scalar> scalars) {
  const auto numbers = scalars.subspan(step.first_scalar, step.num_scalars);
  if (!step.reduces) return run_all({*step.op, operands, step.attrs, numbers})[0];
  const Tensor rows = operands[0]->contiguous();
  const Tensor* const row_major[] = {&rows};
  const Shape& shape = shape_of(rows);
  return run_all({*step.op, row_major, attrs_over_rows(step, shape), numbers})[0].view(
      row_values(shape));
}

Outputs run_members(const FusedProgram& program, Inputs inputs, std::span<const Scalar> scalars) {
  require_arguments(program, inputs, scalars, {});
  const NoGrad guard;
  const AutocastOff off;  // the program says the dtypes
  std::vector<Tensor> results;
  results.reserve(program.steps().size());
  for (auto& step : program.steps()) {
    std::vector<const Tensor*> operands;
    for (auto& operand : step.operands)
      operands.push_back(operand.kind == FusedValue::absent  ? nullptr
                         : operand.kind == FusedValue::input ? inputs[operand.index]
                                                             : &results[operand.index]);
    results.push_back(run_step(step, operands, scalars));
  }
  Outputs outputs;
  for (const uint32_t result : program.results()) outputs.push_back(results[result]);
  return outputs;
}

Outputs run_fused(const FusedProgram& program, Inputs inputs, std::span<const Scalar> scalars,
                  std::span<const int32_t> in_place) {
  require_arguments(program, inputs, scalars, in_place);
  const NoGrad guard;
  // What is overwritten must not be another input, or a part of one.
  std::vector<const Tensor*> apart(inputs.begin(), inputs.end());
  std::vector<Tensor> copies;
  copies.reserve(inputs.size());
  for (size_t i = 0; i < in_place.size(); ++i) {
    if (in_place[i] < 0) continue;
    const auto target = static_cast<size_t>(in_place[i]);
    for (size_t k = 0; k < inputs.size(); ++k)
      if (k != target && apart[k] == inputs[k] &&
          may_share_memory(impl_of(*inputs[k]), impl_of(*inputs[target])) &&
          std::find(in_place.begin(), in_place.end(), static_cast<int32_t>(k)) == in_place.end())
        apart[k] = &copies.emplace_back(inputs[k]->clone());
  }
  return run_all({fused_op_of(program), apart, fused_attrs(program, in_place), scalars});
}

}  // namespace tenon
