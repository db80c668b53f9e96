// The operator `fused` (core/ops/pointwise/fused.h): its rules are those of its members.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/module_path.h>
#include <tenon/core/dispatch/autocast.h>
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

void infer_fused(Infer& infer) {
  const auto& program = fused_program(infer.attrs.get_string(kProgram));
  Shape whole;
  for (size_t i = 0; i < infer.size(); ++i)
    whole = broadcast_shapes(whole, shape_of(infer.in(i)), infer.op.name);
  std::vector<TensorDesc> inputs;
  for (size_t i = 0; i < infer.size(); ++i) inputs.push_back(infer.in(i));
  const auto results = infer_steps(program, inputs);
  for (size_t i = 0; i < program.results().size(); ++i) {
    const TensorDesc& result = results[program.results()[i]];
    if (!(result.shape == whole))
      infer.shape_error(fmt::format("output {} has shape {}, but all inputs together {}", i,
                                    result.shape, whole));
    const int64_t input = overwritten_by(infer.attrs, i);
    if (input < 0) {
      infer.output(result.dtype, result.shape);
      continue;
    }
    const TensorDesc& target = infer.in(static_cast<size_t>(input));
    if (!(target.shape == whole) || target.dtype != result.dtype)
      infer.shape_error(fmt::format("output {} is {} {}, but input {}, which it overwrites, {} {}",
                                    i, result.dtype, whole, input, target.dtype, target.shape));
    infer.output_in_place(static_cast<size_t>(input));
  }
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

const Op fused_op{{
    .name = "fused",
    .infer = infer_fused,
    .pointwise = true,
    .core_attr = kInPlace,
    .decompose = decompose_fused,
    .decomposes_halves = true,
}};

void FusedShapes::add(std::optional<DType> dtype) {
  operands_.push_back(dtype ? std::optional(row_major_desc(*dtype, {})) : std::nullopt);
}

TensorDesc FusedShapes::infer(const FusedProgram::Step& step) const {
  require_one_dtype(*step.op);
  const std::vector<Scalar> scalars(step.num_scalars);
  CallDesc call({*step.op, {}, step.attrs, scalars}, nullptr);
  call.inputs = operands_;
  Infer infer(call);
  step.op->infer(infer);
  return row_major_desc(infer.outputs.at(0).dtype, infer.outputs.at(0).shape);
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

std::vector<TensorDesc> infer_steps(const FusedProgram& program,
                                    std::span<const TensorDesc> inputs) {
  std::vector<TensorDesc> results;
  for (auto& step : program.steps()) {
    FusedShapes values;
    for (auto& operand : step.operands)
      values.add(operand.kind == FusedValue::absent  ? std::optional<TensorDesc>()
                 : operand.kind == FusedValue::input ? std::optional(inputs[operand.index])
                                                     : std::optional(results[operand.index]));
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
  for (size_t i = 0; i < inputs.size(); ++i) require_tensor("fused", *inputs[i], i);
  for (size_t i = 0; i < in_place.size(); ++i) {
    const auto before = in_place.begin() + static_cast<std::ptrdiff_t>(i);
    if (in_place[i] >= static_cast<int64_t>(inputs.size()) ||
        (in_place[i] >= 0 && std::find(in_place.begin(), before, in_place[i]) != before))
      throw ValueError(fmt::format("fused: output {} cannot overwrite input {}{}", i, in_place[i],
                                   path_suffix()));
  }
}
}  // namespace

// Each member by whatever the device has for it.
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
    results.push_back(run_all(
        {*step.op, operands, step.attrs, scalars.subspan(step.first_scalar, step.num_scalars)})[0]);
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
          impl_of(*inputs[k]).storage == impl_of(*inputs[target]).storage &&
          std::find(in_place.begin(), in_place.end(), static_cast<int32_t>(k)) == in_place.end())
        apart[k] = &copies.emplace_back(inputs[k]->clone());
  }
  return run_all({fused_op, apart, fused_attrs(program, in_place), scalars});
}

}  // namespace tenon
