#include <algorithm>
#include <limits>
#include <string_view>
#include <typeinfo>

#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/misplaced.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

// ---- on the way in ----

void throw_undefined(const char* op, const char* name) {
  throw ValueError(fmt::format(
      "{}: {} is an undefined tensor; give it values first, e.g. with tenon::zeros", op, name));
}

void throw_undefined(const char* op, const char* list, size_t i) {
  throw_undefined(op, fmt::format("{}[{}]", list, i).c_str());
}

namespace {
// Throws an E unless the error is of a class that is derived from it, and knows more.
template <class E>
void rethrow_as(const Error& error, const std::string& text) {
  if (typeid(error) == typeid(E)) throw E(text);
}
}  // namespace

void rethrow_in(const char* function) {
  try {
    throw;
  } catch (const Error& error) {
    const std::string_view found = error.what();
    if (error.of_earlier_work || found.starts_with(fmt::format("{}:", function))) throw;
    if (auto* misplaced = dynamic_cast<const MisplacedError*>(&error))
      throw MisplacedError(function, *misplaced);
    const std::string text = fmt::format("{}: {}", function, found);
    rethrow_as<ShapeError>(error, text);
    rethrow_as<DTypeError>(error, text);
    rethrow_as<IndexError>(error, text);
    rethrow_as<ValueError>(error, text);
    rethrow_as<AutogradError>(error, text);
    rethrow_as<OutOfMemoryError>(error, text);
    rethrow_as<UnsupportedError>(error, text);
    rethrow_as<DeviceError>(error, text);
    throw;
  }
}

void require_same_dtype(const char* op, const NamedArgument& a, const NamedArgument& b) {
  require_defined(op, {a, b});
  const DType wanted = dtype_of(a.tensor), found = dtype_of(b.tensor);
  if (found != wanted)
    throw DTypeError(fmt::format("{}: {} is {}, {} {}; {}", op, a.name, wanted, b.name, found,
                                 conversion_to(wanted, b.name)));
}

double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::epsilon();
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

namespace {
// A dimension of a tensor of `rank` dimensions, which an operator finds in a result of `places`.
int64_t wrap(int64_t dim, int64_t places, int64_t rank, const char* op) {
  int64_t wrapped = dim < 0 ? dim + places : dim;
  if (wrapped < 0 || wrapped >= places)
    throw IndexError(fmt::format(
        "{}: dim {} is out of range for a tensor of {} dimension{}{}", op, dim, rank,
        rank == 1 ? "" : "s",
        places > 0 ? fmt::format("; it must lie in [{}, {}]", -places, places - 1) : ""));
  return wrapped;
}
}  // namespace

int64_t wrap_dim(int64_t dim, int64_t rank, const char* op) { return wrap(dim, rank, rank, op); }
int64_t wrap_dim_of(const Tensor& x, int64_t dim, const char* op) {
  return wrap_dim(dim, std::max<int64_t>(1, static_cast<int64_t>(shape_of(x).size())), op);
}
int64_t wrap_new_dim(int64_t dim, int64_t rank, const char* op) {
  return wrap(dim, rank + 1, rank, op);
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
  return t == DType::boolean && !number.boolean ? DType::i64 : t;
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

bool holds(DType dtype, Number number) {
  if (!is_integer(dtype)) return true;
  if (!number.integral && !(number.f >= -0x1p63 && number.f < 0x1p63)) return false;
  const int64_t whole = number.integral ? number.i : static_cast<int64_t>(number.f);
  if (dtype == DType::u8) return whole >= 0 && whole <= std::numeric_limits<uint8_t>::max();
  return dtype == DType::i64 || (whole >= std::numeric_limits<int32_t>::min() &&
                                 whole <= std::numeric_limits<int32_t>::max());
}

void require_held(const char* op, DType dtype, Number number) {
  if (!holds(dtype, number))
    throw ValueError(
        fmt::format("{}: the number {} has no value in {}; give a dtype that holds it", op,
                    number.integral ? std::to_string(number.i) : number_text(number.f), dtype));
}

void require_index(const char* op, const Tensor& index, const char* name) {
  DType t = dtype_of(index);
  if (t != DType::i64 && t != DType::i32)
    throw DTypeError(fmt::format("{}: {} must be i64 or i32, found {}; {}", op, name, t,
                                 conversion_to(DType::i64)));
}

void require_mutable(const char* op, const Tensor& target) {
  if (grad_enabled() && target.requires_grad())
    throw AutogradError(
        fmt::format("{}: changes a tensor in place that requires a gradient, which is not "
                    "recorded; do it inside tenon::NoGrad, or on .detach()",
                    op));
}

void refuse_dtypes(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const DType t = dtype_of(x);
  throw DTypeError(fmt::format(
      "{}: x is {}, weight {}{}, but all must have one dtype; {}", op, t, dtype_of(weight),
      bias.defined() ? fmt::format(", bias {}", dtype_of(bias)) : "",
      t == dtype_of(weight) ? conversion_to(t, "the bias") : conversion_to(dtype_of(weight), "x")));
}

// ---- shape rules ----

void infer_floating(Infer& infer) {
  DType t = dtype_of(infer.in(0));
  infer.require_dtype(is_floating_point(t), 0, "a floating type");
  infer.output(t, shape_of(infer.in(0)));
}

void infer_slope(Infer& infer) {
  infer_floating(infer);
  const TensorDesc &gradient = infer.in(0), &saved = infer.in(1);
  infer.require_dtype(saved.dtype == gradient.dtype, 1, "the dtype of the gradient",
                      gradient.dtype);
}

void infer_numeric(Infer& infer) {
  DType t = dtype_of(infer.in(0));
  infer.require_dtype(t != DType::boolean, 0, "a floating or integer type", DType::i64);
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
