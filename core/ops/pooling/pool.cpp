// The windows of poolings and the sizes of their results (core/ops/pooling.h).
#include <tenon/core/format.h>
#include <tenon/core/ops/convolution/window.h>
#include <tenon/core/ops/pooling.h>
#include <tenon/core/ops/pooling/pool.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>
#include <tenon/plugins/abi/windows.h>

namespace tenon {

std::string described_planes(size_t dims, const Shape& x) {
  constexpr const char* parts[] = {"lines", "planes", "volumes"};
  return fmt::format("the {} of an input of shape {}", parts[dims - 1], x);
}

// ---- windows ----

PoolWindows::PoolWindows(const Attrs& attrs)
    : kernel(attrs.get_list("kernel_size")),
      stride(attrs.get_list("stride")),
      padding(attrs.get_list("padding")),
      dilation(Shape::filled(kernel.size(), 1)),
      ceil_mode(attrs.get_bool("ceil_mode")) {}

Attrs PoolWindows::attrs() const {
  return Attrs()
      .set("kernel_size", kernel)
      .set("stride", stride)
      .set("padding", padding)
      .set("ceil_mode", ceil_mode);
}

void PoolWindows::check(const char* op) const {
  check_sizes(op, "kernel_size", kernel, 1);
  check_sizes(op, "stride", stride, 1);
  check_sizes(op, "padding", padding, 0);
  check_sizes(op, "dilation", dilation, 1);
  for (size_t d = 0; d < dims(); ++d)
    if (padding[d] > kernel[d] / 2)
      throw ValueError(fmt::format("{}: padding {} must be at most half the kernel's size {}", op,
                                   padding, kernel));
}

bool PoolWindows::are_elements() const {
  const Shape ones = Shape::filled(dims(), 1), zeros = Shape::filled(dims(), 0);
  return kernel == ones && stride == ones && padding == zeros;
}

PoolWindows PoolWindows::over(int height, int width) const {
  const auto pick = [&](const Shape& sizes, int64_t none) {
    return Shape{height < 0 ? none : sizes[height], width < 0 ? none : sizes[width]};
  };
  PoolWindows result;
  result.kernel = pick(kernel, 1);
  result.stride = pick(stride, 1);
  result.padding = pick(padding, 0);
  result.dilation = pick(dilation, 1);
  result.ceil_mode = ceil_mode;
  return result;
}

std::string PoolWindows::count(Shape& x, bool dilated) const {
  const Shape whole = x;
  const size_t first = x.size() - dims();
  for (size_t d = 0; d < dims(); ++d)
    if (x[first + d] == 0) return fmt::format("{} are empty", described_planes(dims(), x));
  for (size_t d = 0; d < dims(); ++d) {
    int64_t& size = x[first + d];
    const int64_t extent = size;
    size = tn_window_positions(extent, kernel[d], stride[d], padding[d], dilation[d], ceil_mode);
    if (size < 1)
      return fmt::format(
          "a kernel of size {}{} is larger than the padded input: shape {}, padding {}", kernel,
          dilated ? fmt::format(" with dilation {}", dilation) : "", whole, padding);
    if (a_window_misses(extent, kernel[d], stride[d], padding[d], dilation[d], size))
      return fmt::format(
          "a window lies on padding alone, where there is no value to take: kernel {}, dilation {} "
          "and padding {} step over an input of shape {}; take a dilation of at most its {}",
          kernel, dilation, padding, whole, dims() == 2 ? "height and width" : "sizes");
  }
  return "";
}

void PoolWindows::require_fit(const char* op, const Shape& x) const {
  Shape shape = x;
  if (const std::string problem = count(shape, true); !problem.empty())
    throw ShapeError(fmt::format("{}: {}", op, problem));
}

Shape pooled_shape(Infer& infer, bool dilated) {
  infer.require_dtype(is_floating_point(dtype_of(infer.in(0))), 0, "a floating type");
  Shape shape = shape_of(infer.in(0));
  PoolWindows windows(infer.attrs);
  if (dilated) windows.dilation = infer.attrs.get_list("dilation");
  if (shape[2] > 0 && shape[3] > 0) require_addressable_padded(infer, shape, windows.padding);
  if (const std::string problem = windows.count(shape, dilated); !problem.empty())
    infer.shape_error(problem);
  return shape;
}

Tensor batched(const char* op, const Tensor& x, size_t dims) {
  require_tensor(op, x);
  if (!is_floating_point(dtype_of(x)))
    throw DTypeError(fmt::format("{}: needs a floating input, found {}; {}", op, dtype_of(x),
                                 conversion_to(DType::f32)));
  const size_t rank = shape_of(x).size();
  if (rank == dims + 1) return unsqueeze(x, 0);
  if (rank == dims + 2) return x;
  constexpr const char* names[] = {"l", "h, w", "d, h, w"};
  throw ShapeError(fmt::format("{}: needs an input (n, c, {}) or (c, {}), found shape {}", op,
                               names[dims - 1], names[dims - 1], shape_of(x)));
}

void require_elements(const char* op, const Tensor& x, size_t dims) {
  const Shape& shape = shape_of(x);
  for (size_t d = shape.size() - dims; d < shape.size(); ++d)
    if (shape[d] == 0)
      throw ShapeError(fmt::format("{}: {} are empty", op, described_planes(dims, shape)));
}

Tensor unbatched(const Tensor& y, const Tensor& x) {
  return y.defined() && shape_of(y).size() > shape_of(x).size() ? squeeze(y, 0) : y;
}

}  // namespace tenon
