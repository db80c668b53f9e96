// Functions a, b, c? -> y; a scalar takes the place of c.
#include <tenon/plugins/sdk/binary_formulas.h>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cpu {
namespace {

template <class Op, class T>
void ternary_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto *a = static_cast<const T*>(row.in[0]), *b = static_cast<const T*>(row.in[1]),
       *c = static_cast<const T*>(row.in[2]);
  if (row.single & 4) {
    const T one = *c;
    TN_INDEPENDENT
    for (int64_t i = 0; i < row.n; ++i) y[i] = Op()(a[i], b[i], one);
  } else {
    TN_INDEPENDENT
    for (int64_t i = 0; i < row.n; ++i) y[i] = Op()(a[i], b[i], c[i]);
  }
}

tn_plan* make_ternary(tn_device*, const Request& request) {
  static constexpr NamedRows table[] = {
      {"lerp", 0.4, 0.8,
       float_rows([]<class T>(Type<T>) { return ternary_row<formulas::Lerp, T>; })},
      {"addcmul", 0.4, 0.8,
       number_rows([]<class T>(Type<T>) { return ternary_row<formulas::Addcmul, T>; })},
      {"addcdiv", 0.4, 0.8,
       float_rows([]<class T>(Type<T>) { return ternary_row<formulas::Addcdiv, T>; })}};
  auto& named = sdk::entry_of(table, request.op());
  const auto &a = request.input(0), &b = request.input(1);
  const auto* c = request.has_input(2) ? &request.input(2) : nullptr;
  const auto kernel = named.rows.pick(a.dtype);
  sdk::require_one_dtype(a, b, c ? *c : b);
  if (!c) sdk::require_scalars(request, 1);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {&a, &b, c}, 4, named.ns_of(a.dtype));
  auto run = [loop, kernel, tensor = c != nullptr, dtype = a.dtype](const tn_run& run) {
    const Value value = tensor ? Value{} : value_of(dtype, run.scalars[0]);
    const void* in[] = {run.inputs[0], run.inputs[1], tensor ? run.inputs[2] : &value};
    loop.run(kernel, run.outputs[0], in);
  };
  return sdk::make_plan(run, {0, loop.cost_ns()});
}
const sdk::Kernel of_three({"lerp", "addcmul", "addcdiv"}, make_ternary);

}  // namespace
}  // namespace tenon::cpu
