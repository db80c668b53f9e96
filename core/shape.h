// Shapes and strides of up to eight dimensions, which are stored in the object itself.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>

#include <tenon/core/api.h>

namespace tenon {

// A short list of int64 that is a shape, or strides in elements. It is cheap to copy. More than
// eight dimensions are a ShapeError.
class TENON_API Shape {
 public:
  static constexpr size_t max_rank = 8;

  constexpr Shape() = default;
  Shape(std::initializer_list<int64_t> dims)
      : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);
  static Shape filled(size_t rank, int64_t value);
  // Returns the row-major strides of a tensor of `shape`, which was checked when the tensor was
  // created. If the result initialises a member, it is constructed in place.
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

  // Returns the product of the dimensions; 1 for a scalar. Throws a ShapeError if it does not fit
  // into int64, which cannot happen for the shape of a tensor.
  int64_t numel() const {
    int64_t n = 1;
    for (size_t i = 0; i < rank_; ++i)
      if (__builtin_mul_overflow(n, dims_[i], &n)) [[unlikely]]
        refuse_product("numel");
    return n;
  }
  // Returns the row-major strides of a tensor of this shape, where a dimension of 0 counts as 1.
  // Throws a ShapeError like numel().
  Shape contiguous_strides() const;
  // Returns a text such as "(2, 3)", "(4,)" or "()".
  std::string str() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (size_t i = 0; i < a.rank_; ++i)
      if (a.dims_[i] != b.dims_[i]) return false;
    return true;
  }

  // Prints str().
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

// Returns the shape to which both broadcast. The ShapeError names both shapes and `op`.
TENON_API Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);

}  // namespace tenon
