// Windows of elements: a view along one dimension, and columns of windows of images
// (core/ops/shape.h).
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/shape/unfold.h>

namespace tenon {

namespace {

// Windows along a dimension.
struct Windows {
  int64_t dim, size, step, dilation;
  explicit Windows(const Attrs& attrs)
      : dim(attrs.get_int("dim")),
        size(attrs.get_int("size")),
        step(attrs.get_int("step")),
        dilation(attrs.get_int("dilation")) {}
  Windows(int64_t dim, int64_t size, int64_t step, int64_t dilation)
      : dim(dim), size(size), step(step), dilation(dilation) {}
  Attrs attrs() const {
    return Attrs().set("dim", dim).set("size", size).set("step", step).set("dilation", dilation);
  }
  // How many fit into a dimension; 0 or less if none does.
  int64_t count(int64_t extent) const {
    const int64_t rest = extent - (size > 0 ? dilation * (size - 1) + 1 : 0);
    return rest < 0 ? 0 : rest / step + 1;
  }
  // Whether no element is in two windows.
  bool apart() const { return size <= 1 || step > dilation * (size - 1); }
};

Tensor unfold_backward(const Tensor& gradient, const Shape& shape, const Windows& windows);
Tensor run_unfold(const Tensor& x, const Windows& windows);

void unfold_gradient(const GradContext& c, Grads g) {
  g[0] = unfold_backward(c.grad(), c.input_shape(0), Windows(c.attrs));
}
void execute_unfold(const Call& call, Outputs& out) {
  auto& x = impl_of(call.in(0));
  const Windows windows(call.attrs);
  Shape shape = x.shape, strides = x.strides;
  const int64_t stride = x.strides[windows.dim];
  shape.push_back(windows.size);
  shape[windows.dim] = windows.count(x.shape[windows.dim]);
  // Any stride is right for one element, and the product of its step may not fit into int64.
  strides.push_back(windows.size > 1 ? windows.dilation * stride : 1);
  strides[windows.dim] = shape[windows.dim] > 1 ? windows.step * stride : 1;
  out.push_back(make_view(call.in(0), shape, strides, 0));
}
const Op unfold_op{{.name = "unfold", .gradient = unfold_gradient, .execute = execute_unfold}};

void unfold_backward_gradient(const GradContext& c, Grads g) {
  g[0] = run_unfold(c.grad(), Windows(c.attrs));
}
// Adds the first element of all windows, then the second, and so on: these are apart. Sums of half
// types are made in f32 and rounded once.
void execute_unfold_backward(const Call& call, Outputs& out) {
  const Tensor& gradient = call.in(0);
  const Windows windows(call.attrs);
  const bool rounded = is_half(gradient) && !windows.apart();
  const Tensor result = zeros(*call.shape, {.dtype = rounded ? DType::f32 : dtype_of(gradient),
                                            .device = gradient.device()});
  const int64_t count = gradient.size(windows.dim);
  for (int64_t i = 0; i < windows.size && count > 0; ++i) {
    const int64_t first = i * windows.dilation, last = first + (count - 1) * windows.step;
    const Tensor part = slice(result, windows.dim, first, last + 1, windows.step),
                 values = select(gradient, -1, i);
    write_part(part, windows.apart() ? values : part + values);
  }
  out.push_back(rounded ? to(result, dtype_of(gradient)) : result);
}
const Op unfold_backward_op{{
    .name = "unfold_backward",
    .gradient = unfold_backward_gradient,
    .execute = execute_unfold_backward,
}};

Tensor run_unfold(const Tensor& x, const Windows& windows) {
  return run(unfold_op, {&x}, windows.attrs());
}
Tensor unfold_backward(const Tensor& gradient, const Shape& shape, const Windows& windows) {
  return run_as(shape, unfold_backward_op, {&gradient}, windows.attrs());
}

}  // namespace

Tensor unfold_dim(const Tensor& x, int64_t dim, int64_t size, int64_t step, int64_t dilation) {
  return run_unfold(x, Windows(dim, size, step, dilation));
}
Tensor fold_dim(const Tensor& x, const Shape& shape, int64_t dim, int64_t step, int64_t dilation) {
  return unfold_backward(x, shape, Windows(dim, x.size(-1), step, dilation));
}

// ---- images ----

namespace {

void require_at_least(const char* op, const char* name, Pair value, int64_t least) {
  constexpr int64_t most = int64_t{1} << 31;
  if (value.height < least || value.width < least || value.height >= most || value.width >= most)
    throw ValueError(fmt::format("{}: {} must be from {} to below 2^31, found {}", op, name, least,
                                 value.shape()));
}

void check_options(const char* op, Pair kernel_size, const UnfoldOptions& options) {
  require_at_least(op, "kernel_size", kernel_size, 1);
  require_at_least(op, "dilation", options.dilation, 1);
  require_at_least(op, "padding", options.padding, 0);
  require_at_least(op, "stride", options.stride, 1);
}

// Windows of both dimensions of a padded image: first those of the height.
struct ImageWindows {
  Windows rows, cols;
  Shape padded, count;

  ImageWindows(const char* op, int64_t height, int64_t width, Pair kernel,
               const UnfoldOptions& options)
      : rows(2, kernel.height, options.stride.height, options.dilation.height),
        cols(3, kernel.width, options.stride.width, options.dilation.width),
        padded{height + 2 * options.padding.height, width + 2 * options.padding.width},
        count{rows.count(padded[0]), cols.count(padded[1])} {
    if (count[0] < 1 || count[1] < 1)
      throw ShapeError(fmt::format(
          "{}: a kernel of {} with dilation {} does not fit into an image of {} with padding {}",
          op, kernel.shape(), options.dilation.shape(), Shape{height, width},
          options.padding.shape()));
  }
};

}  // namespace

Tensor Tensor::unfold(int64_t dim, int64_t size, int64_t step) const {
  require_tensor("unfold", *this);
  if (shape_of(*this).empty()) return unsqueeze(0).unfold(dim, size, step)[0];
  const int64_t d = wrap_dim(dim, this->dim(), "unfold"), extent = shape_of(*this)[d];
  if (size < 0 || step <= 0)
    throw ValueError(fmt::format(
        "unfold: size must not be negative and step positive, found {} and {}", size, step));
  if (size > extent)
    throw ShapeError(
        fmt::format("unfold: windows of {} elements do not fit into dim {} of shape {}", size, dim,
                    shape_of(*this)));
  return run_unfold(*this, Windows(d, size, step, 1));
}

Tensor unfold(const Tensor& x, Pair kernel_size, const UnfoldOptions& options) {
  require_tensor("unfold", x);
  const Shape& shape = shape_of(x);
  if (shape.size() == 3) return squeeze(unfold(unsqueeze(x, 0), kernel_size, options), 0);
  if (shape.size() != 4)
    throw ShapeError(
        fmt::format("unfold: expects x of shape (n, c, h, w) or (c, h, w), found {}", shape));
  check_options("unfold", kernel_size, options);
  const ImageWindows windows("unfold", shape[2], shape[3], kernel_size, options);
  const Pair p = options.padding;
  const Tensor padded = p.is(0) ? x : pad(x, {p.width, p.width, p.height, p.height});
  const Tensor parts = run_unfold(run_unfold(padded, windows.rows), windows.cols);
  return reshape(permute(parts, {0, 1, 4, 5, 2, 3}),
                 {shape[0], shape[1] * kernel_size.height * kernel_size.width,
                  windows.count[0] * windows.count[1]});
}

Tensor fold(const Tensor& x, Pair output_size, Pair kernel_size, const UnfoldOptions& options) {
  require_tensor("fold", x);
  const Shape& shape = shape_of(x);
  if (shape.size() == 2)
    return squeeze(fold(unsqueeze(x, 0), output_size, kernel_size, options), 0);
  if (shape.size() != 3)
    throw ShapeError(fmt::format(
        "fold: expects x of shape (n, c kh kw, windows) or (c kh kw, windows), found {}", shape));
  check_options("fold", kernel_size, options);
  require_at_least("fold", "output_size", output_size, 1);
  const ImageWindows windows("fold", output_size.height, output_size.width, kernel_size, options);
  const int64_t elements = kernel_size.height * kernel_size.width,
                count = windows.count[0] * windows.count[1];
  if (shape[1] % elements != 0 || shape[2] != count)
    throw ShapeError(fmt::format(
        "fold: shape {} does not fit: the second dimension must be a multiple of the {} elements "
        "of a kernel of {}, and the third must be {}, the number of windows",
        shape, elements, kernel_size.shape(), count));
  const int64_t n = shape[0], c = shape[1] / elements;
  const Tensor parts = permute(
      reshape(x, {n, c, kernel_size.height, kernel_size.width, windows.count[0], windows.count[1]}),
      {0, 1, 4, 5, 2, 3});
  const Tensor lines = unfold_backward(
      parts, {n, c, windows.count[0], windows.padded[1], kernel_size.height}, windows.cols);
  const Tensor image =
      unfold_backward(lines, {n, c, windows.padded[0], windows.padded[1]}, windows.rows);
  const Pair p = options.padding;
  if (p.is(0)) return image;
  return contiguous(
      narrow(narrow(image, 2, p.height, output_size.height), 3, p.width, output_size.width));
}

}  // namespace tenon
