// Operators that compute each element by itself, on tensors of any strides.
#include <string_view>

#include <tenon/plugins/sdk/formulas.h>
#include <tenon/plugins/sdk/requests/pointwise.h>

#include "kernels.h"

namespace accelerator {
namespace {

constexpr int64_t kGrain = 8192;  // elements that are worth a thread

sdk::PlanOptions cost_of(const sdk::Nest& nest) {
  return {.workspace_bytes = 0, .cost_ns = 100 + static_cast<uint64_t>(nest.numel) * 2};
}

// y = formula(x).
template <class Formula>
tn_plan* make_unary(tn_device*, const sdk::Request& request) {
  require_f32(request);
  const sdk::Nest nest({&request.output(0), &request.input(0)});
  return sdk::make_plan(
      [nest](const tn_run& run) {
        parallel_for(nest.numel, kGrain, [&](int64_t begin, int64_t end) {
          const float* x = input(run, 0);
          float* y = output(run, 0);
          walk(nest, begin, end, [&](const int64_t* at) { y[at[0]] = Formula()(x[at[1]]); });
        });
      },
      cost_of(nest));
}

struct Same {
  float operator()(float x) const { return x; }
};

const sdk::Kernel copies({"copy"}, make_unary<Same>);
const sdk::Kernel relus({"relu"}, make_unary<sdk::formulas::Relu>);

// y = formula(a, b), where one operand may be scalar 0 of the run.
template <class Formula>
tn_plan* make_binary(tn_device*, const sdk::Request& request) {
  require_f32(request);
  const auto r = sdk::BinaryRequest::from(request);
  const bool a_there = r.a, b_there = r.b;
  const sdk::Nest nest({&request.output(0), r.a, r.b});  // an absent one has stride 0 everywhere
  return sdk::make_plan(
      [=](const tn_run& run) {
        parallel_for(nest.numel, kGrain, [&](int64_t begin, int64_t end) {
          const float number = a_there && b_there ? 0 : static_cast<float>(run.scalars[0].f);
          const float* a = a_there ? input(run, 0) : &number;
          const float* b = !b_there ? &number : input(run, a_there ? 1 : 0);
          float* y = output(run, 0);
          walk(nest, begin, end,
               [&](const int64_t* at) { y[at[0]] = Formula()(a[at[1]], b[at[2]]); });
        });
      },
      cost_of(nest));
}

const sdk::Kernel sums({"add"}, make_binary<sdk::formulas::Add>);
const sdk::Kernel differences({"sub"}, make_binary<sdk::formulas::Sub>);
const sdk::Kernel products({"mul"}, make_binary<sdk::formulas::Mul>);
const sdk::Kernel quotients({"div"}, make_binary<sdk::formulas::Div>);
const sdk::Kernel relu_gradients({"relu_backward"}, make_binary<sdk::formulas::ReluBackward>);

tn_plan* make_fill(tn_device*, const sdk::Request& request) {
  require_f32(request);
  sdk::require_scalars(request, 1);
  const sdk::Nest nest({&request.output(0)});
  return sdk::make_plan(
      [nest](const tn_run& run) {
        parallel_for(nest.numel, kGrain, [&](int64_t begin, int64_t end) {
          float* y = output(run, 0);
          const auto value = static_cast<float>(run.scalars[0].f);
          walk(nest, begin, end, [&](const int64_t* at) { y[at[0]] = value; });
        });
      },
      cost_of(nest));
}

const sdk::Kernel fills({"fill"}, make_fill);

}  // namespace
}  // namespace accelerator
