// Shapes and strides: up to eight dimensions, held in place.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>

#include <tenon/core/api.h>

namespace tenon {

// A short list of int64: a shape, or strides in elements. Cheap to copy. More than eight dimensions
// is a ShapeError.
class TENON_API Shape {
 public:
  static constexpr size_t max_rank = 8;

  constexpr Shape() = default;
  Shape(std::initializer_list<int64_t> dims)
      : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);
  static Shape filled(size_t rank, int64_t value);
  // Row-major strides of a tensor of `shape`, whose extent was checked where it was made. Where the
  // result initialises a member, it is written in its place.
  static Shape row_major(const Shape& shape) { return Shape(RowMajor{}, shape); }

  size_t size() const { return rank_; }  // number of dimensions
  bool empty() const { return rank_ == 0; }
  int64_t operator[](size_t i) const { return dims_[i]; }
  int64_t& operator[](size_t i) { return dims_[i]; }
  const int64_t* begin() const { return dims_; }
  const int64_t* end() const { return dims_ + rank_; }
  int64_t back() const { return dims_[rank_ - 1]; }
  std::span<const int64_t> span() const { return {dims_, rank_}; }

  void push_back(int64_t dim);
  void insert(size_t at, int64_t dim);
  void erase(size_t at);

  // Product of the dimensions; 1 for a scalar. ShapeError where it leaves int64, which that of a
  // tensor's shape never does.
  int64_t numel() const {
    int64_t n = 1;
    for (size_t i = 0; i < rank_; ++i)
      if (__builtin_mul_overflow(n, dims_[i], &n)) [[unlikely]]
        refuse_product("numel");
    return n;
  }
  // Row-major strides of a tensor of this shape, a dimension of 0 counted as 1. ShapeError as
  // above.
  Shape contiguous_strides() const;
  // "(2, 3)", "(4,)", "()".
  std::string str() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (size_t i = 0; i < a.rank_; ++i)
      if (a.dims_[i] != b.dims_[i]) return false;
    return true;
  }

  // As str().
  friend TENON_API std::ostream& operator<<(std::ostream& out, const Shape& shape);

 private:
  struct RowMajor {};
  Shape(RowMajor, const Shape& shape) : rank_(shape.rank_) {
    int64_t step = 1;
    for (size_t i = rank_; i-- > 0;) {
      dims_[i] = step;
      step *= shape.dims_[i] > 1 ? shape.dims_[i] : 1;
    }
  }
  [[noreturn]] void refuse_product(const char* what) const;

  uint32_t rank_ = 0;
  int64_t dims_[max_rank] = {};
};

using Strides = Shape;

// The shape that both broadcast to; ShapeError names both and `op`.
TENON_API Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);

}  // namespace tenon
