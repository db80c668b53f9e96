// The average and the p-norm of each window (core/ops/pooling.h).
#include <cmath>
#include <limits>

#include <tenon/core/base/number_text.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pooling.h>
#include <tenon/core/ops/pooling/pool.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// ---- the operator: linear, so the gradient of its gradient is the average again ----

Tensor average(const Tensor& x, const Attrs& attrs);

void avg_pool2d_backward_gradient(const GradContext& c, Grads g) {
  g[0] = average(c.grad(), c.attrs);
}
// | `avg_pool2d_backward` | g -> gx | as `avg_pool2d` | |
const Op avg_pool2d_backward_op{{
    .name = "avg_pool2d_backward",
    .infer = infer_given_shape,
    .gradient = avg_pool2d_backward_gradient,
}};

void infer_avg_pool2d(Infer& infer) {
  infer.output(dtype_of(infer.in(0)), pooled_shape(infer, false));
}
void avg_pool2d_gradient(const GradContext& c, Grads g) {
  g[0] = run_as(c.input_shape(0), avg_pool2d_backward_op, {&c.grad()}, c.attrs, c.input_format(0));
}
// | `avg_pool2d` | x -> y | `kernel_size stride padding`, `ceil_mode`, `count_include_pad` | |
const Op avg_pool2d_op{{
    .name = "avg_pool2d",
    .infer = infer_avg_pool2d,
    .gradient = avg_pool2d_gradient,
    .keeps_format = 1,
}};

Tensor average(const Tensor& x, const Attrs& attrs) { return run(avg_pool2d_op, {&x}, attrs); }

// ---- windows of other dimensions and divisors ----

Tensor average_lines(const Tensor& x, const PoolWindows& windows, bool count_include_pad) {
  return squeeze(average_planes(unsqueeze(x, 2), windows.over(-1, 0), count_include_pad), 2);
}

// The number of elements of a window is the product of those in the plane and those in depth, and
// so is what the sum is divided by.
Tensor average_volumes(const Tensor& x, const PoolWindows& windows, bool count_include_pad) {
  const Shape& s = shape_of(x);
  const Tensor inner = average_planes(reshape(x, {s[0], s[1] * s[2], s[3], s[4]}),
                                      windows.over(1, 2), count_include_pad);
  const int64_t h = shape_of(inner)[2], w = shape_of(inner)[3];
  const PoolWindows deep = windows.over(0, -1);
  if (deep.are_elements()) return reshape(inner, {s[0], s[1], s[2], h, w});
  const Tensor outer =
      average_planes(reshape(inner, {s[0], s[1], s[2], h * w}), deep, count_include_pad);
  return reshape(outer, {s[0], s[1], shape_of(outer)[2], h, w});
}

// Adds zeros on both sides, so that no window reaches beyond them: all have as many elements then.
Tensor padded_for(PoolWindows& windows, const Tensor& x) {
  const size_t dims = windows.dims();
  Shape counts = shape_of(x);
  if (!windows.ceil_mode || !windows.count(counts, false).empty()) return x;
  std::vector<int64_t> borders;
  for (size_t d = dims; d-- > 0;) {
    const int64_t size = shape_of(x)[2 + d], before = windows.padding[d],
                  last = (counts[2 + d] - 1) * windows.stride[d] + windows.kernel[d];
    borders.push_back(before);
    borders.push_back(std::max(before, last - size - before));
  }
  windows.padding = Shape::filled(dims, 0);
  windows.ceil_mode = false;
  return pad(x, borders);
}

Tensor avg_pool(const char* op, const Tensor& x, PoolWindows windows, bool count_include_pad,
                std::optional<int64_t> divisor) {
  if (divisor == 0) throw ValueError(fmt::format("{}: divisor_override must not be 0", op));
  const size_t dims = windows.dims();
  Tensor input = batched(op, x, dims);
  if (dims != 2) windows.require_fit(op, shape_of(input));
  // What is computed in two steps would be rounded twice in a half type.
  if (dims == 3 || divisor) input = input.to(computation_type(dtype_of(x)));
  if (divisor) {
    input = padded_for(windows, input);
    count_include_pad = true;
  }
  Tensor y = dims == 1   ? average_lines(input, windows, count_include_pad)
             : dims == 2 ? average_planes(input, windows, count_include_pad)
                         : average_volumes(input, windows, count_include_pad);
  if (divisor) {
    double elements = 1;
    for (int64_t k : windows.kernel) elements *= static_cast<double>(k);
    y = y * (elements / static_cast<double>(*divisor));
  }
  return unbatched(y.to(dtype_of(x)), x);
}

template <class Size>
Tensor avg_pool_sized(const char* op, const Tensor& x, const Size& kernel,
                      const AvgPoolOptions<Size>& o) {
  return avg_pool(op, x, {op, kernel, o.stride, o.padding, Size(1), o.ceil_mode},
                  o.count_include_pad, o.divisor_override);
}

template <class Size>
Tensor lp_pool(const char* op, const Tensor& x, double p, const Size& kernel, const Size& stride,
               bool ceil_mode) {
  if (p == 0 || std::isnan(p))
    throw ValueError(
        fmt::format("{}: norm_type must not be 0 or NaN, found {}", op, number_text(p)));
  const PoolWindows windows(op, kernel, stride, Size(0), Size(1), ceil_mode);
  batched(op, x, windows.dims());  // checks x
  if (std::isinf(p)) {
    const Tensor size = abs(x);
    return p > 0 ? max_pool(op, size, windows, false).values
                 : neg(max_pool(op, neg(size), windows, false).values);
  }
  double elements = 1;
  for (int64_t k : windows.kernel) elements *= static_cast<double>(k);
  const Tensor wide = x.to(computation_type(dtype_of(x)));
  const Tensor sum = avg_pool(op, pow(wide, p), windows, true, std::nullopt) * elements;
  // Where the sum is 0 the root has no slope, and the gradient is 0.
  const Tensor some = ne(sum, 0);
  const Tensor root = pow(where(some, sum, 1), 1 / p);
  return where(some, root, p > 0 ? 0.0 : std::numeric_limits<double>::infinity()).to(dtype_of(x));
}

}  // namespace

Tensor average_planes(const Tensor& x, const PoolWindows& windows, bool count_include_pad) {
  return average(x, windows.attrs().set("count_include_pad", count_include_pad));
}

Tensor avg_pool1d(const Tensor& x, Single kernel_size, const AvgPool1dOptions& options) {
  return avg_pool_sized("avg_pool1d", x, kernel_size, options);
}
Tensor avg_pool2d(const Tensor& x, Pair kernel_size, const AvgPool2dOptions& options) {
  return avg_pool_sized("avg_pool2d", x, kernel_size, options);
}
Tensor avg_pool3d(const Tensor& x, Triple kernel_size, const AvgPool3dOptions& options) {
  return avg_pool_sized("avg_pool3d", x, kernel_size, options);
}

Tensor lp_pool1d(const Tensor& x, double norm_type, Single kernel_size, Single stride,
                 bool ceil_mode) try {
  return lp_pool("lp_pool1d", x, norm_type, kernel_size, stride, ceil_mode);
} catch (const Error&) {
  rethrow_in("lp_pool1d");
}
Tensor lp_pool2d(const Tensor& x, double norm_type, Pair kernel_size, Pair stride,
                 bool ceil_mode) try {
  return lp_pool("lp_pool2d", x, norm_type, kernel_size, stride, ceil_mode);
} catch (const Error&) {
  rethrow_in("lp_pool2d");
}
Tensor lp_pool3d(const Tensor& x, double norm_type, Triple kernel_size, Triple stride,
                 bool ceil_mode) try {
  return lp_pool("lp_pool3d", x, norm_type, kernel_size, stride, ceil_mode);
} catch (const Error&) {
  rethrow_in("lp_pool3d");
}

}  // namespace tenon
