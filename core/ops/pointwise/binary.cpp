// Arithmetic on two operands (core/ops/pointwise.h). The second may be a number, which the plugin
// gets at each run, so that another number needs no new plan.
#include <cmath>
#include <limits>
#include <utility>

#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/dispatch/beside.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pointwise/accumulate.h>
#include <tenon/core/ops/pointwise/binary.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

const Attrs& order(bool reverse) {
  struct Orders {
    Attrs plain = Attrs().set("reverse", false), reversed = Attrs().set("reverse", true);
  };
  static constinit NeverDestroyed<Orders> orders;
  return reverse ? orders.get().reversed : orders.get().plain;
}

void add_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = first(c, c.grad());
  if (c.needs(1)) g[1] = second(c, c.grad());
}

void sub_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = reversed(c) ? neg(c.grad()) : first(c, c.grad());
  if (c.needs(1)) g[1] = second(c, neg(c.grad()));
}

void mul_gradient(const GradContext& c, Grads g) {
  if (has_number(c)) {
    g[0] = c.grad() * number(c);
    return;
  }
  if (c.needs(0)) g[0] = first(c, c.grad() * c.input(1));
  if (c.needs(1)) g[1] = second(c, c.grad() * c.input(0));
}

void div_gradient(const GradContext& c, Grads g) {
  const Tensor& a = c.input(0);
  if (has_number(c)) {
    // Dividing twice, because a * a may overflow.
    g[0] = reversed(c) ? c.grad() * (-number(c) / a / a) : c.grad() / number(c);
    return;
  }
  const Tensor& b = c.input(1);
  if (c.needs(0)) g[0] = first(c, c.grad() / b);
  if (c.needs(1)) g[1] = second(c, neg(c.grad()) * (a / b / b));
}

// The operand that is not chosen gets nothing, equal ones share, and where one is NaN both get all
// of it, as in PyTorch. `loses` is lt for maximum and gt for minimum.
template <class Loses>
void extremum_gradient(const GradContext& c, Grads g, Loses loses) {
  auto share = [&](const Tensor& a, const auto& b) {
    return where(loses(a, b), 0.0, where(eq(a, b), c.grad() * 0.5, c.grad()));
  };
  if (has_number(c)) {
    g[0] = share(c.input(0), Number(number(c)));
    return;
  }
  if (c.needs(0)) g[0] = first(c, share(c.input(0), c.input(1)));
  if (c.needs(1)) g[1] = second(c, share(c.input(1), c.input(0)));
}

void maximum_gradient(const GradContext& c, Grads g) {
  extremum_gradient(c, g, [](const Tensor& a, const auto& b) { return lt(a, b); });
}
void minimum_gradient(const GradContext& c, Grads g) {
  extremum_gradient(c, g, [](const Tensor& a, const auto& b) { return gt(a, b); });
}

// d(a^b)/da = b a^(b-1), 0 where b is 0; d(a^b)/db = a^b log a, 0 where a is 0 and b is not
// negative, as in PyTorch.
void pow_gradient(const GradContext& c, Grads g) {
  const Tensor &a = c.input(0), &y = c.output(0);
  if (reversed(c)) {
    double base = number(c);
    g[0] = base == 0 ? where(ge(a, 0.0), 0.0, c.grad() * y * std::log(base))
                     : c.grad() * (y * std::log(base));
    return;
  }
  if (has_number(c)) {
    double b = number(c);
    if (b == 0)
      g[0] = zeros_like(c.grad());
    else
      g[0] = c.grad() * ((b == 2 ? a : pow(a, b - 1)) * b);
    return;
  }
  const Tensor& b = c.input(1);
  if (c.needs(0)) g[0] = first(c, where(eq(b, 0.0), 0.0, c.grad() * (b * pow(a, b - 1.0))));
  if (!c.needs(1)) return;
  Tensor flat = logical_and(eq(a, 0.0), ge(b, 0.0));
  g[1] = second(c, where(flat, 0.0, c.grad() * (y * log(where(flat, 1.0, a)))));
}

// | `add sub mul div maximum minimum pow` | a, b? -> y | `reverse` bool; b | b absent: the scalar
//   is the second operand, or the first where `reverse`. floats; integers too, except for `div`;
//   bool for `add` and `maximum`, which are "or", and for `mul` and `minimum`, which are "and".
//   maximum and minimum return NaN if one operand is NaN. `pow` of integers wraps around; to a
//   negative power it is 0, except for bases 1 and -1 |
const Op add_op{{
    .name = "add",
    .inputs = "a b",
    .infer = infer_arithmetic,
    .gradient = add_gradient,
    .pointwise = true,
    .promotion = Promotion::common,
    .number_for = 1,
}};
const Op sub_op{{
    .name = "sub",
    .inputs = "a b",
    .infer = infer_number,
    .gradient = sub_gradient,
    .pointwise = true,
    .promotion = Promotion::common,
    .number_for = 1,
}};
const Op mul_op{{
    .name = "mul",
    .inputs = "a b",
    .infer = infer_arithmetic,
    .gradient = mul_gradient,
    .saves_inputs = 3,
    .pointwise = true,
    .promotion = Promotion::common,
    .number_for = 1,
}};
const Op div_op{{
    .name = "div",
    .inputs = "a b",
    .infer = infer_float,
    .gradient = div_gradient,
    .saves_inputs = 3,
    .pointwise = true,
    .promotion = Promotion::floating,
    .number_for = 1,
}};
const Op maximum_op{{
    .name = "maximum",
    .inputs = "a b",
    .infer = infer_arithmetic,
    .gradient = maximum_gradient,
    .saves_inputs = 3,
    .pointwise = true,
    .promotion = Promotion::common,
    .number_for = 1,
}};
const Op minimum_op{{
    .name = "minimum",
    .inputs = "a b",
    .infer = infer_arithmetic,
    .gradient = minimum_gradient,
    .saves_inputs = 3,
    .pointwise = true,
    .promotion = Promotion::common,
    .number_for = 1,
}};
const Op pow_op{{
    .name = "pow",
    .inputs = "a b",
    .infer = infer_float,
    .gradient = pow_gradient,
    .saves_inputs = 3,
    .saves_outputs = 1,
    .pointwise = true,
    .promotion = Promotion::floating,
    .autocast = AutocastRule::f32,
    .number_for = 1,
}};

// Computes integer powers of integers from the bits of the exponent, the highest first, for plugins
// that offer powers of floating dtypes only.
void decompose_whole_pow(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  Tensor a = x, b = call.optional(1);
  if (!call.has(1)) {
    b = constant(call.scalars[0].value.i, dtype_of(x), x.device());
    if (call.attrs.get_bool("reverse")) std::swap(a, b);
  }
  std::vector<Tensor> powers = {a};  // a^1, a^2, a^4, …
  const int bits = dtype_of(x) == DType::i64 ? 63 : dtype_of(x) == DType::i32 ? 31 : 8;
  while (powers.size() < static_cast<size_t>(bits)) powers.push_back(powers.back() * powers.back());
  Tensor rest = dtype_of(x) == DType::u8 ? b : abs(b), result = ones_like(a * b), odd;
  for (size_t k = powers.size(); k-- > 0;) {
    const int64_t bit = int64_t{1} << k;
    odd = ge(rest, bit);
    result = where(odd, result * powers[k], result);
    rest = where(odd, rest - bit, rest);
  }
  if (dtype_of(x) == DType::u8) return void(out.push_back(result));
  // To a negative power: 1 / 1 and 1 / -1 are whole, and every other result rounds to 0.
  const Tensor inverse = where(logical_or(eq(a, 1), logical_and(eq(a, -1), logical_not(odd))), 1,
                               where(eq(a, -1), a, zeros_like(a)));
  out.push_back(where(lt(b, 0), inverse, result));
}

const Op whole_pow_op{{
    .name = "pow",
    .inputs = "a b",
    .infer = infer_number,
    .pointwise = true,
    .promotion = Promotion::common,
    .decompose = decompose_whole_pow,
    .number_for = 1,
}};

}  // namespace

void infer_arithmetic(Infer& infer) {
  infer.output(dtype_of(infer.in(0)), broadcast_inputs(infer));
}
void infer_number(Infer& infer) {
  infer.require_dtype(dtype_of(infer.in(0)) != DType::boolean, 0, "a floating or integer type",
                      DType::i64);
  infer_arithmetic(infer);
}
void infer_float(Infer& infer) {
  infer.require_dtype(is_floating_point(dtype_of(infer.in(0))), 0, "a floating type");
  infer_arithmetic(infer);
}

Shape broadcast_inputs(Infer& infer) {
  if (!infer.has(1)) return shape_of(infer.in(0));
  return broadcast_shapes(shape_of(infer.in(0)), shape_of(infer.in(1)), infer.op.name);
}

namespace {
// The names differ: atan2 has y and x.
void require_operand(const Op& op, const Tensor& operand, size_t i) {
  if (!operand.defined()) [[unlikely]]
    throw_undefined(op.name, input_name(op, i, 2).c_str());
}
}  // namespace

Tensor run_binary(const Op& op, const Tensor& a, const Tensor& b) {
  require_operand(op, a, 0);
  require_operand(op, b, 1);
  return run(op, {&a, &b});
}

Tensor run_binary(const Op& op, const Tensor& a, Number b, bool reverse) {
  require_operand(op, a, reverse ? 1 : 0);
  DType t = dtype_of(a);
  if (is_floating_point(t)) [[likely]]
    return run(op, {&a, nullptr}, order(reverse), {Scalar(b.f)});
  DType wanted = result_type(a, b);
  Tensor converted = a.to(wanted);
  return run(op, {&converted, nullptr}, order(reverse), {scalar_for(wanted, b)});
}

// div computes in floating dtypes only, and so does pow unless both of its operands are integers.
Tensor float_binary(const Op& op, const Tensor& a, Number b, bool reverse) {
  require_operand(op, a, reverse ? 1 : 0);
  return run(op, {&a, nullptr}, order(reverse), {Scalar(b.f)});
}

Tensor run_ordering(const Op& op, const Tensor& a, Number b) {
  require_operand(op, a, 0);
  if (!is_floating_point(dtype_of(a))) require_held(op.name, result_type(a, b), b);
  return run_binary(op, a, b);
}

bool accumulate(DeviceContext& by, std::span<const Tensor> row) {
  return accumulate_beside(by, add_op, row);
}

Tensor add(const Tensor& a, const Tensor& b) { return run_binary(add_op, a, b); }
Tensor add(const Tensor& a, Number b) { return run_binary(add_op, a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return run_binary(sub_op, a, b); }
Tensor sub(const Tensor& a, Number b) { return run_binary(sub_op, a, b); }
Tensor sub(Number a, const Tensor& b) { return run_binary(sub_op, b, a, true); }
Tensor mul(const Tensor& a, const Tensor& b) { return run_binary(mul_op, a, b); }
Tensor mul(const Tensor& a, Number b) { return run_binary(mul_op, a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return run_binary(div_op, a, b); }
Tensor div(const Tensor& a, Number b) { return float_binary(div_op, a, b); }
Tensor div(Number a, const Tensor& b) { return float_binary(div_op, b, a, true); }
Tensor maximum(const Tensor& a, const Tensor& b) { return run_binary(maximum_op, a, b); }
Tensor maximum(const Tensor& a, Number b) { return run_ordering(maximum_op, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return run_binary(minimum_op, a, b); }
Tensor minimum(const Tensor& a, Number b) { return run_ordering(minimum_op, a, b); }

Tensor pow(const Tensor& a, const Tensor& b) {
  require_defined("pow", {{"a", a}, {"b", b}});
  const DType t = result_type(a, b);
  if (is_floating_point(t)) return run_binary(pow_op, a, b);
  if (t == DType::boolean)
    throw DTypeError("pow: both are bool, but one must be a number; " + conversion_to(DType::i64));
  return run_binary(whole_pow_op, a, b);
}

Tensor pow(const Tensor& a, Number b) {
  require_tensor("pow", a, "a");
  if (is_floating_point(dtype_of(a)) || !b.integral) return float_binary(pow_op, a, b);
  if (b.i < 0)
    throw ValueError(fmt::format(
        "pow: an integer tensor cannot be raised to a negative integer power; found a tensor of "
        "type {} and the exponent {}; {}, or give a floating exponent such as {}.0",
        dtype_of(a), b.i, conversion_to(DType::f32), b.i));
  // As PyTorch has it: to the power of false everything is true.
  if (dtype_of(a) == DType::boolean && b.boolean) return logical_or(a, eq(a, b));
  // An exponent that the dtype of `a` cannot hold is used in i64, where powers wrap around to the
  // same low bits.
  const bool narrow = dtype_of(a) == DType::i32 || dtype_of(a) == DType::u8;
  if (narrow && b.i > (dtype_of(a) == DType::u8 ? 255 : std::numeric_limits<int32_t>::max()))
    return pow(a.to(DType::i64), b).to(dtype_of(a));
  return run_binary(whole_pow_op, a, b);
}

Tensor pow(Number a, const Tensor& b) {
  require_tensor("pow", b, "b");
  if (is_floating_point(dtype_of(b)) || !a.integral) return float_binary(pow_op, b, a, true);
  return run_binary(whole_pow_op, b, a, true);
}

Tensor Tensor::pow(Number exponent) const { return tenon::pow(*this, exponent); }

}  // namespace tenon
