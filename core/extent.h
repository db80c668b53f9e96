// The limit on the size of a tensor. The shape of every tensor is checked against it when the
// tensor is created.
#pragma once

#include <string>
#include <string_view>

#include <tenon/core/shape.h>

namespace tenon {

// The largest number of elements of a tensor, where a dimension of 0 counts as 1. With it, a tensor
// of any dtype has fewer than 2^63 bytes, and no stride or offset of the tensor or of a view of it
// overflows.
inline constexpr int64_t kMaxNumel = (int64_t{1} << 60) - 1;

// Returns whether a tensor may have this shape.
inline bool is_addressable(const Shape& shape) {
  int64_t n = 1;
  for (int64_t dim : shape)
    if (dim < 0 || (dim > 1 && (__builtin_mul_overflow(n, dim, &n) || n > kMaxNumel))) return false;
  return true;
}

// Throws the ShapeError "<what>: shape (4294967296, 4294967296) has more elements than can be
// addressed …".
[[noreturn]] void refuse_extent(std::string_view what, const Shape& shape);
inline void require_addressable(std::string_view what, const Shape& shape) {
  if (!is_addressable(shape)) [[unlikely]]
    refuse_extent(what, shape);
}

}  // namespace tenon
