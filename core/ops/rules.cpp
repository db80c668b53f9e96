#include <algorithm>

#include <tenon/core/base/number_text.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

// ---- on the way in ----

void throw_undefined(const char* op, size_t argument) {
  throw ValueError(
      fmt::format("{}: argument {} is an undefined tensor; give it values first, e.g. with "
                  "tenon::zeros",
                  op, argument));
}

void require_defined(const char* op, std::initializer_list<const Tensor*> tensors) {
  size_t i = 0;
  for (auto* t : tensors) {
    if (!t->defined()) throw_undefined(op, i);
    ++i;
  }
}

int64_t wrap_dim(int64_t dim, int64_t rank, const char* op) {
  int64_t wrapped = dim < 0 ? dim + rank : dim;
  if (wrapped < 0 || wrapped >= rank)
    throw IndexError(
        fmt::format("{}: dim {} is out of range for a tensor of {} dimensions{}", op, dim, rank,
                    rank > 0 ? fmt::format("; it must lie in [{}, {}]", -rank, rank - 1) : ""));
  return wrapped;
}

Shape wrap_dims(const Shape& dims, int64_t rank, const char* op) {
  bool chosen[Shape::max_rank] = {};
  for (int64_t dim : dims) {
    // A tensor without dimensions takes dim 0 and -1, as in PyTorch.
    if (rank == 0 && (dim == 0 || dim == -1)) continue;
    int64_t d = wrap_dim(dim, rank, op);
    if (chosen[d]) throw ValueError(fmt::format("{}: dim {} appears twice in {}", op, d, dims));
    chosen[d] = true;
  }
  Shape result;
  for (int64_t d = 0; d < rank; ++d)
    if (dims.empty() || chosen[d]) result.push_back(d);
  return result;
}

DType result_type(const Tensor& x, Number number) {
  DType t = dtype_of(x);
  if (is_floating_point(t)) return t;
  if (!number.integral) return DType::f32;
  return t == DType::boolean ? DType::i64 : t;
}

Scalar scalar_for(DType dtype, Number number) {
  if (is_floating_point(dtype)) return Scalar(number.f);
  if (dtype == DType::boolean) return Scalar::integer(number.f != 0);  // NaN is true
  // Converting any other number, or NaN, would be undefined.
  if (!number.integral && !(number.f >= -0x1p63 && number.f < 0x1p63))
    throw ValueError(
        fmt::format("the number {} has no value in {}; it must lie in [-2^63, 2^63), or the tensor "
                    "be floating",
                    number_text(number.f), dtype));
  return Scalar::integer(number.integral ? number.i : static_cast<int64_t>(number.f));
}

void require_index(const char* op, const Tensor& index, const char* name) {
  DType t = dtype_of(index);
  if (t != DType::i64 && t != DType::i32)
    throw DTypeError(fmt::format(
        "{}: {} must be i64 or i32, found {}; convert it with .to(tenon::i64)", op, name, t));
}

void require_mutable(const char* op, const Tensor& target) {
  if (grad_enabled() && target.requires_grad())
    throw AutogradError(
        fmt::format("{}: changes a tensor in place that requires a gradient, which is not "
                    "recorded; do it inside tenon::NoGrad, or on .detach()",
                    op));
}

void refuse_dtypes(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  throw DTypeError(fmt::format("{}: x is {}, weight {}{}; convert one with .to(dtype)", op,
                               dtype_of(x), dtype_of(weight),
                               bias.defined() ? fmt::format(", bias {}", dtype_of(bias)) : ""));
}

// ---- shape rules ----

void infer_floating(Infer& infer) {
  DType t = dtype_of(infer.in(0));
  infer.require_dtype(is_floating_point(t), 0, "a floating type");
  infer.output(t, shape_of(infer.in(0)));
}

void infer_numeric(Infer& infer) {
  DType t = dtype_of(infer.in(0));
  infer.require_dtype(t != DType::boolean, 0, "a floating or integer type");
  infer.output(t, shape_of(infer.in(0)));
}

void require_bias(Infer& infer, const Shape& weight) {
  if (infer.has(2) && !(shape_of(infer.in(2)) == Shape{weight[0]}))
    infer.shape_error(fmt::format("bias has shape {}, but must be ({},) for a weight of shape {}",
                                  shape_of(infer.in(2)), weight[0], weight));
}

void infer_given_shape(Infer& infer) { infer.output(dtype_of(infer.in(0)), infer.given_shape()); }

// ---- pieces of gradient rules ----

Shape keepdim_shape(const Shape& shape, const Shape& dims) {
  Shape result = shape;
  for (int64_t d : dims) result[static_cast<size_t>(d)] = 1;
  return result;
}

Tensor unreduce(const Tensor& reduced, const Shape& dims, const Shape& shape) {
  return reduced.reshape(keepdim_shape(shape, dims)).expand(shape);
}

Tensor sum_to(const Tensor& gradient, const Shape& shape) {
  const Shape& from = shape_of(gradient);
  if (from == shape) return gradient;
  size_t lead = from.size() - shape.size();
  Shape dims;
  for (size_t i = 0; i < from.size(); ++i)
    if (i < lead || (shape[i - lead] == 1 && from[i] != 1)) dims.push_back(static_cast<int64_t>(i));
  Tensor reduced = dims.empty() ? gradient : sum(gradient, dims);
  return reduced.reshape(shape);
}

Tensor sqrt_with_zero_gradient(const Tensor& x) {
  if (!wants_gradient(x)) return sqrt(x);
  Tensor zero = eq(x, 0.0);
  return where(zero, 0.0, sqrt(where(zero, 1.0, x)));
}

}  // namespace tenon
