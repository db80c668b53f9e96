// How large a tensor may be. Every shape of a tensor is checked against it where it is made. Not
// installed.
#pragma once

#include <string>
#include <string_view>

#include <tenon/core/shape.h>

namespace tenon {

// Elements of a tensor at most, a dimension of 0 counted as 1: of every type they have fewer than
// 2^63 bytes, and no stride or offset of such a tensor, or of a view of it, overflows.
inline constexpr int64_t kMaxNumel = (int64_t{1} << 60) - 1;

// Whether a tensor may have this shape.
inline bool is_addressable(const Shape& shape) {
  int64_t n = 1;
  for (int64_t dim : shape)
    if (dim < 0 || (dim > 1 && (__builtin_mul_overflow(n, dim, &n) || n > kMaxNumel))) return false;
  return true;
}

// ShapeError "<what>: shape (4294967296, 4294967296) has more elements than can be addressed …".
[[noreturn]] void refuse_extent(std::string_view what, const Shape& shape);
inline void require_addressable(std::string_view what, const Shape& shape) {
  if (!is_addressable(shape)) [[unlikely]]
    refuse_extent(what, shape);
}

}  // namespace tenon
