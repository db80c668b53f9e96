// The largest element of each window, and the reverse (core/ops/pooling.h).
#include <algorithm>

#include <tenon/core/dispatch/replica.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/convolution/window.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pooling.h>
#include <tenon/core/ops/pooling/pool.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// The forward pass has fixed the positions, so this operator is linear, and its gradient picks the
// same positions. The positions say everything, but it is given the windows as well: with them a
// device need not search for the windows that add to a pixel.
void max_pool2d_backward_gradient(const GradContext& c, Grads g) {
  if (!c.needs(0)) return;
  const Shape& from = c.grad().shape();
  const Shape& to = c.input_shape(0);
  Tensor planes = c.grad().reshape({from[0], from[1], from[2] * from[3]});
  Tensor positions = c.input(1).reshape({to[0], to[1], to[2] * to[3]});
  g[0] = gather(planes, 2, positions).reshape(to);
}
// | `max_pool2d_backward` | g, indices -> gx | as max_pool2d | overlapping windows add |
const Op max_pool2d_backward_op{{
    .name = "max_pool2d_backward",
    .infer = infer_given_shape,
    .gradient = max_pool2d_backward_gradient,
    .saves_inputs = 2,
}};

void infer_max_pool2d(Infer& infer) {
  Shape shape = pooled_shape(infer, true);
  infer.output(dtype_of(infer.in(0)), shape);
  infer.output(DType::i64, shape);
}
void max_pool2d_gradient(const GradContext& c, Grads g) {
  g[0] = run_as(c.input_shape(0), max_pool2d_backward_op, {&c.grad(), &c.output(1)}, c.attrs,
                c.input_format(0));
}
// | `max_pool2d` | x(n,c,h,w) -> y, indices(i64)? | `kernel_size stride padding dilation` two ints
//   each, `ceil_mode` bool | indices: position ih*w+iw in the plane; padding counts as -inf, and
//   every window covers a pixel; NaN wins |
const Op max_pool2d_op{{
    .name = "max_pool2d",
    .infer = infer_max_pool2d,
    .gradient = max_pool2d_gradient,
    .saves_outputs = 2,
    .keeps_format = 1,
}};

ValuesIndices max_lines(const Tensor& x, const PoolWindows& windows, bool indices) {
  const auto y = max_planes(unsqueeze(x, 2), windows.over(-1, 0), indices);
  return {squeeze(y.values, 2), indices ? squeeze(y.indices, 2) : Tensor()};
}

// The first of equal elements in the order of memory wins, and the last of several NaN. That order
// goes through all planes one after the other, so first the planes may choose, and then the depth.
ValuesIndices max_volumes(const Tensor& x, const PoolWindows& windows, bool indices) {
  const Shape& s = shape_of(x);
  const auto inner =
      max_planes(reshape(x, {s[0], s[1] * s[2], s[3], s[4]}), windows.over(1, 2), indices);
  const int64_t h = shape_of(inner.values)[2], w = shape_of(inner.values)[3];
  const PoolWindows deep = windows.over(0, -1);
  if (deep.are_elements() && !indices)
    return {reshape(inner.values, {s[0], s[1], s[2], h, w}), Tensor()};
  const auto outer = max_planes(reshape(inner.values, {s[0], s[1], s[2], h * w}), deep, indices);
  const Shape shape{s[0], s[1], shape_of(outer.values)[2], h, w};
  return {reshape(outer.values, shape),
          indices ? reshape(join_indices(inner.indices, outer.indices, s), shape) : Tensor()};
}

template <class Size>
ValuesIndices max_pool_sized(const char* op, const Tensor& x, const Size& kernel,
                             const MaxPoolOptions<Size>& o, bool indices) {
  return max_pool(op, x, {op, kernel, o.stride, o.padding, o.dilation, o.ceil_mode}, indices);
}

// The sizes of the result, of which `given` may be undefined.
Shape unpooled_sizes(const char* op, const PoolWindows& windows, const Shape& pooled,
                     const Shape& given) {
  const size_t dims = windows.dims();
  if (!given.empty() && given.size() != dims)
    throw ValueError(fmt::format("{}: output_size {} must have {} numbers", op, given, dims));
  Shape sizes;
  for (size_t d = 0; d < dims; ++d) {
    // Both factors are below 2^31 unless x is expanded, which then does not fit into the result.
    int64_t size = 0;
    if (__builtin_mul_overflow(pooled[2 + d] - 1, windows.stride[d], &size)) size = kMaxNumel;
    size = std::min(size, kMaxNumel) + windows.kernel[d] - 2 * windows.padding[d];
    if (!given.empty()) {
      const int64_t low = size - windows.stride[d], high = size + windows.stride[d];
      if (given[d] <= low || given[d] >= high)
        throw ValueError(
            fmt::format("{}: output_size {} must lie between {} and {} in dimension {}, both "
                        "excluded, for an input of shape {}",
                        op, given, low, high, d, pooled));
      size = given[d];
    }
    if (size < 0)
      throw ShapeError(
          fmt::format("{}: kernel {}, stride {} and padding {} leave nothing of an input of shape "
                      "{}",
                      op, windows.kernel, windows.stride, windows.padding, pooled));
    sizes.push_back(size);
  }
  return sizes;
}

template <class Size>
Tensor max_unpool(const char* op, const Tensor& x, const Tensor& indices, const Size& kernel,
                  const Size& stride, const Size& padding, const Shape& output_size) {
  const PoolWindows windows(op, kernel, stride, padding, Size(1), false);
  const Tensor input = batched(op, x, windows.dims());
  require_tensor(op, indices, "indices");
  require_index(op, indices, "indices");
  if (shape_of(indices) != shape_of(x))
    throw ShapeError(fmt::format("{}: indices have shape {}, but must have that of x, {}", op,
                                 shape_of(indices), shape_of(x)));
  const Shape& s = shape_of(input);
  Shape result = unpooled_sizes(op, windows, s, output_size);
  result.insert(0, s[1]);
  result.insert(0, s[0]);
  require_addressable(op, result);
  int64_t from = 1, to = 1;
  for (size_t d = 2; d < s.size(); ++d) from *= s[d], to *= result[d];
  const Tensor empty = zeros({s[0], s[1], to}, {.dtype = dtype_of(x), .device = device_read_on(x)});
  const Tensor y =
      scatter(empty, 2, reshape(indices, {s[0], s[1], from}), reshape(input, {s[0], s[1], from}));
  return unbatched(reshape(y, result), x);
}

}  // namespace

ValuesIndices max_planes(const Tensor& x, const PoolWindows& windows, bool indices) {
  const Attrs attrs = windows.attrs().set("dilation", windows.dilation);
  const Tensor* inputs[] = {&x};
  const auto outputs =
      run_all({max_pool2d_op, inputs, attrs, {}, indices || wants_gradient(x) ? 3u : 1u});
  return {outputs[0], indices ? outputs[1] : Tensor()};
}

Tensor join_indices(const Tensor& inner, const Tensor& outer, const Shape& volumes) {
  const Shape &in = shape_of(inner), &out = shape_of(outer);
  const int64_t plane = in[2] * in[3];
  const Tensor chosen = reshape(outer, {out[0], out[1], out[2] * out[3]});
  const Tensor places = reshape(inner, {volumes[0], volumes[1], volumes[2] * plane});
  return floor_divide(chosen, plane) * (volumes[3] * volumes[4]) + gather(places, 2, chosen);
}

ValuesIndices max_pool(const char* op, const Tensor& x, const PoolWindows& windows, bool indices) {
  const size_t dims = windows.dims();
  const Tensor input = batched(op, x, dims);
  if (dims != 2) windows.require_fit(op, shape_of(input));
  const auto y = dims == 1   ? max_lines(input, windows, indices)
                 : dims == 2 ? max_planes(input, windows, indices)
                             : max_volumes(input, windows, indices);
  return {unbatched(y.values, x), unbatched(y.indices, x)};
}

Tensor max_pool1d(const Tensor& x, Single kernel_size, const MaxPool1dOptions& options) {
  return max_pool_sized("max_pool1d", x, kernel_size, options, false).values;
}
Tensor max_pool2d(const Tensor& x, Pair kernel_size, const MaxPool2dOptions& options) {
  return max_pool_sized("max_pool2d", x, kernel_size, options, false).values;
}
Tensor max_pool3d(const Tensor& x, Triple kernel_size, const MaxPool3dOptions& options) {
  return max_pool_sized("max_pool3d", x, kernel_size, options, false).values;
}

ValuesIndices max_pool1d_with_indices(const Tensor& x, Single kernel_size,
                                      const MaxPool1dOptions& options) try {
  return max_pool_sized("max_pool1d_with_indices", x, kernel_size, options, true);
} catch (const Error&) {
  rethrow_in("max_pool1d_with_indices");
}
ValuesIndices max_pool2d_with_indices(const Tensor& x, Pair kernel_size,
                                      const MaxPool2dOptions& options) try {
  return max_pool_sized("max_pool2d_with_indices", x, kernel_size, options, true);
} catch (const Error&) {
  rethrow_in("max_pool2d_with_indices");
}
ValuesIndices max_pool3d_with_indices(const Tensor& x, Triple kernel_size,
                                      const MaxPool3dOptions& options) try {
  return max_pool_sized("max_pool3d_with_indices", x, kernel_size, options, true);
} catch (const Error&) {
  rethrow_in("max_pool3d_with_indices");
}

Tensor max_unpool1d(const Tensor& x, const Tensor& indices, Single kernel_size, Single stride,
                    Single padding, const Shape& output_size) try {
  return max_unpool("max_unpool1d", x, indices, kernel_size, stride, padding, output_size);
} catch (const Error&) {
  rethrow_in("max_unpool1d");
}
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, Pair kernel_size, Pair stride,
                    Pair padding, const Shape& output_size) try {
  return max_unpool("max_unpool2d", x, indices, kernel_size, stride, padding, output_size);
} catch (const Error&) {
  rethrow_in("max_unpool2d");
}
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, Triple kernel_size, Triple stride,
                    Triple padding, const Shape& output_size) try {
  return max_unpool("max_unpool3d", x, indices, kernel_size, stride, padding, output_size);
} catch (const Error&) {
  rethrow_in("max_unpool3d");
}

}  // namespace tenon
