// Division with a remainder, and bits of integers (core/ops/arithmetic.h).
#include <tenon/core/format.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pointwise/binary.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

// ---- fmod, remainder, floor_divide

// a - b q has the gradients g and -g q, where q, the whole quotient, is a step function.
template <class Quotient>
void rest_gradient(const GradContext& c, Grads g, Quotient quotient) {
  if (reversed(c)) {  // a number, then the tensor b
    g[0] = neg(c.grad()) * quotient(number(c) / c.input(0));
    return;
  }
  if (c.needs(0)) g[0] = first(c, c.grad());
  if (c.needs(1)) g[1] = second(c, neg(c.grad()) * quotient(c.input(0) / c.input(1)));
}
void fmod_gradient(const GradContext& c, Grads g) { rest_gradient(c, g, trunc); }
void remainder_gradient(const GradContext& c, Grads g) { rest_gradient(c, g, floor); }
void floor_divide_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = first(c, zeros_like(c.grad()));
  if (c.needs(1)) g[1] = second(c, zeros_like(c.grad()));
}

OpSpec division(const char* name, GradRule gradient) {
  return {
      .name = name,
      .inputs = "a b",
      .infer = infer_number,
      .gradient = gradient,
      .saves_inputs = 3,
      .pointwise = true,
      .promotion = Promotion::common,
      .number_for = 1,
  };
}
// | `fmod remainder floor_divide` | a, b? -> y | as `add` | floats, integers. The remainder has the
//   sign of a (`fmod`) or of b; `floor_divide` rounds down. Of integers by 0: 0 |
const Op fmod_op{division("fmod", fmod_gradient)};
const Op remainder_op{division("remainder", remainder_gradient)};
const Op floor_divide_op{division("floor_divide", floor_divide_gradient)};

// The number that an integer tensor is divided by.
void require_divisor(const Op& op, const Tensor& a, Number b) {
  require_tensor(op.name, a, "a");
  if (b.integral && b.i == 0 && !is_floating_point(dtype_of(a)))
    throw ValueError(fmt::format("{}: an integer tensor cannot be divided by 0; {}", op.name,
                                 conversion_to(DType::f32)));
}
Tensor divided(const Op& op, const Tensor& a, Number b) {
  require_divisor(op, a, b);
  return run_ordering(op, a, b);
}

bool wants_gradient(Number) { return false; }
Number widened(Number b) { return b; }
Tensor widened(const Tensor& x) { return is_half(dtype_of(x)) ? x.to(DType::f32) : x; }

// Halves are divided in f32: the quotient, rounded to a half, may be a whole number above it.
// Gradients are 0, as those of floor_divide, whose history it gets: those of the division may be
// infinite, and 0 times that is NaN.
template <class Divisor>
Tensor truncated_quotient(const Tensor& a, const Divisor& b, DType type) {
  const Tensor quotient = [&] {
    const NoGrad guard;
    return trunc(size_of(type) >= 4 ? div(a, b) : div(a.to(DType::f32), widened(b))).to(type);
  }();
  if (!tenon::wants_gradient(a) && !wants_gradient(b)) return quotient;
  return where(constant(1, DType::boolean, quotient.device()), quotient, floor_divide(a, b));
}

// Rounded down, and one more where that is not the same as towards 0.
Tensor truncated_division(const Tensor& a, const Tensor& b) {
  const Tensor quotient = floor_divide(a, b);
  const Tensor apart = logical_and(ne(remainder(a, b), 0), lt(quotient, 0));
  return quotient + apart.to(dtype_of(quotient));
}

void require_rounding_mode(std::string_view mode) {
  if (mode != "floor" && mode != "trunc")
    throw ValueError(
        fmt::format("div: rounding_mode \"{}\" is not known; use \"floor\" or \"trunc\"", mode));
}

// ---- bits

void infer_bits(Infer& infer) {
  infer.require_dtype(!is_floating_point(dtype_of(infer.in(0))), 0, "an integer type or bool",
                      DType::i64);
  infer_arithmetic(infer);
}
void infer_shift(Infer& infer) {
  infer.require_dtype(is_integer(dtype_of(infer.in(0))), 0, "an integer type", DType::i64);
  infer_arithmetic(infer);
}
OpSpec bits(const char* name, InferRule infer) {
  return {.name = name,
          .inputs = "a b",
          .infer = infer,
          .pointwise = true,
          .promotion = Promotion::common,
          .number_for = 1};
}
// | `bitwise_and bitwise_or bitwise_xor` | a, b? -> y | as `add` | integers, bool |
const Op bitwise_and_op{bits("bitwise_and", infer_bits)};
const Op bitwise_or_op{bits("bitwise_or", infer_bits)};
const Op bitwise_xor_op{bits("bitwise_xor", infer_bits)};
// | `bitwise_left_shift bitwise_right_shift` | a, b? -> y | as `add` | integers; by a negative
//   number or all bits: 0, or -1 of a negative number that is shifted right |
const Op left_shift_op{bits("bitwise_left_shift", infer_shift)};
const Op right_shift_op{bits("bitwise_right_shift", infer_shift)};

}  // namespace

Tensor fmod(const Tensor& a, const Tensor& b) { return run_binary(fmod_op, a, b); }
Tensor fmod(const Tensor& a, Number b) { return divided(fmod_op, a, b); }
Tensor remainder(const Tensor& a, const Tensor& b) { return run_binary(remainder_op, a, b); }
Tensor remainder(const Tensor& a, Number b) { return divided(remainder_op, a, b); }
Tensor remainder(Number a, const Tensor& b) { return run_binary(remainder_op, b, a, true); }
Tensor floor_divide(const Tensor& a, const Tensor& b) { return run_binary(floor_divide_op, a, b); }
Tensor floor_divide(const Tensor& a, Number b) { return divided(floor_divide_op, a, b); }

Tensor div(const Tensor& a, const Tensor& b, std::string_view rounding_mode) try {
  require_defined("div", {{"a", a}, {"b", b}});
  require_rounding_mode(rounding_mode);
  if (rounding_mode == "floor") return floor_divide(a, b);
  const DType type = result_type(a, b);
  return is_floating_point(type) ? truncated_quotient(a, b, type) : truncated_division(a, b);
} catch (const Error&) {
  rethrow_in("div");
}

Tensor div(const Tensor& a, Number b, std::string_view rounding_mode) try {
  require_tensor("div", a, "a");
  require_rounding_mode(rounding_mode);
  if (rounding_mode == "floor") return floor_divide(a, b);
  const DType type = result_type(a, b);
  if (is_floating_point(type)) return truncated_quotient(a, b, type);
  require_divisor(floor_divide_op, a, b);
  require_held("div", type, b);
  return truncated_division(a, constant(b, type, a.device()));
} catch (const Error&) {
  rethrow_in("div");
}

Tensor bitwise_and(const Tensor& a, const Tensor& b) { return run_binary(bitwise_and_op, a, b); }
Tensor bitwise_and(const Tensor& a, Number b) { return run_ordering(bitwise_and_op, a, b); }
Tensor bitwise_or(const Tensor& a, const Tensor& b) { return run_binary(bitwise_or_op, a, b); }
Tensor bitwise_or(const Tensor& a, Number b) { return run_ordering(bitwise_or_op, a, b); }
Tensor bitwise_xor(const Tensor& a, const Tensor& b) { return run_binary(bitwise_xor_op, a, b); }
Tensor bitwise_xor(const Tensor& a, Number b) { return run_ordering(bitwise_xor_op, a, b); }
Tensor bitwise_left_shift(const Tensor& a, const Tensor& b) {
  return run_binary(left_shift_op, a, b);
}
Tensor bitwise_left_shift(const Tensor& a, Number b) { return run_ordering(left_shift_op, a, b); }
Tensor bitwise_right_shift(const Tensor& a, const Tensor& b) {
  return run_binary(right_shift_op, a, b);
}
Tensor bitwise_right_shift(const Tensor& a, Number b) { return run_ordering(right_shift_op, a, b); }

Tensor bitwise_not(const Tensor& x) {
  require_tensor("bitwise_not", x);
  const DType type = dtype_of(x);
  if (type == DType::boolean) return logical_not(x);
  if (is_floating_point(type))
    throw DTypeError(fmt::format("bitwise_not: x must be an integer type or bool, found {}; {}",
                                 type, conversion_to(DType::i64)));
  return bitwise_xor(x, type == DType::u8 ? 255 : -1);
}

}  // namespace tenon
