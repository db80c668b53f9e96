// interpolate (core/ops/resampling.h). All modes are separable: each dimension is resized by
// itself.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/convolution/window.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pooling.h>
#include <tenon/core/ops/pooling/taps.h>
#include <tenon/core/ops/resampling.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

enum class Interpolation { nearest, nearest_exact, linear, cubic, area, lanczos };

// Returns the mode of that name for an input with so many dimensions of space.
Interpolation interpolation_named(const char* op, const std::string& name, size_t dims) {
  constexpr const char* linear[] = {"linear", "bilinear", "trilinear"};
  if (name == "nearest") return Interpolation::nearest;
  if (name == "nearest-exact") return Interpolation::nearest_exact;
  if (name == "area") return Interpolation::area;
  if (name == linear[dims - 1]) return Interpolation::linear;
  if (name == "bicubic" && dims == 2) return Interpolation::cubic;
  if (name == "lanczos" && dims == 2) return Interpolation::lanczos;
  throw ValueError(fmt::format(
      "{}: mode must be \"nearest\", \"nearest-exact\", \"area\"{} or \"{}\" for an input of {} "
      "dimensions, found \"{}\"",
      op, dims == 2 ? ", \"bicubic\", \"lanczos\"" : "", linear[dims - 1], dims + 2, name));
}

void check_mode(const char* op, const Tensor& x, Interpolation mode, const InterpolateOptions& o) {
  const bool nearest = mode == Interpolation::nearest || mode == Interpolation::nearest_exact;
  if (o.align_corners && (nearest || mode == Interpolation::area))
    throw ValueError(fmt::format(
        "{}: align_corners is for linear and cubic modes, found mode \"{}\"", op, o.mode));
  const bool has_antialias = shape_of(x).size() == 4 && !nearest && mode != Interpolation::area;
  if (o.antialias && !has_antialias)
    throw ValueError(fmt::format(
        "{}: antialias is for images and the modes \"bilinear\", \"bicubic\" and \"lanczos\", "
        "found mode \"{}\" and shape {}",
        op, o.mode, shape_of(x)));
  if (mode == Interpolation::lanczos && (!o.antialias || o.align_corners.value_or(false)))
    throw ValueError(
        fmt::format("{}: mode \"lanczos\" needs antialias, without align_corners", op));
  if (!nearest && !is_floating_point(dtype_of(x)))
    throw DTypeError(fmt::format("{}: mode \"{}\" needs a floating input, found {}; {}", op, o.mode,
                                 dtype_of(x), conversion_to(DType::f32)));
}

// ---- sizes ----

void require_count(const char* op, const char* name, size_t count, size_t dims) {
  if (count != 1 && count != dims)
    throw ValueError(
        fmt::format("{}: {} must be one number or {}, one for each dimension of space; "
                    "found {} numbers",
                    op, name, dims, count));
}

int64_t scaled_size(const char* op, int64_t size, double factor) {
  if (!(factor > 0) || !std::isfinite(factor))
    throw ValueError(fmt::format("{}: scale_factor must be positive and finite, found {}", op,
                                 number_text(factor)));
  const double result = std::floor(static_cast<double>(size) * factor);
  if (result < 1 || result > 0x7fffffff)
    throw ValueError(fmt::format(
        "{}: scale_factor {} makes a size of {} to one of {}, which must be from 1 to 2^31 - 1", op,
        number_text(factor), size, number_text(result)));
  return static_cast<int64_t>(result);
}

// Returns how each dimension of space is resized.
std::vector<Resize> resizes_of(const char* op, const Tensor& x, const InterpolateOptions& o) {
  const Shape& shape = shape_of(x);
  const size_t dims = shape.size() - 2;
  if (o.size.empty() == o.scale_factor.empty())
    throw ValueError(fmt::format("{}: needs either size or scale_factor, found {}", op,
                                 o.size.empty() ? "neither" : "both"));
  if (!o.size.empty() && o.recompute_scale_factor)
    throw ValueError(
        fmt::format("{}: recompute_scale_factor makes no sense with a size, only with "
                    "scale_factor",
                    op));
  if (o.size.empty()) {
    require_count(op, "scale_factor", o.scale_factor.size(), dims);
  } else {
    require_count(op, "size", o.size.size(), dims);
    check_sizes(op, "size", o.size, 1);
  }
  std::vector<Resize> resizes;
  for (size_t d = 0; d < dims; ++d) {
    Resize r{shape[2 + d], 0, std::nullopt, o.align_corners.value_or(false)};
    if (r.size == 0)
      throw ShapeError(fmt::format("{}: an input of shape {} has no element in space", op, shape));
    if (o.size.empty()) {
      const double factor = o.scale_factor[o.scale_factor.size() == 1 ? 0 : d];
      r.result = scaled_size(op, r.size, factor);
      if (!o.recompute_scale_factor) r.scale = factor;
    } else {
      r.result = o.size[o.size.size() == 1 ? 0 : d];
    }
    resizes.push_back(r);
  }
  return resizes;
}

Shape result_of(const Tensor& x, const std::vector<Resize>& resizes) {
  Shape shape = shape_of(x);
  for (size_t d = 0; d < resizes.size(); ++d) shape[2 + d] = resizes[d].result;
  return shape;
}

// Returns the dimensions of space, beginning with those that grow the least: the later ones then
// have fewer elements to resize.
std::vector<size_t> order_of(const std::vector<Resize>& resizes) {
  std::vector<size_t> order(resizes.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto growth = [&](size_t d) {
      return static_cast<double>(resizes[d].result) / static_cast<double>(resizes[d].size);
    };
    return growth(a) < growth(b);
  });
  return order;
}

// ---- nearest ----

// Returns how often each element is repeated, or 0 if the result is not such a repetition.
int64_t repeats_of(const Resize& r, const std::vector<int64_t>& places) {
  if (r.result % r.size != 0) return 0;
  const int64_t times = r.result / r.size;
  for (int64_t i = 0; i < r.result; ++i)
    if (places[static_cast<size_t>(i)] != i / times) return 0;
  return times;
}

Tensor interpolate_nearest(const Tensor& x, const std::vector<Resize>& resizes, bool exact) {
  Tensor y = x;
  Shape times = Shape::filled(resizes.size(), 1);
  for (size_t d : order_of(resizes)) {
    const auto places = nearest_places(resizes[d], exact, !exact && resizes.size() == 2);
    times[d] = repeats_of(resizes[d], places);
    if (times[d] > 0) continue;
    times[d] = 1;
    const Tensor index = tensor(places, resizes[d].result, {.device = device_read_on(x)});
    const auto dim = static_cast<int64_t>(d) + 2;
    if (d + 1 < resizes.size())
      y = index_select(y, dim, index);
    else
      y = of_rows(y, [&](const Tensor& rows) { return index_select(rows, dim - 1, index); });
  }
  if (times == Shape::filled(resizes.size(), 1)) return y.is_same(x) ? clone(x) : contiguous(y);
  // One dimension at a time, so that the gradient sums over one dimension at a time, the outer ones
  // first, which leaves fewer elements for the inner ones.
  for (size_t d = resizes.size(); d-- > 0;) {
    if (times[d] == 1) continue;
    const auto inner = static_cast<int64_t>(d) + 3;
    y = unsqueeze(y, inner);
    Shape repeated = shape_of(y);
    repeated[inner] = times[d];
    y = expand(y, repeated);
  }
  return reshape(y, result_of(x, resizes));
}

// ---- sums with weights ----

Taps taps_of(const Resize& r, Interpolation mode, bool antialias) {
  if (!antialias) return mode == Interpolation::linear ? linear_taps(r) : cubic_taps(r);
  return antialias_taps(r, mode == Interpolation::linear  ? Filter::linear
                           : mode == Interpolation::cubic ? Filter::cubic
                                                          : Filter::lanczos);
}

// Whether the dimension stays as it is. Only cubic interpolation without antialias moves elements
// by a factor that does not change the size.
bool stays(const Resize& r, Interpolation mode, bool antialias) {
  const bool moves =
      mode == Interpolation::cubic && !antialias && !r.align_corners && r.scale.value_or(1) != 1;
  return r.size == r.result && !moves;
}

Tensor interpolate_weighted(const Tensor& x, const std::vector<Resize>& resizes, Interpolation mode,
                            bool antialias) {
  Tensor y = x.to(computation_type(dtype_of(x)));
  bool changed = false;
  for (size_t d : order_of(resizes)) {
    if (stays(resizes[d], mode, antialias)) continue;
    y = resample(y, 2 + d, taps_of(resizes[d], mode, antialias));
    changed = true;
  }
  return changed ? y.to(dtype_of(x)) : clone(x);
}

Tensor interpolate_area(const Tensor& x, const std::vector<Resize>& r) {
  if (r.size() == 1) return adaptive_avg_pool1d(x, r[0].result);
  if (r.size() == 2) return adaptive_avg_pool2d(x, {r[0].result, r[1].result});
  return adaptive_avg_pool3d(x, {r[0].result, r[1].result, r[2].result});
}

Tensor interpolate_as(const char* op, const Tensor& x, const InterpolateOptions& o) {
  if (const Autocasting cast{op, {&x}}) return interpolate_as(op, cast(x), o);
  require_tensor(op, x);
  const Shape& shape = shape_of(x);
  if (shape.size() < 3 || shape.size() > 5)
    throw ShapeError(
        fmt::format("{}: needs an input (n, c, l), (n, c, h, w) or (n, c, d, h, w), found shape {}",
                    op, shape));
  const Interpolation mode = interpolation_named(op, o.mode, shape.size() - 2);
  check_mode(op, x, mode, o);
  const auto resizes = resizes_of(op, x, o);
  require_addressable(op, result_of(x, resizes));
  switch (mode) {
    case Interpolation::nearest:
      return interpolate_nearest(x, resizes, false);
    case Interpolation::nearest_exact:
      return interpolate_nearest(x, resizes, true);
    case Interpolation::area:
      return interpolate_area(x, resizes);
    default:
      return interpolate_weighted(x, resizes, mode, o.antialias);
  }
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& options) {
  return interpolate_as("interpolate", x, options);
}

Tensor upsample(const Tensor& x, const InterpolateOptions& options) {
  return interpolate_as("upsample", x, options);
}

}  // namespace tenon
