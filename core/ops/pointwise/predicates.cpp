// What kind of number an element is, and whether tensors are the same (core/ops/arithmetic.h).
#include <limits>

#include <tenon/core/base/number_text.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

// Scalars: what stands for NaN, infinity and -infinity.
void nan_to_num_gradient(const GradContext& c, Grads g) {
  g[0] = where(isfinite(c.input(0)), c.grad(), 0.0);
}
void decompose_nan_to_num(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  Tensor y = where(eq(x, x), x, call.scalars[0].value.f);
  y = where(eq(x, kInfinity), call.scalars[1].value.f, y);
  out.push_back(where(eq(x, -kInfinity), call.scalars[2].value.f, y));
}
// | `nan_to_num` | x -> y | ; nan, posinf, neginf | floats; what stands for NaN and the infinities
//   |
const Op nan_to_num_op{{
    .name = "nan_to_num",
    .infer = infer_floating,
    .gradient = nan_to_num_gradient,
    .saves_inputs = 1,
    .pointwise = true,
    .decompose = decompose_nan_to_num,
    .scalars = 3,
}};

double largest_of(DType type) {
  switch (type) {
    case DType::f64:
      return std::numeric_limits<double>::max();
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.FEp127;
    default:
      return static_cast<double>(std::numeric_limits<float>::max());
  }
}

// For whole numbers, whose every element is finite.
Tensor truth_everywhere(const Tensor& x, bool value) { return value ? eq(x, x) : ne(x, x); }

void require_tolerance(const char* op, const char* name, double value) {
  if (!(value >= 0))
    throw ValueError(
        fmt::format("{}: {} must not be below 0, found {}", op, name, number_text(value)));
}

Tensor close(const char* op, const Tensor& first, const Tensor& second, double rtol, double atol,
             bool equal_nan) {
  require_same_dtype(op, {"a", first}, {"b", second});
  require_tolerance(op, "rtol", rtol);
  require_tolerance(op, "atol", atol);
  const DType type = dtype_of(first);
  const DType wide = !is_floating_point(type) ? DType::f64 : size_of(type) < 4 ? DType::f32 : type;
  const Tensor a = first.detach().to(wide), b = second.detach().to(wide);
  Tensor result = eq(first, second);
  if (equal_nan) result = logical_or(result, logical_and(isnan(a), isnan(b)));
  const Tensor distance = abs(a - b), allowed = abs(b * rtol) + atol;
  return logical_or(result, logical_and(isfinite(distance), le(distance, allowed)));
}

}  // namespace

Tensor isnan(const Tensor& x) {
  require_tensor("isnan", x);
  return ne(x, x);
}

Tensor isinf(const Tensor& x) {
  require_tensor("isinf", x);
  return is_floating_point(dtype_of(x)) ? eq(abs(x.detach()), kInfinity)
                                        : truth_everywhere(x, false);
}

Tensor isfinite(const Tensor& x) {
  require_tensor("isfinite", x);
  return is_floating_point(dtype_of(x)) ? lt(abs(x.detach()), kInfinity)
                                        : truth_everywhere(x, true);
}

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) try {
  return close("isclose", a, b, rtol, atol, equal_nan);
} catch (const Error&) {
  rethrow_in("isclose");
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) try {
  return all(close("allclose", a, b, rtol, atol, equal_nan)).item<bool>();
} catch (const Error&) {
  rethrow_in("allclose");
}

bool equal(const Tensor& a, const Tensor& b) {
  require_same_dtype("equal", {"a", a}, {"b", b});
  return shape_of(a) == shape_of(b) && all(eq(a, b)).item<bool>();
}

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  require_tensor("nan_to_num", x);
  const DType type = dtype_of(x);
  if (!is_floating_point(type)) return x;
  return run(nan_to_num_op, {&x}, {},
             {Scalar(nan), Scalar(posinf.value_or(largest_of(type))),
              Scalar(neginf.value_or(-largest_of(type)))});
}

}  // namespace tenon
