// Slices and selections, whose gradient is zeros around the gradient of what was taken
// (core/ops/shape.h).
#include <algorithm>

#include <tenon/core/format.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// Where a slice lies along its dimension.
struct SliceRange {
  int64_t dim, start, step;
  explicit SliceRange(const Attrs& attrs)
      : dim(attrs.get_int("dim")), start(attrs.get_int("start")), step(attrs.get_int("step")) {}
  // The `length` elements of x from there.
  Tensor of(const Tensor& x, int64_t length) const {
    return slice(x, dim, start, start + length * step, step);
  }
};

void slice_backward_gradient(const GradContext& c, Grads g) {
  SliceRange range(c.attrs);
  g[0] = range.of(c.grad(), c.input_shape(0)[range.dim]);
}
void decompose_slice_backward(const Call& call, Outputs& out) {
  const Tensor& gradient = call.in(0);
  SliceRange range(call.attrs);
  Tensor result = zeros(*call.shape, {.dtype = dtype_of(gradient), .device = gradient.device()});
  write_part(range.of(result, gradient.size(range.dim)), gradient);
  out.push_back(result);
}
// | `slice_backward` | g -> gx | `dim`, `start`, `step` | zeros except gx[..., start + k*step, ...]
//   = g[..., k, ...] |
const Op slice_backward_op{{
    .name = "slice_backward",
    .infer = infer_given_shape,
    .gradient = slice_backward_gradient,
    .decompose = decompose_slice_backward,
}};

Tensor slice_backward(const Tensor& gradient, const Shape& shape, int64_t dim, int64_t start,
                      int64_t step) {
  return run_as(shape, slice_backward_op, {&gradient},
                Attrs().set("dim", dim).set("start", start).set("step", step));
}

void slice_gradient(const GradContext& c, Grads g) {
  SliceRange range(c.attrs);
  g[0] = slice_backward(c.grad(), c.input_shape(0), range.dim, range.start, range.step);
}
void execute_slice(const Call& call, Outputs& out) {
  auto& x = impl_of(call.in(0));
  SliceRange range(call.attrs);
  const auto dim = static_cast<size_t>(range.dim);
  Shape shape = x.shape, strides = x.strides;
  shape[dim] = call.attrs.get_int("length");
  strides[dim] *= range.step;
  int64_t offset = shape[dim] > 0 ? range.start * x.strides[dim] : 0;
  out.push_back(make_view(call.in(0), shape, strides, offset));
}
const Op slice_op{{.name = "slice", .gradient = slice_gradient, .execute = execute_slice}};

void select_gradient(const GradContext& c, Grads g) {
  int64_t dim = c.attrs.get_int("dim"), index = c.attrs.get_int("index");
  g[0] = slice_backward(unsqueeze(c.grad(), dim), c.input_shape(0), dim, index, 1);
}
void execute_select(const Call& call, Outputs& out) {
  auto& x = impl_of(call.in(0));
  const auto dim = static_cast<size_t>(call.attrs.get_int("dim"));
  Shape shape = x.shape, strides = x.strides;
  int64_t offset = call.attrs.get_int("index") * strides[dim];
  shape.erase(dim);
  strides.erase(dim);
  out.push_back(make_view(call.in(0), shape, strides, shape.numel() > 0 ? offset : 0));
}
const Op select_op{{.name = "select", .gradient = select_gradient, .execute = execute_select}};

Tensor run_slice(const Tensor& x, int64_t dim, int64_t start, int64_t length, int64_t step) {
  return run(slice_op, {&x},
             Attrs().set("dim", dim).set("start", start).set("step", step).set("length", length));
}

}  // namespace

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  require_tensor("narrow", x);
  int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "narrow"),
          size = shape_of(x)[d];
  int64_t from = start < 0 ? start + size : start;
  if (from < 0 || length < 0 || from > size || length > size - from)
    throw IndexError(
        fmt::format("narrow: start {} and length {} do not lie within dim {} of shape {}", start,
                    length, dim, shape_of(x)));
  return run_slice(x, d, from, length, 1);
}

Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  require_tensor("slice", x);
  int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "slice"),
          size = shape_of(x)[d];
  if (step <= 0) throw ValueError(fmt::format("slice: step must be positive, found {}", step));
  auto bound = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  int64_t first = bound(start), last = bound(end);
  int64_t length = last > first ? (last - first - 1) / step + 1 : 0;
  return run_slice(x, d, first, length, length > 1 ? step : 1);
}

namespace {
Tensor select_as(const char* op, const Tensor& x, int64_t dim, int64_t index) {
  require_tensor(op, x);
  int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), op), size = shape_of(x)[d];
  int64_t wrapped = index < 0 ? index + size : index;
  if (wrapped < 0 || wrapped >= size)
    throw IndexError(fmt::format(
        "{}: index {} is out of range for dim {} of shape {}; {}", op, index, dim, shape_of(x),
        size > 0 ? fmt::format("it must lie in [{}, {}]", -size, size - 1) : "its size is 0"));
  return run(select_op, {&x}, Attrs().set("dim", d).set("index", wrapped));
}
}  // namespace

Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  return select_as("select", x, dim, index);
}

Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  return tenon::narrow(*this, dim, start, length);
}
Tensor Tensor::slice(int64_t dim, int64_t start, int64_t end, int64_t step) const {
  return tenon::slice(*this, dim, start, end, step);
}
Tensor Tensor::select(int64_t dim, int64_t index) const { return tenon::select(*this, dim, index); }
Tensor Tensor::operator[](int64_t index) const { return select_as("operator[]", *this, 0, index); }

}  // namespace tenon
