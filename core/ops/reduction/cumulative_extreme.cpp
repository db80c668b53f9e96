// cummax and cummin (core/ops/scan.h).
#include <tenon/core/format.h>
#include <tenon/core/ops/indexing/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/scan.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

void infer_chosen(Infer& infer) {
  infer.output(dtype_of(infer.in(0)), shape_of(infer.in(0)));
  infer.output(DType::i64, shape_of(infer.in(0)));
}
void chosen_gradient(const GradContext& c, Grads g) {
  g[0] = add_at(c.input_shape(0), c.grad(), c.attrs.get_int("dim"), c.output(1));
}

// Values and places side by side, the distance doubled in each step as in `doubled`.
template <bool largest>
void decompose_extreme(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  const int64_t dim = call.attrs.get_int("dim"), n = size_along(x, dim);
  Tensor values = x.clone(), places = constant(0, DType::i64, x.device()).expand(x.shape());
  if (n > 1) {
    Shape line = Shape::filled(x.shape().size(), 1);
    line[dim] = n;
    const Tensor numbers = arange(0, n, 1, {.dtype = DType::i64, .device = x.device()});
    places = numbers.view(line).expand(x.shape());
  }
  for (int64_t k = 1; k < n; k *= 2) {
    const Tensor low = values.narrow(dim, 0, n - k), high = values.narrow(dim, k, n - k);
    const Tensor later = logical_or(largest ? ge(high, low) : le(high, low), ne(high, high));
    const auto joined = [&](const Tensor& all) {
      return cat({all.narrow(dim, 0, k),
                  where(later, all.narrow(dim, k, n - k), all.narrow(dim, 0, n - k))},
                 dim);
    };
    places = joined(places);
    values = joined(values);
  }
  out.push_back(values);
  out.push_back(places.contiguous());
}

const Op cummax_op{{
    .name = "cummax",
    .infer = infer_chosen,
    .gradient = chosen_gradient,
    .saves_outputs = 2,
    .decompose = decompose_extreme<true>,
}};
const Op cummin_op{{
    .name = "cummin",
    .infer = infer_chosen,
    .gradient = chosen_gradient,
    .saves_outputs = 2,
    .decompose = decompose_extreme<false>,
}};

ValuesIndices run_extreme(const Op& op, const Tensor& x, int64_t dim) {
  require_tensor(op.name, x);
  const Attrs attrs = Attrs().set("dim", wrap_dim_of(x, dim, op.name));
  const Tensor from = is_half(x) ? x.to(DType::f32) : x;
  const Tensor* input = &from;
  const Outputs y = run_all({op, {&input, 1}, attrs});
  return {y[0].to(dtype_of(x)), y[1]};
}

}  // namespace

ValuesIndices cummax(const Tensor& x, int64_t dim) { return run_extreme(cummax_op, x, dim); }
ValuesIndices cummin(const Tensor& x, int64_t dim) { return run_extreme(cummin_op, x, dim); }

}  // namespace tenon
