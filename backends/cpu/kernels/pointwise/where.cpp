// Selection and limits.
#include "kernels/pointwise/finish.h"
#include "kernels/pointwise/pointwise.h"

namespace tenon::cpu {
namespace {

// Selection knows the size of an element, not its dtype.
template <class T>
void where_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto* c = static_cast<const uint8_t*>(row.in[0]);
  auto* a = static_cast<const T*>(row.in[1]);
  auto* b = static_cast<const T*>(row.in[2]);
  auto select = [&](auto from_a, auto from_b) {
    TN_INDEPENDENT
    for (int64_t i = 0; i < row.n; ++i) {
      T u = from_a(i), v = from_b(i);
      y[i] = c[i] ? u : v;
    }
  };
  auto all_a = [a](int64_t i) { return a[i]; };
  auto all_b = [b](int64_t i) { return b[i]; };
  auto one_a = [v = *a](int64_t) { return v; };
  auto one_b = [v = *b](int64_t) { return v; };
  switch (row.single >> 1) {
    case 0:
      return select(all_a, all_b);
    case 1:
      return select(one_a, all_b);
    case 2:
      return select(all_a, one_b);
    default:
      return select(one_a, one_b);
  }
}

tn_plan* make_where(tn_device*, const Request& request) {
  auto &c = request.input(0), &a = request.input(1), &b = request.input(2);
  if (c.dtype != TN_BOOL) refuse_dtype(c.dtype);
  if (a.dtype != b.dtype || a.dtype != request.output(0).dtype) refuse_dtype(b.dtype);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {&c, &a, &b}, 6, 0.4, /*as_bits=*/true);
  return with_width(a.dtype, [&loop]<class T>(T) {
    return sdk::make_plan(
        [loop](const tn_run& run) { loop.run(where_row<T>, run.outputs[0], run.inputs); },
        {0, loop.cost_ns()});
  });
}
const sdk::Kernel selection({"where"}, make_where);

template <class T>
void clamp_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto* x = static_cast<const T*>(row.in[0]);
  const auto clamp = *static_cast<const formulas::Clamp<T>*>(row.in[1]);
  TN_INDEPENDENT
  for (int64_t i = 0; i < row.n; ++i) y[i] = clamp(x[i]);
}

constexpr double kClampNs = 0.2;

tn_plan* make_clamp(tn_device*, const Request& request) {
  sdk::require_scalars(request, 2);
  auto& x = request.input(0);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {&x, nullptr}, 0, kClampNs);
  return with_number(computed_as(x.dtype), [&loop]<class T>(T) {
    auto run = [loop](const tn_run& run) {
      const auto clamp = formulas::Clamp<T>::from(run.scalars);
      const void* in[] = {run.inputs[0], &clamp};
      loop.run(clamp_row<T>, run.outputs[0], in);
    };
    return sdk::make_plan(run, {0, loop.cost_ns()});
  });
}

const sdk::Kernel clamp({"clamp"}, make_clamp);

template <class T>
void clamp_rows(RowKernel kernel, void* y, int64_t n, const tn_scalar* numbers) {
  const auto clamp = formulas::Clamp<T>::from(numbers);
  kernel({n, y, {y, &clamp}, 0});
}

}  // namespace

Finish finish_by_clamp(std::string_view op, tn_dtype dtype) {
  if (op != "clamp") return {};
  return with_float(dtype, []<class T>(T) -> Finish {
    return {clamp_rows<T>, clamp_row<T>, kClampNs};
  });
}

}  // namespace tenon::cpu
