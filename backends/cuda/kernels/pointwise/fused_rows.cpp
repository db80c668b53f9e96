#include "kernels/pointwise/fused_rows.h"

#include <algorithm>
#include <string_view>

#include "kernels/reduction/reduce_plan.h"

namespace tenon::cuda {
namespace {

using sdk::FusedOperand, sdk::FusedRequest, sdk::FusedStep;

// What a member has: its reducer, and whether it loads packs of elements where rows allow it.
struct ReducerEntry {
  const char *op, *reducer;
  bool loads_packs;
};
constexpr ReducerEntry kReducers[] = {
    {"all", "All", false},
    {"amax", "Amax", true},
    {"amin", "Amin", true},
    {"any", "Any", false},
    {"mean", "Sum", true},
    {"prod", "Prod", false},
    {"logsumexp", "LogSumExp", true},
    {"sum", "Sum", true},
    {"var", "Var", true},
};

// Half types are folded as f32, and bools as bytes.
tn_dtype folded(tn_dtype dtype) {
  return dtype == TN_F16 || dtype == TN_BF16 ? TN_F32 : sdk::byte_for_bool(dtype);
}

double parameter_of(const FusedStep& step, double count) {
  const std::string_view op = step.member->op;
  if (op == "mean") return count;
  return op == "var" ? sdk::variance_divisor(count, static_cast<double>(step.attr)) : 1;
}

// Rows are shared out as the member's own kernel does with contiguous ones.
void add_reduction(FusedRows& rows, const tn_device& device, const FusedRequest& program,
                   size_t number) {
  const FusedStep& step = program.steps[number];
  const auto entry = std::find_if(std::begin(kReducers), std::end(kReducers), [&](auto& e) {
    return e.op == std::string_view(step.member->op);
  });
  if (entry == std::end(kReducers))
    sdk::unsupported("{}: no kernel of this plugin reduces rows by it", step.member->op);
  const tn_dtype dtype = folded(program.dtype_of(step.operands[0]));
  const bool floating = dtype == TN_F32 || dtype == TN_F64;
  const int pack =
      entry->loads_packs && floating ? 16 / static_cast<int>(sdk::dtype_size(dtype)) : 1;
  const tn_tensor_desc all{
      sizeof(tn_tensor_desc), dtype, 2, {rows.rows, rows.cols}, {rows.cols, 1}};
  const ReduceArgs plan = plan_reduction(device, ReduceShape(all, {1}), pack, 0);
  if (plan.columns || plan.splits != 1)
    sdk::unsupported("{} rows of {} elements are cut into parts, and not reduced in a program",
                     rows.rows, rows.cols);
  if (rows.lanes && (rows.lanes != plan.lanes || rows.block != plan.block))
    sdk::unsupported("its reductions share rows out in different ways");
  rows.lanes = plan.lanes;
  rows.block = plan.block;
  rows.grid = plan.grid;
  rows.reductions.push_back({number, entry->reducer, dtype, plan.packs ? pack : 1,
                             parameter_of(step, static_cast<double>(rows.cols))});
}

// The dimensions before the last: those of size 1 are gone, and those that lie one behind the other
// in every input are one.
void find_outer(FusedRows& rows, const std::vector<tn_tensor_desc>& inputs,
                const tn_tensor_desc& whole) {
  rows.strides.resize(inputs.size());
  for (uint32_t d = 0; d + 1 < whole.rank; ++d) {
    if (whole.shape[d] == 1) continue;
    bool behind = !rows.sizes.empty();
    for (size_t i = 0; behind && i < inputs.size(); ++i)
      behind = rows.strides[i].back() == inputs[i].strides[d] * whole.shape[d];
    if (!behind) rows.sizes.push_back(1);
    rows.sizes.back() *= whole.shape[d];
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!behind) rows.strides[i].push_back(0);
      rows.strides[i].back() = inputs[i].strides[d];
    }
  }
}

}  // namespace

FusedRows FusedRows::of(const tn_device& device, const FusedRequest& program,
                        const sdk::Request& request) {
  const tn_tensor_desc& whole = program.whole;
  FusedRows rows;
  rows.cols = whole.shape[whole.rank - 1];
  rows.rows = sdk::numel(whole) / rows.cols;
  if (rows.rows > INT32_MAX || rows.cols > INT32_MAX)
    sdk::unsupported("rows and their elements may be 2^31 - 1, found {} and {}", rows.rows,
                     rows.cols);
  for (size_t i = 0; i < request.num_outputs(); ++i)
    if (request.has_output(i)) sdk::require_contiguous(request.output(i));
  std::vector<tn_tensor_desc> inputs;
  for (size_t i = 0; i < request.num_inputs(); ++i) {
    inputs.push_back(program.expanded(request.input(i)));
    const FusedOperand input{FusedOperand::input, static_cast<uint32_t>(i)};
    const int64_t step = program.is_row_value(input) ? 0 : inputs.back().strides[whole.rank - 1];
    rows.steps.push_back(step);
    rows.inputs.push_back(step == 0 ? Access::one : step == 1 ? Access::line : Access::steps);
  }
  find_outer(rows, inputs, whole);
  for (size_t s = 0; s < program.steps.size(); ++s)
    if (program.steps[s].member->reduces) add_reduction(rows, device, program, s);
  return rows;
}

}  // namespace tenon::cuda
