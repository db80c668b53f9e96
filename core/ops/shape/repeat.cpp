// Repetition (core/ops/shape.h).
#include <algorithm>

#include <tenon/core/dispatch/replica.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

void require_repeats(const char* op, const Shape& repeats) {
  for (int64_t n : repeats)
    if (n < 0)
      throw ValueError(
          fmt::format("{}: repeats must not be negative, found {} in {}", op, n, repeats));
}

// Repeats x along the dimensions from `first` on that fit into eight: each takes another one, along
// which x is expanded, before all are joined by the one copy that reshape makes.
Tensor repeat_some(const Tensor& x, const Shape& repeats, int64_t& first) {
  Shape places = shape_of(x), expanded = places, result = places;
  int64_t more = 0;
  for (; first < static_cast<int64_t>(repeats.size()) && places.size() < Shape::max_rank; ++first) {
    if (repeats[first] == 1) continue;
    const auto at = static_cast<size_t>(first + more++);
    places.insert(at, 1);
    expanded.insert(at, repeats[first]);
    result[first] *= repeats[first];
  }
  return reshape(expand(reshape(x, places), expanded), result);
}

// With eight dimensions there is no place for another one.
Tensor repeat_one(const Tensor& x, int64_t repeats, int64_t dim) {
  if (repeats == 0) return narrow(x, dim, 0, 0);
  return cat(std::vector<Tensor>(static_cast<size_t>(repeats), x), dim);
}

Tensor repeat_as(const char* op, const Tensor& x, const Shape& repeats) {
  require_repeats(op, repeats);
  Shape shape = shape_of(x), result = repeats;
  while (shape.size() < repeats.size()) shape.insert(0, 1);
  for (size_t d = 0; d < shape.size(); ++d)
    if (__builtin_mul_overflow(shape[d], repeats[d], &result[d])) result[d] = kMaxNumel + 1;
  require_addressable(op, result);
  Tensor y = reshape(x, shape);
  bool copied = false;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size());) {
    if (repeats[d] == 1) {
      ++d;
      continue;
    }
    copied = true;
    if (shape.size() < Shape::max_rank) {
      y = repeat_some(y, repeats, d);
    } else {
      y = repeat_one(y, repeats[d], d);
      ++d;
    }
  }
  return copied ? contiguous(y) : clone(y);  // repeating one element may have made a view
}

}  // namespace

Tensor repeat(const Tensor& x, const Shape& repeats) try {
  require_tensor("repeat", x);
  if (repeats.size() < shape_of(x).size())
    throw ShapeError(
        fmt::format("repeat: repeats must have a number for each dimension of shape {}, found {}; "
                    "tile takes fewer",
                    shape_of(x), repeats));
  return repeat_as("repeat", x, repeats);
} catch (const Error&) {
  rethrow_in("repeat");
}

Tensor tile(const Tensor& x, const Shape& repeats) try {
  require_tensor("tile", x);
  Shape all = repeats;
  while (all.size() < shape_of(x).size()) all.insert(0, 1);
  return repeat_as("tile", x, all);
} catch (const Error&) {
  rethrow_in("tile");
}

Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim) try {
  require_tensor("repeat_interleave", x);
  require_repeats("repeat_interleave", repeats);
  if (!dim) return repeat_interleave(flatten(x), repeats, 0);
  const Shape& from = shape_of(x);
  const int64_t d = wrap_dim(*dim, static_cast<int64_t>(from.size()), "repeat_interleave");
  Shape result = from;
  if (__builtin_mul_overflow(from[d], repeats, &result[d])) result[d] = kMaxNumel + 1;
  require_addressable("repeat_interleave", result);
  if (from.size() == Shape::max_rank) {
    // There is no place for another dimension.
    const TensorOptions options{.dtype = i64, .device = device_read_on(x)};
    return index_select(x, d, repeat_interleave(arange(0, from[d], 1, options), repeats, 0));
  }
  Shape expanded = from;
  expanded.insert(static_cast<size_t>(d) + 1, repeats);
  const Tensor y = reshape(expand(unsqueeze(x, d + 1), expanded), result);
  return repeats == 1 ? clone(y) : contiguous(y);
} catch (const Error&) {
  rethrow_in("repeat_interleave");
}

Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim) try {
  require_defined("repeat_interleave", {{"x", x}, {"repeats", repeats}});
  require_index("repeat_interleave", repeats, "repeats");
  if (!dim) return repeat_interleave(flatten(x), repeats, 0);
  const int64_t d = wrap_dim(*dim, static_cast<int64_t>(shape_of(x).size()), "repeat_interleave"),
                count = shape_of(x)[d];
  const bool one = impl_of(repeats).numel == 1;
  if (shape_of(repeats).size() > 1 || (!one && shape_of(repeats) != Shape{count}))
    throw ShapeError(
        fmt::format("repeat_interleave: repeats has shape {}, but must be one number or ({},), one "
                    "for each slice of shape {} along dim {}",
                    shape_of(repeats), count, shape_of(x), *dim));
  std::vector<int64_t> index;
  const auto numbers = repeats.to_vector<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t n = numbers[one ? 0 : static_cast<size_t>(i)];
    require_repeats("repeat_interleave", n);
    if (n > kMaxNumel - static_cast<int64_t>(index.size()))
      refuse_extent("repeat_interleave", Shape{n});
    index.insert(index.end(), static_cast<size_t>(n), i);
  }
  return index_select(
      x, d, tensor(index, static_cast<int64_t>(index.size()), {.device = device_read_on(x)}));
} catch (const Error&) {
  rethrow_in("repeat_interleave");
}

}  // namespace tenon
