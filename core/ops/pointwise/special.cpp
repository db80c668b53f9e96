// Special functions of one tensor (core/ops/special.h).
#include <cmath>
#include <limits>
#include <numbers>

#include <tenon/core/dispatch/widening.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pointwise/unary.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/special.h>

namespace tenon {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

OpSpec special(const char* name, GradRule gradient) {
  auto spec = floating_function(name, gradient);
  spec.saves_inputs = 1;
  return spec;
}

void erfc_gradient(const GradContext& c, Grads g) {
  g[0] = c.grad() * (exp(neg(square(c.input(0)))) * (-2.0 * std::numbers::inv_sqrtpi));
}
// | `erfc erfinv lgamma digamma` | x -> y | | floats |
const Op erfc_op{special("erfc", erfc_gradient)};

void erfinv_gradient(const GradContext& c, Grads g) {
  g[0] = c.grad() * (exp(square(c.output(0))) * (0.5 / std::numbers::inv_sqrtpi));
}
OpSpec erfinv_spec() {
  auto spec = floating_function("erfinv", erfinv_gradient);
  spec.saves_outputs = 1;
  spec.autocast = AutocastRule::f32;
  return spec;
}
const Op erfinv_op{erfinv_spec()};

void lgamma_gradient(const GradContext& c, Grads g) { g[0] = c.grad() * digamma(c.input(0)); }
const Op lgamma_op{special("lgamma", lgamma_gradient)};

void digamma_gradient(const GradContext& c, Grads g) { g[0] = c.grad() * polygamma(1, c.input(0)); }
const Op digamma_op{special("digamma", digamma_gradient)};

Tensor run_polygamma(int64_t n, const Tensor& x);
// Of the function with n = 100 too, the last that users may ask for.
void polygamma_gradient(const GradContext& c, Grads g) {
  g[0] = c.grad() * run_polygamma(c.attrs.get_int("n") + 1, c.input(0));
}
// | `polygamma` | x -> y | `n` int, 1 to 1000 | floats; the n-th derivative of `digamma` |
const Op polygamma_op{special("polygamma", polygamma_gradient)};
Tensor run_polygamma(int64_t n, const Tensor& x) {
  return run(polygamma_op, {&x}, Attrs().set("n", n));
}

// Scalars: eps and 1 - eps, or -infinity and infinity.
void logit_gradient(const GradContext& c, Grads g) {
  const Tensor& x = c.input(0);
  const double low = c.scalars[0].value.f, high = c.scalars[1].value.f;
  const bool bounded = low != -kInfinity;
  const Tensor inside = logical_and(ge(x, bounded ? low : 0.0), le(x, bounded ? high : 1.0));
  const Tensor safe = where(inside, x, 0.5);
  g[0] = where(inside, c.grad() / (safe * (1.0 - safe)), bounded ? 0.0 : kNaN);
}
OpSpec logit_spec() {
  auto spec = special("logit", logit_gradient);
  spec.scalars = 2;
  return spec;
}
// | `logit` | x -> y | ; low, high | floats; log(p / (1 - p)) of p = x within [low, high], which
//   may be infinite |
const Op logit_op{logit_spec()};

}  // namespace

Tensor erfc(const Tensor& x) { return run_function(erfc_op, x); }
Tensor erfinv(const Tensor& x) { return run_function(erfinv_op, x); }
Tensor lgamma(const Tensor& x) { return run_function(lgamma_op, x); }
Tensor digamma(const Tensor& x) { return run_function(digamma_op, x); }

Tensor polygamma(int64_t n, const Tensor& x) {
  require_tensor("polygamma", x);
  if (n < 0 || n > 100)
    throw ValueError(fmt::format("polygamma: n must lie in [0, 100], found {}", n));
  return n == 0 ? digamma(x) : run_polygamma(n, x);
}

Tensor logit(const Tensor& x, std::optional<double> eps) {
  require_tensor("logit", x);
  // As in PyTorch, a negative number stands for none.
  const bool bounded = eps && !(*eps < 0);
  return run(logit_op, {&x}, {},
             {Scalar(bounded ? *eps : -kInfinity), Scalar(bounded ? 1 - *eps : kInfinity)});
}

// Near 0 by the series of sin(a) / a, because in the derivative of the quotient all digits cancel.
Tensor sinc(const Tensor& x) {
  require_tensor("sinc", x);
  if (const Widening wide{&x}) return wide.rounded(sinc(wide(x)));
  const Tensor wide = is_floating_point(dtype_of(x)) ? x : x.to(DType::f32);
  const Tensor angle = wide * std::numbers::pi, near = lt(abs(angle.detach()), 0.5);
  const Tensor z = square(where(near, angle, 0.0)), far = where(near, 1.0, angle);
  Tensor series = z * (-1.0 / 39916800);
  for (double term : {1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6}) series = (series + term) * z;
  return where(near, series + 1.0, sin(far) / far);
}

}  // namespace tenon
