// grid_sample and affine_grid (core/ops/resampling.h). Places are computed on the device, by
// operators with a gradient.
#include <array>
#include <vector>

#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/resampling.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

enum class Sampling { nearest, linear, cubic };
enum class Outside { zeros, border, reflection };

Sampling sampling_named(std::string_view name, size_t dims) {
  if (name == "bilinear") return Sampling::linear;
  if (name == "nearest") return Sampling::nearest;
  if (name == "bicubic" && dims == 2) return Sampling::cubic;
  throw ValueError(
      fmt::format("grid_sample: mode must be \"bilinear\"{} or \"nearest\", found \"{}\"",
                  dims == 2 ? ", \"bicubic\"" : "", name));
}

Outside outside_named(std::string_view name) {
  if (name == "zeros") return Outside::zeros;
  if (name == "border") return Outside::border;
  if (name == "reflection") return Outside::reflection;
  throw ValueError(fmt::format(
      "grid_sample: padding_mode must be \"zeros\", \"border\" or \"reflection\", found \"{}\"",
      name));
}

void check_grid(const Tensor& x, const Tensor& grid) {
  require_defined("grid_sample", {{"x", x}, {"grid", grid}});
  const Shape &in = shape_of(x), &at = shape_of(grid);
  const size_t rank = in.size();
  if (rank != 4 && rank != 5)
    throw ShapeError(fmt::format(
        "grid_sample: needs an input (n, c, h, w) or (n, c, d, h, w), found shape {}", in));
  if (at.size() != rank || at[0] != in[0] || at[-1] != static_cast<int64_t>(rank) - 2)
    throw ShapeError(
        fmt::format("grid_sample: for an input of shape {} the grid must be ({}, {}, {}), found {}",
                    in, in[0], rank == 4 ? "h', w'" : "d', h', w'", rank - 2, at));
  for (size_t d = 2; d < rank; ++d)
    if (in[d] == 0)
      throw ShapeError(
          fmt::format("grid_sample: an input of shape {} has no element in space", in));
  if (!is_floating_point(dtype_of(x)))
    throw DTypeError(fmt::format("grid_sample: needs a floating input, found {}; {}", dtype_of(x),
                                 conversion_to(DType::f32)));
  if (dtype_of(x) != dtype_of(grid))
    throw DTypeError(fmt::format("grid_sample: the input is {}, the grid {}; {}", dtype_of(x),
                                 dtype_of(grid), conversion_to(dtype_of(x), "the grid")));
}

// ---- coordinates along one dimension ----

// A number from -1 to 1 as a position between the elements 0 and size - 1. NaN, and infinity where
// there is one element alone, lie outside.
Tensor position_of(const Tensor& number, int64_t size, bool align_corners) {
  const Tensor at = align_corners ? (number + 1) / 2 * (size - 1) : ((number + 1) * size - 1) / 2;
  return where(ne(at, at), -100.0, at);
}

// Mirrors positions at the borders, as often as it takes.
Tensor reflected(const Tensor& at, int64_t size, bool align_corners) {
  const double low = align_corners ? 0 : -0.5,
               span = static_cast<double>(align_corners ? size - 1 : size);
  if (span == 0) return clamp(at, 0, 0);
  const Tensor shifted = at - low, distance = where(lt(shifted, 0), neg(shifted), shifted);
  const Tensor rest = fmod(distance, span);
  const Tensor turned = ne(fmod(floor(distance.detach() / span), 2), 0);
  const Tensor inside = where(turned, span - rest, rest) + low;
  return where(ne(inside, inside), 0.0, inside);  // an infinite position is at no place
}

Tensor inside_of(const Tensor& at, int64_t size, Outside outside, bool align_corners) {
  if (outside == Outside::zeros) return at;
  const Tensor near = outside == Outside::reflection ? reflected(at, size, align_corners) : at;
  return clamp(near, 0, size - 1);
}

// One of the elements that make a value: where it is, in an image with a border of zeros of one
// element, and its weight (undefined: 1).
struct Sample {
  Tensor place, weight;
};

Tensor place_of(const Tensor& whole, int64_t size) {
  return clamp(whole, -1, size).to(DType::i64) + 1;
}

std::vector<Sample> nearest_samples(const Tensor& number, int64_t size, Outside outside,
                                    bool align_corners) {
  const Tensor at =
      inside_of(position_of(number.detach(), size, align_corners), size, outside, align_corners);
  return {{place_of(round(at), size), Tensor()}};
}

std::vector<Sample> linear_samples(const Tensor& number, int64_t size, Outside outside,
                                   bool align_corners) {
  Tensor at = inside_of(position_of(number, size, align_corners), size, outside, align_corners);
  at = clamp(at, -2, size + 1);  // all that is farther away is as far
  const Tensor before = floor(at.detach()), part = at - before;
  return {{place_of(before, size), 1 - part}, {place_of(before + 1, size), part}};
}

std::array<Tensor, 4> cubic_weights(const Tensor& t) {
  constexpr double a = -0.75;
  const auto near = [](const Tensor& x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](const Tensor& x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

// The borders hold for each of the four elements, not for the position.
std::vector<Sample> cubic_samples(const Tensor& number, int64_t size, Outside outside,
                                  bool align_corners) {
  Tensor at = position_of(number, size, align_corners);
  if (outside != Outside::reflection) at = clamp(at, -4, size + 3);
  const Tensor before = floor(at.detach());
  const auto weights = cubic_weights(at - before);
  std::vector<Sample> samples;
  for (int i = 0; i < 4; ++i) {
    const Tensor whole = inside_of(before + (i - 1), size, outside, align_corners);
    samples.push_back({place_of(whole, size), weights[static_cast<size_t>(i)]});
  }
  return samples;
}

std::vector<Sample> samples_of(Sampling mode, const Tensor& number, int64_t size, Outside outside,
                               bool align_corners) {
  switch (mode) {
    case Sampling::nearest:
      return nearest_samples(number, size, outside, align_corners);
    case Sampling::linear:
      return linear_samples(number, size, outside, align_corners);
    default:
      return cubic_samples(number, size, outside, align_corners);
  }
}

// ---- all dimensions ----

// Every element of one dimension with every one of the next, whose size is `size`.
std::vector<Sample> combined(const std::vector<Sample>& outer, const std::vector<Sample>& inner,
                             int64_t size) {
  std::vector<Sample> all;
  for (auto& a : outer)
    for (auto& b : inner)
      all.push_back({a.place * size + b.place, !a.weight.defined()   ? b.weight
                                               : !b.weight.defined() ? a.weight
                                                                     : a.weight * b.weight});
  return all;
}

// The images as a table with one row per pixel, with zeros around each image.
Tensor rows_of(const Tensor& x) {
  const size_t dims = shape_of(x).size() - 2;
  std::vector<int64_t> borders = {0, 0};
  for (size_t d = 0; d < dims; ++d) borders.insert(borders.end(), {1, 1});
  const Tensor padded = pad(movedim(x, 1, -1), borders);
  int64_t count = 1;
  for (size_t d = 0; d <= dims; ++d) count *= shape_of(padded)[d];
  return reshape(padded, {count, shape_of(x)[1]});
}

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options) try {
  if (const Autocasting cast{"grid_sample", {&x, &grid}})
    return grid_sample(cast(x), cast(grid), options);
  check_grid(x, grid);
  const size_t dims = shape_of(x).size() - 2;
  const Sampling mode = sampling_named(options.mode, dims);
  const Outside outside = outside_named(options.padding_mode);
  const DType wide = computation_type(dtype_of(x));
  const Shape& at = shape_of(grid);
  const int64_t n = at[0];
  int64_t points = 1;
  for (size_t d = 1; d <= dims; ++d) points *= at[d];
  const Tensor numbers = reshape(grid.to(wide), {n, points, static_cast<int64_t>(dims)});
  std::vector<Sample> samples = {
      {arange(0, n, 1, {.dtype = DType::i64, .device = device_read_on(grid)}).reshape({n, 1}),
       Tensor()}};
  for (size_t d = 0; d < dims; ++d) {
    const int64_t size = shape_of(x)[2 + d];
    // The last number of the grid belongs to the first dimension of space.
    const Tensor number = select(numbers, 2, static_cast<int64_t>(dims - 1 - d));
    samples =
        combined(samples, samples_of(mode, number, size, outside, options.align_corners), size + 2);
  }
  const Tensor rows = rows_of(x.to(wide));
  Tensor y;
  for (auto& s : samples) {
    Tensor values = index_select(rows, 0, flatten(s.place));
    if (s.weight.defined()) values = values * reshape(s.weight, {n * points, 1});
    y = y.defined() ? y + values : values;
  }
  // The nearest element does not change with the grid, whose gradient is 0.
  if (mode == Sampling::nearest && wants_gradient(grid))
    y = y + sum(narrow(flatten(numbers), 0, 0, 0));
  Shape shape = at;
  shape[-1] = shape_of(x)[1];
  return contiguous(movedim(reshape(y, shape), -1, 1)).to(dtype_of(x));
} catch (const Error&) {
  rethrow_in("grid_sample");
}

Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners) try {
  require_tensor("affine_grid", theta, "theta");
  if (!is_floating_point(dtype_of(theta)))
    throw DTypeError(fmt::format("affine_grid: needs a floating theta, found {}; {}",
                                 dtype_of(theta), conversion_to(DType::f32)));
  if (size.size() != 4 && size.size() != 5)
    throw ValueError(
        fmt::format("affine_grid: size must be (n, c, h, w) or (n, c, d, h, w), found {}", size));
  for (int64_t s : size)
    if (s < 1)
      throw ValueError(
          fmt::format("affine_grid: size must be positive throughout, found {}", size));
  const auto dims = static_cast<int64_t>(size.size()) - 2;
  if (shape_of(theta) != Shape{size[0], dims, dims + 1})
    throw ShapeError(fmt::format("affine_grid: theta must have shape {} for size {}, found {}",
                                 Shape{size[0], dims, dims + 1}, size, shape_of(theta)));
  const DType wide = computation_type(dtype_of(theta));
  // Each column of theta, for all dimensions of space, and last the offset.
  Shape columns = Shape::filled(size.size(), 1);
  columns[0] = size[0];
  columns[-1] = dims;
  const auto column = [&](int64_t i) { return reshape(select(theta.to(wide), 2, i), columns); };
  Tensor grid = column(dims);
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t count = size[-1 - i];
    // One element lies in the middle.
    const double outermost = count == 1 ? 0
                             : align_corners
                                 ? 1
                                 : static_cast<double>(count - 1) / static_cast<double>(count);
    Shape along = Shape::filled(size.size(), 1);
    along[dims - i] = count;
    const TensorOptions options{.dtype = DType::f64, .device = device_read_on(theta)};
    const Tensor numbers = linspace(-outermost, outermost, count, options).to(wide);
    grid = grid + column(i) * reshape(numbers, along);
  }
  return grid.to(dtype_of(theta));
} catch (const Error&) {
  rethrow_in("affine_grid");
}

}  // namespace tenon
