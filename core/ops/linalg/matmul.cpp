// Products of matrices (core/ops/linalg.h).
#include <algorithm>
#include <atomic>

#include <tenon/core/base/recording.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/linalg/precision.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pointwise/finish.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

std::atomic<bool> reduced_precision{false};

void infer_matmul(Infer& infer) {
  require_activation(infer);
  for (size_t i = 0; i < 2; ++i)
    infer.require_dtype(is_floating_point(dtype_of(infer.in(i))), i, "a floating type");
  Shape shape = shape_of(infer.in(0));
  shape[shape.size() - 1] = shape_of(infer.in(1)).back();
  infer.output(dtype_of(infer.in(0)), shape);
  require_residual(infer);
}

// The product of operands of one rank and equal batches, with the precision of `like`'s attributes.
Tensor product(const Tensor& a, const Tensor& b, const Attrs& like);

void matmul_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = product(c.grad(), transpose(c.input(1), -1, -2), c.attrs);
  if (c.needs(1)) g[1] = product(transpose(c.input(0), -1, -2), c.grad(), c.attrs);
}
// | `matmul` | a(…,m,k), b(…,k,n), residual(…,m,n)? -> y(…,m,n) | `residual` bool and `activation`
//   text, optional; the scalars of the activation | same rank >= 2, equal batch sizes, batch
//   strides may be 0. Both of any strides: transposed views must be fast. k = 0 gives zeros |
const Op matmul_op{{
    .name = "matmul",
    .inputs = "a b",
    .infer = infer_matmul,
    .gradient = matmul_gradient,
    .saves_inputs = 3,
    .autocast = AutocastRule::lower,
    .count_scalars = count_activation_scalars,
}};

Tensor product(const Tensor& a, const Tensor& b, const Attrs& like) {
  return run(matmul_op, {&a, &b}, like);
}
Tensor product(const Tensor& a, const Tensor& b) {
  return product(a, b, precision_of(dtype_of(a)));
}

void infer_linear(Infer& infer) {
  require_activation(infer);
  DType t = dtype_of(infer.in(0));
  infer.require_dtype(is_floating_point(t), 0, "a floating type");
  const Shape &x = shape_of(infer.in(0)), &weight = shape_of(infer.in(1));
  if (weight.size() != 2 || x.back() != weight[1])
    infer.shape_error(
        fmt::format("cannot apply a weight of shape {} (out, in) to an input whose last dimension "
                    "is {}; it must equal the weight's last",
                    weight, x.back()));
  require_bias(infer, weight);
  infer.output(t, {x[0], weight[0]});
  require_residual(infer);
}

// The gradients of x, weight and bias, given that of x weight^T + bias.
void linear_backward(const GradContext& c, const Tensor& gradient, Grads g) {
  if (c.needs(0)) g[0] = product(gradient, c.input(1), c.attrs);
  if (c.needs(1)) g[1] = product(transpose(gradient, 0, 1), c.input(0), c.attrs);
  if (c.needs(2)) g[2] = sum(gradient, {0});
}

void linear_gradient(const GradContext& c, Grads g) { linear_backward(c, c.grad(), g); }
void decompose_linear(const Call& call, Outputs& out) {
  Tensor y = product(call.in(0), transpose(call.in(1), 0, 1), call.attrs);
  out.push_back(call.has(2) ? y + call.in(2) : y);
}
// | `linear` | x(m,k), weight(n,k), bias(n)?, residual(m,n)? -> y(m,n) | as matmul | x weightᵀ +
//   bias |
const Op linear_op{{
    .name = "linear",
    .inputs = "x weight bias",
    .infer = infer_linear,
    .gradient = linear_gradient,
    .saves_inputs = 3,
    .autocast = AutocastRule::lower,
    .decompose = decompose_linear,
    .count_scalars = count_activation_scalars,
}};

void linear_relu_gradient(const GradContext& c, Grads g) {
  linear_backward(c, where(le(c.output(0), 0), 0, c.grad()), g);
}
void decompose_linear_relu(const Call& call, Outputs& out) {
  const Tensor* bias = call.has(2) ? call.inputs[2] : nullptr;
  out.push_back(relu(run(linear_op, {call.inputs[0], call.inputs[1], bias}, call.attrs)));
}
// | `linear_relu` | x, weight, bias? -> y | | relu of `linear`. Optional: where it is not offered
//   the core computes the two |
const Op linear_relu_op{{
    .name = "linear_relu",
    .inputs = "x weight bias",
    .infer = infer_linear,
    .gradient = linear_relu_gradient,
    .saves_inputs = 3,
    .saves_outputs = 1,
    .autocast = AutocastRule::lower,
    .decompose = decompose_linear_relu,
}};

[[noreturn]] void refuse(const char* op, const Tensor& a, const Tensor& b, const std::string& why) {
  throw ShapeError(
      fmt::format("{}: cannot multiply {} by {}: {}", op, shape_of(a), shape_of(b), why));
}

void check_operands(const char* op, const Tensor& a, const Tensor& b) {
  require_tensor(op, a, "a");
  require_tensor(op, b, "b");
  const Shape &sa = shape_of(a), &sb = shape_of(b);
  if (sa.empty() || sb.empty()) refuse(op, a, b, "a tensor without dimensions is multiplied by *");
  int64_t inner_a = sa.back(), inner_b = sb.size() == 1 ? sb[0] : sb[sb.size() - 2];
  if (inner_a != inner_b)
    refuse(op, a, b,
           fmt::format("the last dimension of the first ({}) must equal the {} of the second ({})",
                       inner_a, sb.size() == 1 ? "only one" : "second-to-last", inner_b));
}

Shape batch_of(const Shape& shape) { return Shape(shape.span().first(shape.size() - 2)); }

Shape with_matrix(Shape batch, const Shape& matrix) {
  batch.push_back(matrix[matrix.size() - 2]);
  batch.push_back(matrix.back());
  return batch;
}

// The product of operands of at least two dimensions each.
Tensor multiply(const Tensor& a, const Tensor& b) {
  const Shape &sa = shape_of(a), &sb = shape_of(b);
  if (sa.size() == 2 && sb.size() == 2) return product(a, b);
  if (sb.size() == 2) {
    // One matrix for all batches: one product of all rows, and one in the gradient. The last two
    // sizes are given because -1 is ambiguous for an empty tensor.
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < sa.size(); ++i) rows *= sa[i];
    Shape shape = sa;
    shape[shape.size() - 1] = sb[1];
    return product(a.reshape({rows, sa.back()}), b).reshape(shape);
  }
  Shape batch_a = batch_of(sa), batch_b = batch_of(sb);
  if (batch_a == batch_b) return product(a, b);
  Shape batch = broadcast_shapes(batch_a, batch_b, "matmul: batch dimensions");
  return product(expand(a, with_matrix(batch, sa)), expand(b, with_matrix(batch, sb)));
}

// Elements that are multiplied at once where whole numbers are.
constexpr int64_t kProductsAtOnce = int64_t{1} << 22;

// No kernel multiplies matrices of whole numbers. Their elements are multiplied and added up, as
// many terms at a time as keep the products small.
Tensor multiply_whole(const Tensor& a, const Tensor& b) {
  const Shape &sa = shape_of(a), &sb = shape_of(b);
  const Shape batch = broadcast_shapes(batch_of(sa), batch_of(sb), "matmul: batch dimensions");
  const int64_t results = batch.numel() * sa[sa.size() - 2] * sb.back(), terms = sa.back(),
                most = std::max<int64_t>(1, kProductsAtOnce / std::max<int64_t>(1, results));
  const auto part = [&](int64_t first, int64_t count) {
    return sum(
        unsqueeze(narrow(a, -1, first, count), -1) * unsqueeze(narrow(b, -2, first, count), -3),
        Shape{-2});
  };
  Tensor total = part(0, std::min(terms, most));
  for (int64_t k = most; k < terms; k += most) total = total + part(k, std::min(most, terms - k));
  return total.to(dtype_of(a));
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) try {
  if (const Autocasting cast{"matmul", {&a, &b}}) return matmul(cast(a), cast(b));
  check_operands("matmul", a, b);
  if (dtype_of(a) != dtype_of(b)) {
    DType t = result_type(a, b);
    return matmul(a.to(t), b.to(t));
  }
  const auto product_of = is_integer(dtype_of(a)) ? multiply_whole : multiply;
  bool row = shape_of(a).size() == 1, column = shape_of(b).size() == 1;
  if (!row && !column) [[likely]]
    return product_of(a, b);
  Tensor y = product_of(row ? unsqueeze(a, 0) : a, column ? unsqueeze(b, 1) : b);
  if (column) y = squeeze(y, -1);
  if (row) y = squeeze(y, column ? -1 : -2);
  return y;
} catch (const Error&) {
  rethrow_in("matmul");
}

Tensor mm(const Tensor& a, const Tensor& b) try {
  require_defined("mm", {{"a", a}, {"b", b}});
  if (shape_of(a).size() != 2 || shape_of(b).size() != 2)
    refuse("mm", a, b, "both must be matrices; matmul takes other ranks");
  check_operands("mm", a, b);
  return matmul(a, b);
} catch (const Error&) {
  rethrow_in("mm");
}

Tensor bmm(const Tensor& a, const Tensor& b) try {
  require_defined("bmm", {{"a", a}, {"b", b}});
  const Shape &sa = shape_of(a), &sb = shape_of(b);
  if (sa.size() != 3 || sb.size() != 3)
    refuse("bmm", a, b, "both must have three dimensions; matmul takes other ranks");
  if (sa[0] != sb[0])
    refuse("bmm", a, b, "both must have the same first dimension; matmul broadcasts");
  check_operands("bmm", a, b);
  return matmul(a, b);
} catch (const Error&) {
  rethrow_in("bmm");
}

namespace {

// Takes x of any rank as the rows of a matrix.
Tensor apply_linear(const Op& op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (const Autocasting cast{op.name, {&x, &weight, &bias}})
    return apply_linear(op, cast(x), cast(weight), cast(bias));
  require_tensor(op.name, x);
  require_tensor(op.name, weight, "weight");
  const Tensor* b = bias.defined() ? &bias : nullptr;
  require_one_dtype(op.name, x, weight, bias);
  const Shape& shape = shape_of(x);
  const Attrs attrs = precision_of(dtype_of(x));
  if (shape.size() == 2) [[likely]]
    return run(op, {&x, &weight, b}, attrs);
  if (shape.empty())
    throw ShapeError(fmt::format("{}: x needs at least one dimension, found shape ()", op.name));
  if (shape_of(weight).size() != 2 || shape.back() != shape_of(weight)[1])
    throw ShapeError(
        fmt::format("{}: cannot apply a weight of shape {} (out, in) to an input of shape {}: its "
                    "last dimension must equal the weight's last",
                    op.name, shape_of(weight), shape));
  Shape result = shape;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  result[result.size() - 1] = shape_of(weight)[0];
  Tensor flat = x.reshape({rows, shape.back()});
  return run(op, {&flat, &weight, b}, attrs).reshape(result);
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return apply_linear(linear_op, x, weight, bias);
}
Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return apply_linear(linear_relu_op, x, weight, bias);
}

void set_float32_matmul_precision(std::string_view precision) {
  if (precision != "highest" && precision != "high")
    throw ValueError(
        fmt::format("set_float32_matmul_precision: precision must be \"highest\" or \"high\", "
                    "found \"{}\"",
                    precision));
  reduced_precision.store(precision == "high", std::memory_order_relaxed);
  recording::changed();
}
std::string_view float32_matmul_precision() {
  return reduced_precision.load(std::memory_order_relaxed) ? "high" : "highest";
}

Attrs precision_of(DType dtype) {
  Attrs attrs;
  add_precision(dtype, attrs);
  return attrs;
}
void add_precision(DType dtype, Attrs& attrs) {
  if (dtype == f32 && reduced_precision.load(std::memory_order_relaxed))
    attrs.set_hint("precision", "high");
}

Tensor Tensor::matmul(const Tensor& other) const { return tenon::matmul(*this, other); }

}  // namespace tenon
