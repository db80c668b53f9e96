#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/module_path.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/layout.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {

// The dimensions of a format of channels from the innermost on.
struct Inwards {
  size_t rank;
  size_t dims[5];
};
constexpr Inwards kPlanes{4, {1, 3, 2, 0}}, kVolumes{5, {1, 4, 3, 2, 0}};
const Inwards& inwards(size_t rank) { return rank == 4 ? kPlanes : kVolumes; }

// Does as is_channels_last_strides_2d_s4 and …_3d_s5 of PyTorch: each stride is at least the extent
// of the dimensions inside it. Strides that are row-major as well do not count as channels last.
bool are_channels_inside(const Shape& shape, const Strides& strides, const Inwards& in) {
  int64_t least = 0;
  for (size_t i = 0; i < in.rank; ++i) {
    const size_t d = in.dims[i];
    if (strides[1] == 0 || shape[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;
    least = strides[d];
    if (shape[d] > 1 && __builtin_mul_overflow(least, shape[d], &least)) return false;
  }
  return true;
}

// Returns a positive number if dimension a belongs outside b, a negative one if it belongs inside
// b, and 0 if the strides do not tell.
int compare(const Shape& shape, std::span<const Strides> operands, size_t a, size_t b) {
  for (auto& strides : operands) {
    if (strides[a] == 0 || strides[b] == 0) continue;
    if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
    if (shape[a] > shape[b]) return 1;
  }
  return 0;
}

}  // namespace

const char* name_of(MemoryFormat format) {
  switch (format) {
    case MemoryFormat::contiguous_format:
      return "contiguous_format";
    case MemoryFormat::preserve_format:
      return "preserve_format";
    case MemoryFormat::channels_last:
      return "channels_last";
    case MemoryFormat::channels_last_3d:
      return "channels_last_3d";
  }
  return "no format";
}

size_t rank_of(MemoryFormat format) {
  return format == channels_last ? 4 : format == channels_last_3d ? 5 : 0;
}

bool has_format(const Shape& shape, const Strides& strides, MemoryFormat format) {
  if (!moves_channels(format)) return is_contiguous(shape, strides);
  if (shape.size() != rank_of(format)) return false;
  const Inwards& in = inwards(shape.size());
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  int64_t expected = 1;
  for (size_t i = 0; i < in.rank; ++i) {
    const size_t d = in.dims[i];
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

MemoryFormat suggested_format(const Shape& shape, const Strides& strides) {
  if (shape.size() != 4 && shape.size() != 5) return contiguous_format;
  if (!are_channels_inside(shape, strides, inwards(shape.size()))) return contiguous_format;
  return shape.size() == 4 ? channels_last : channels_last_3d;
}

void require_rank(const char* op, const Shape& shape, MemoryFormat format) {
  const size_t rank = rank_of(format);
  if (rank && shape.size() != rank)
    throw ShapeError(fmt::format("{}: {} is a format of tensors of {} dimensions, found shape {}{}",
                                 op, name_of(format), rank, shape, path_suffix()));
}

Shape order_of(size_t rank, MemoryFormat format) {
  Shape order;
  for (size_t i = rank; i-- > 0;)
    order.push_back(
        static_cast<int64_t>(moves_channels(format) ? inwards(rank).dims[i] : rank - 1 - i));
  return order;
}

Strides strides_in(const Shape& shape, MemoryFormat format) {
  if (!moves_channels(format)) return Shape::row_major(shape);
  return strides_in_order(shape, order_of(shape.size(), format));
}

DimsByStride::DimsByStride(const Shape& shape, const Strides& strides) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] <= 1) continue;
    size_t at = count++;
    for (; at > 0 && strides[d] < strides[dims[at - 1]]; --at) dims[at] = dims[at - 1];
    dims[at] = d;
  }
}

bool is_dense(const Shape& shape, const Strides& strides) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  const DimsByStride by(shape, strides);
  int64_t expected = 1;
  for (size_t i = 0; i < by.count; ++i) {
    if (strides[by.dims[i]] != expected) return false;
    expected *= shape[by.dims[i]];
  }
  return true;
}

// The insertion sort of TensorIterator::reorder_dimensions, whose comparison is no order: operands
// that are broadcast leave pairs undecided.
Shape memory_order(const Shape& shape, std::span<const Strides> operands) {
  const size_t rank = shape.size();
  size_t inner[Shape::max_rank];  // innermost first
  for (size_t i = 0; i < rank; ++i) inner[i] = rank - 1 - i;
  for (size_t i = 1; i < rank; ++i) {
    size_t moved = i;
    for (size_t before = i; before-- > 0;) {
      const int order = compare(shape, operands, inner[before], inner[moved]);
      if (order < 0) break;
      if (order == 0) continue;
      std::swap(inner[before], inner[moved]);
      moved = before;
    }
  }
  Shape order;
  for (size_t i = rank; i-- > 0;) order.push_back(static_cast<int64_t>(inner[i]));
  return order;
}

Strides strides_in_order(const Shape& shape, const Shape& order) {
  Strides strides = Shape::filled(shape.size(), 1);
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = step;
    step *= std::max<int64_t>(shape[order[i]], 1);
  }
  return strides;
}

Strides expanded_strides(const Shape& shape, const Strides& strides, const Shape& expanded) {
  Strides s = Shape::filled(expanded.size(), 0);
  const size_t added = expanded.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i)
    s[added + i] = shape[i] == 1 && expanded[added + i] != 1 ? 0 : strides[i];
  return s;
}

Strides preserved_strides(const Shape& shape, const Strides& strides) {
  if (is_contiguous(shape, strides)) return Shape::row_major(shape);
  if (is_dense(shape, strides)) return strides;
  return strides_in_order(shape, memory_order(shape, {&strides, 1}));
}

}  // namespace tenon
