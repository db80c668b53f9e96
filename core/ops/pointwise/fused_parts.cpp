// What is left of a fused program where a backend refuses one of its members: that member is run by
// itself, which decomposes it, and the others stay together in smaller programs.
#include <algorithm>
#include <utility>

#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/error.h>
#include <tenon/core/ops/pointwise/fused_rules.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

class FusedParts {
 public:
  FusedParts(const FusedProgram& program, Inputs inputs, std::span<const Scalar> scalars)
      : steps_(program.steps()), inputs_(inputs), scalars_(scalars), results_(steps_.size()) {
    std::vector<TensorDesc> descs;
    for (auto* input : inputs) descs.push_back(describe(impl_of(*input)));
    descs_ = infer_steps(program, descs);
    is_result_.resize(steps_.size());
    for (const uint32_t step : program.results()) is_result_[step] = true;
    for (auto& step : steps_) offered_.push_back(is_offered(step));
  }

  bool all_offered() const {
    return std::find(offered_.begin(), offered_.end(), false) == offered_.end();
  }
  std::vector<Tensor> run() {
    while (std::any_of(results_.begin(), results_.end(), [](auto& t) { return !t.defined(); })) {
      std::vector<uint32_t> together;
      for (uint32_t s = 0; s < steps_.size(); ++s)
        if (offered_[s] && !results_[s].defined() && is_ready(s, together)) together.push_back(s);
      run_together(together);
      for (uint32_t s = 0; s < steps_.size(); ++s)
        if (!offered_[s] && !results_[s].defined() && is_ready(s, {})) run_alone(s);
    }
    return std::move(results_);
  }

 private:
  // Asks with one element without a value, because what a backend takes depends on dtypes alone.
  bool is_offered(const FusedProgram::Step& step) const {
    std::vector<Tensor> elements;
    std::vector<const Tensor*> operands;
    elements.reserve(step.operands.size());
    const Shape one = step.reduces ? Shape{1} : Shape{};
    const Attrs attrs = step.reduces ? attrs_over_rows(step, one) : step.attrs;
    for (auto& operand : step.operands) {
      const bool absent = operand.kind == FusedValue::absent;
      if (!absent)
        elements.push_back(allocate_tensor(one, desc_of(operand).dtype, inputs_[0]->device()));
      operands.push_back(absent ? nullptr : &elements.back());
    }
    const Call call{*step.op, operands, attrs,
                    scalars_.subspan(step.first_scalar, step.num_scalars)};
    try {
      return plans_of(context_of(inputs_[0]->device())).find(call, common_layout(call)).plan;
    } catch (const UnsupportedError&) {
      return false;  // whoever runs it is told
    }
  }
  TensorDesc desc_of(const FusedValue& value) const {
    return value.kind == FusedValue::input ? describe(impl_of(*inputs_[value.index]))
                                           : descs_[value.index];
  }
  // Whether all that the step reads is there, or comes of `before`.
  bool is_ready(uint32_t s, const std::vector<uint32_t>& before) const {
    return std::all_of(steps_[s].operands.begin(), steps_[s].operands.end(), [&](auto& o) {
      return o.kind != FusedValue::step || results_[o.index].defined() ||
             std::find(before.begin(), before.end(), o.index) != before.end();
    });
  }

  const Tensor* value_of(const FusedValue& value) const {
    if (value.kind == FusedValue::absent) return nullptr;
    return value.kind == FusedValue::input ? inputs_[value.index] : &results_[value.index];
  }
  void run_alone(uint32_t s) {
    std::vector<const Tensor*> operands;
    for (auto& operand : steps_[s].operands) operands.push_back(value_of(operand));
    results_[s] = run_step(steps_[s], operands, scalars_);
  }

  // Whether somebody outside of `together` reads the result.
  bool is_read_outside(uint32_t s, const std::vector<uint32_t>& together) const {
    if (is_result_[s]) return true;
    for (uint32_t reader = s + 1; reader < steps_.size(); ++reader)
      for (auto& operand : steps_[reader].operands)
        if (operand.kind == FusedValue::step && operand.index == s &&
            std::find(together.begin(), together.end(), reader) == together.end())
          return true;
    return false;
  }

  void run_together(const std::vector<uint32_t>& together) {
    if (together.size() < 2 || !run_as_program(together))
      for (const uint32_t s : together) run_alone(s);
  }
  // Returns false where the steps make no program: too many tensors, results that are smaller than
  // others, or none that anybody reads.
  bool run_as_program(const std::vector<uint32_t>& together) {
    FusedBuilder builder;
    std::vector<const Tensor*> read;
    std::vector<std::pair<FusedValue, FusedValue>> known;  // here, and in the smaller program
    std::vector<Scalar> scalars;
    std::vector<uint32_t> made;
    Shape whole;
    const auto find = [&](const FusedValue& value) -> FusedValue {
      if (value.kind == FusedValue::absent) return {};
      for (auto& [here, there] : known)
        if (here.kind == value.kind && here.index == value.index) return there;
      read.push_back(value_of(value));
      whole = broadcast_shapes(whole, shape_of(*read.back()), "fused");
      return known.emplace_back(value, builder.input(dtype_of(*read.back()))).second;
    };
    for (const uint32_t s : together) {
      if (read.size() + 3 > FusedProgram::kMaxInputs) return false;
      std::vector<FusedValue> operands;
      for (auto& operand : steps_[s].operands) operands.push_back(find(operand));
      const auto numbers = scalars_.subspan(steps_[s].first_scalar, steps_[s].num_scalars);
      scalars.insert(scalars.end(), numbers.begin(), numbers.end());
      const FusedValue step =
          builder.step(*steps_[s].op, operands, steps_[s].attrs, numbers.size());
      known.emplace_back(FusedValue{FusedValue::step, s}, step);
      if (!is_read_outside(s, together)) continue;
      if (made.size() == FusedProgram::kMaxOutputs) return false;
      builder.output(step);
      made.push_back(s);
    }
    if (made.empty()) return false;
    const FusedProgram& program = builder.finish();
    for (const uint32_t s : made)
      if (!(descs_[s].shape == whole) &&
          !(program.reduces() && descs_[s].shape == row_values(whole)))
        return false;
    const auto results = run_fused(program, read, scalars);
    for (size_t i = 0; i < made.size(); ++i) results_[made[i]] = results[i];
    // The others are never read again, and only count as done.
    for (const uint32_t s : together)
      if (!results_[s].defined()) results_[s] = results[0];
    return true;
  }

  const std::vector<FusedProgram::Step>& steps_;
  const Inputs inputs_;
  const std::span<const Scalar> scalars_;
  std::vector<TensorDesc> descs_;  // of the results
  std::vector<Tensor> results_;
  std::vector<bool> is_result_, offered_;
};

}  // namespace

Outputs run_parts(const FusedProgram& program, Inputs inputs, std::span<const Scalar> scalars) {
  FusedParts parts(program, inputs, scalars);
  if (parts.all_offered()) return run_members(program, inputs, scalars);
  const auto results = parts.run();
  Outputs outputs;
  for (const uint32_t step : program.results()) outputs.push_back(results[step]);
  return outputs;
}

}  // namespace tenon
