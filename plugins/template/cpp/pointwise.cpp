// Operators that compute each element by itself, on tensors of any strides.
#include <string>

#include <tenon/plugins/sdk/formulas.h>
#include <tenon/plugins/sdk/requests/pointwise.h>

#include "kernels.h"

namespace accelerator {
namespace {

constexpr int64_t kGrain = 8192;  // elements that are worth a thread

// A plan that runs `body(run, begin, end)` for parts of the nest's elements.
template <class F>
tn_plan* make_loop(const sdk::Nest& nest, F body) {
  return sdk::make_plan(
      [n = nest.numel, body](const tn_run& run) {
        parallel_for(n, kGrain, [&](int64_t begin, int64_t end) { body(run, begin, end); });
      },
      {.workspace_bytes = 0, .cost_ns = 100 + static_cast<uint64_t>(nest.numel) * 2});
}

// y = formula(x).
template <class Y, class X, class Formula>
tn_plan* make_map(const sdk::Request& request, Formula formula) {
  const sdk::Nest nest({&request.output(0), &request.input(0)});
  return make_loop(nest, [nest, formula](const tn_run& run, int64_t begin, int64_t end) {
    const X* x = input<X>(run, 0);
    Y* y = output<Y>(run, 0);
    walk(nest, begin, end, [&](const int64_t* at) { y[at[0]] = formula(x[at[1]]); });
  });
}

template <class Formula>
tn_plan* make_unary(tn_device*, const sdk::Request& request) {
  return sdk::with_float(float_of(request),
                         [&]<class T>(T) { return make_map<T, T>(request, Formula()); });
}

const sdk::Kernel relus({"relu"}, make_unary<sdk::formulas::Relu>);

// Moves elements of any dtype, and converts numbers and bools to floats.
tn_plan* make_copy(tn_device*, const sdk::Request& request) {
  const tn_dtype from = request.input(0).dtype, to = request.output(0).dtype;
  if (from == to)
    return sdk::with_width(
        from, [&]<class T>(T) { return make_map<T, T>(request, [](T x) { return x; }); });
  if (to != TN_F32 && to != TN_F64)
    sdk::unsupported("{} is not converted to {}", std::string(sdk::dtype_name(from)),
                     std::string(sdk::dtype_name(to)));
  return sdk::with_number(sdk::byte_for_bool(from), [&]<class X>(X) {
    return sdk::with_float(to, [&]<class Y>(Y) {
      return make_map<Y, X>(request, [](X x) { return static_cast<Y>(x); });
    });
  });
}

const sdk::Kernel copies({"copy"}, make_copy);

// y = formula(a, b), where one operand may be scalar 0 of the run.
template <class Formula>
tn_plan* make_binary(tn_device*, const sdk::Request& request) {
  const auto r = sdk::BinaryRequest::from(request);
  const bool a_there = r.a, b_there = r.b;
  const sdk::Nest nest({&request.output(0), r.a, r.b});  // an absent one has stride 0 everywhere
  return sdk::with_float(float_of(request), [&]<class T>(T) {
    return make_loop(nest, [=](const tn_run& run, int64_t begin, int64_t end) {
      const T number = a_there && b_there ? T(0) : static_cast<T>(run.scalars[0].f);
      const T* a = a_there ? input<T>(run, 0) : &number;
      const T* b = b_there ? input<T>(run, a_there ? 1 : 0) : &number;
      T* y = output<T>(run, 0);
      walk(nest, begin, end, [&](const int64_t* at) { y[at[0]] = Formula()(a[at[1]], b[at[2]]); });
    });
  });
}

const sdk::Kernel sums({"add"}, make_binary<sdk::formulas::Add>);
const sdk::Kernel differences({"sub"}, make_binary<sdk::formulas::Sub>);
const sdk::Kernel products({"mul"}, make_binary<sdk::formulas::Mul>);
const sdk::Kernel quotients({"div"}, make_binary<sdk::formulas::Div>);
const sdk::Kernel relu_gradients({"relu_backward"}, make_binary<sdk::formulas::ReluBackward>);

tn_plan* make_fill(tn_device*, const sdk::Request& request) {
  sdk::require_scalars(request, 1);
  const sdk::Nest nest({&request.output(0)});
  return sdk::with_float(float_of(request), [&]<class T>(T) {
    return make_loop(nest, [nest](const tn_run& run, int64_t begin, int64_t end) {
      T* y = output<T>(run, 0);
      const T value = static_cast<T>(run.scalars[0].f);
      walk(nest, begin, end, [&](const int64_t* at) { y[at[0]] = value; });
    });
  });
}

const sdk::Kernel fills({"fill"}, make_fill);

}  // namespace
}  // namespace accelerator
