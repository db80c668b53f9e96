// Pooling over windows that follow from the size of the result (core/ops/pooling.h).
#include <algorithm>
#include <vector>

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

// ---- the operator ----

void adaptive_avg_pool2d_backward_gradient(const GradContext& c, Grads g) {
  const Shape& pooled = c.input_shape(0);
  g[0] = adaptive_avg_pool2d(c.grad(), {pooled[2], pooled[3]});
}
// | `adaptive_avg_pool2d_backward` | g -> gx | | |
const Op adaptive_avg_pool2d_backward_op{{
    .name = "adaptive_avg_pool2d_backward",
    .infer = infer_given_shape,
    .gradient = adaptive_avg_pool2d_backward_gradient,
}};

void infer_adaptive_avg_pool2d(Infer& infer) {
  infer.require_dtype(is_floating_point(dtype_of(infer.in(0))), 0, "a floating type");
  Shape shape = shape_of(infer.in(0)), size = infer.attrs.get_list("output_size");
  if (shape[2] == 0 || shape[3] == 0)
    infer.shape_error(fmt::format("{} are empty", described_planes(2, shape)));
  shape[2] = size[0];
  shape[3] = size[1];
  infer.output(dtype_of(infer.in(0)), shape);
}
void adaptive_avg_pool2d_gradient(const GradContext& c, Grads g) {
  g[0] = run_as(c.input_shape(0), adaptive_avg_pool2d_backward_op, {&c.grad()}, no_attrs,
                c.input_format(0));
}
// | `adaptive_avg_pool2d` | x -> y | | output size from y |
const Op adaptive_avg_pool2d_op{{
    .name = "adaptive_avg_pool2d",
    .infer = infer_adaptive_avg_pool2d,
    .gradient = adaptive_avg_pool2d_gradient,
    .keeps_format = 1,
    .core_attr = "output_size",
}};

Tensor adaptive_average_planes(const Tensor& x, int64_t height, int64_t width) {
  return run(adaptive_avg_pool2d_op, {&x}, Attrs().set("output_size", Shape{height, width}));
}

// ---- the average ----

Tensor adaptive_avg(const char* op, const Tensor& x, const Shape& size) {
  const size_t dims = size.size();
  check_sizes(op, "output_size", size, 0);
  const Tensor input = batched(op, x, dims);
  require_elements(op, input, dims);
  if (dims == 1)
    return unbatched(squeeze(adaptive_average_planes(unsqueeze(input, 2), 1, size[0]), 2), x);
  if (dims == 2) return unbatched(adaptive_average_planes(input, size[0], size[1]), x);
  // In a half type, the result of two steps would be rounded twice.
  const Shape& s = shape_of(input);
  const Tensor planes =
      reshape(input.to(computation_type(dtype_of(x))), {s[0], s[1] * s[2], s[3], s[4]});
  const Tensor inner = reshape(adaptive_average_planes(planes, size[1], size[2]),
                               {s[0], s[1], s[2], size[1] * size[2]});
  const int64_t plane = size[1] * size[2];
  const Tensor outer = plane ? adaptive_average_planes(inner, size[0], plane) : inner;
  return unbatched(reshape(outer, {s[0], s[1], size[0], size[1], size[2]}).to(dtype_of(x)), x);
}

// ---- the largest element ----

// The windows of one dimension. Windows of equal size need no copy of x. Otherwise x is copied so
// that all windows are as large as the largest one: a smaller one repeats its last element, which
// changes neither its largest element nor where that occurs first.
struct AdaptiveWindows {
  int64_t kernel = 1;
  std::vector<int64_t> places;  // of the copy's elements in x; none: x itself

  AdaptiveWindows(int64_t size, int64_t count) {
    // The size of an expanded tensor may be large.
    __extension__ using Wide = __int128;
    const auto begin = [&](int64_t i) { return static_cast<int64_t>(Wide{i} * size / count); };
    const auto end = [&](int64_t i) {
      return static_cast<int64_t>((Wide{i + 1} * size + count - 1) / count);
    };
    if (size % count == 0) {
      kernel = size / count;
      return;
    }
    for (int64_t i = 0; i < count; ++i) kernel = std::max(kernel, end(i) - begin(i));
    for (int64_t i = 0; i < count; ++i)
      for (int64_t k = 0; k < kernel; ++k) places.push_back(std::min(begin(i) + k, end(i) - 1));
  }
  bool copied() const { return !places.empty(); }
  Tensor index(const Tensor& x) const {
    return tensor(places, static_cast<int64_t>(places.size()), {.device = device_read_on(x)});
  }
};

// Where `positions` along a copied dimension were in x.
Tensor places_in(const Tensor& x, const AdaptiveWindows& windows, const Tensor& positions) {
  if (!windows.copied()) return positions;
  return reshape(index_select(windows.index(x), 0, flatten(positions)), shape_of(positions));
}

ValuesIndices adaptive_max_planes(const Tensor& x, int64_t height, int64_t width, bool indices) {
  const Shape& s = shape_of(x);
  const AdaptiveWindows rows(s[2], height), columns(s[3], width);
  Tensor input = x;
  if (rows.copied()) input = index_select(input, 2, rows.index(x));
  if (columns.copied()) input = index_select(input, 3, columns.index(x));
  const Pair kernel(rows.kernel, columns.kernel);
  const PoolWindows windows("adaptive_max_pool", kernel, kernel, Pair(0), Pair(1), false);
  ValuesIndices y = max_planes(input, windows, indices);
  if (!indices || (!rows.copied() && !columns.copied())) return y;
  const int64_t length = shape_of(input)[3];
  const Tensor row = places_in(x, rows, floor_divide(y.indices, length));
  const Tensor column = places_in(x, columns, remainder(y.indices, length));
  return {y.values, row * s[3] + column};
}

// Returns the empty result for an empty x, which has no largest element. It stays in the graph.
ValuesIndices nothing_of(const Tensor& x, const Shape& shape) {
  Tensor y = x;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] == 0) y = narrow(y, static_cast<int64_t>(d), 0, 0);
  y = reshape(y, shape);
  return {y, zeros(shape, {.dtype = DType::i64, .device = device_read_on(x)})};
}

ValuesIndices adaptive_max_volumes(const Tensor& x, const Shape& size, bool indices) {
  const Shape& s = shape_of(x);
  const auto inner =
      adaptive_max_planes(reshape(x, {s[0], s[1] * s[2], s[3], s[4]}), size[1], size[2], indices);
  const int64_t plane = size[1] * size[2];
  const auto outer = adaptive_max_planes(reshape(inner.values, {s[0], s[1], s[2], plane}), size[0],
                                         plane, indices);
  const Shape shape{s[0], s[1], size[0], size[1], size[2]};
  return {reshape(outer.values, shape),
          indices ? reshape(join_indices(inner.indices, outer.indices, s), shape) : Tensor()};
}

ValuesIndices adaptive_max(const char* op, const Tensor& x, const Shape& size, bool indices) {
  const size_t dims = size.size();
  check_sizes(op, "output_size", size, 0);
  const Tensor input = batched(op, x, dims);
  require_elements(op, input, dims);
  Shape result = shape_of(input);
  bool any = true;
  for (size_t d = 0; d < dims; ++d) {
    result[2 + d] = size[d];
    any = any && size[d] > 0;
  }
  require_addressable(op, result);
  ValuesIndices y;
  if (!any) {
    y = nothing_of(input, result);
  } else if (dims == 1) {
    y = adaptive_max_planes(unsqueeze(input, 2), 1, size[0], indices);
    y = {squeeze(y.values, 2), indices ? squeeze(y.indices, 2) : Tensor()};
  } else {
    y = dims == 2 ? adaptive_max_planes(input, size[0], size[1], indices)
                  : adaptive_max_volumes(input, size, indices);
  }
  return {unbatched(y.values, x), unbatched(y.indices, x)};
}

}  // namespace

Tensor adaptive_avg_pool1d(const Tensor& x, Single output_size) {
  return adaptive_avg("adaptive_avg_pool1d", x, output_size.shape());
}
Tensor adaptive_avg_pool2d(const Tensor& x, Pair output_size) {
  return adaptive_avg("adaptive_avg_pool2d", x, output_size.shape());
}
Tensor adaptive_avg_pool3d(const Tensor& x, Triple output_size) {
  return adaptive_avg("adaptive_avg_pool3d", x, output_size.shape());
}

Tensor adaptive_max_pool1d(const Tensor& x, Single output_size) {
  return adaptive_max("adaptive_max_pool1d", x, output_size.shape(), false).values;
}
Tensor adaptive_max_pool2d(const Tensor& x, Pair output_size) {
  return adaptive_max("adaptive_max_pool2d", x, output_size.shape(), false).values;
}
Tensor adaptive_max_pool3d(const Tensor& x, Triple output_size) {
  return adaptive_max("adaptive_max_pool3d", x, output_size.shape(), false).values;
}
ValuesIndices adaptive_max_pool1d_with_indices(const Tensor& x, Single output_size) {
  return adaptive_max("adaptive_max_pool1d_with_indices", x, output_size.shape(), true);
}
ValuesIndices adaptive_max_pool2d_with_indices(const Tensor& x, Pair output_size) {
  return adaptive_max("adaptive_max_pool2d_with_indices", x, output_size.shape(), true);
}
ValuesIndices adaptive_max_pool3d_with_indices(const Tensor& x, Triple output_size) {
  return adaptive_max("adaptive_max_pool3d_with_indices", x, output_size.shape(), true);
}

}  // namespace tenon
