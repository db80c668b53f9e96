// Shapes and strides of up to eight dimensions, which are stored in the object itself.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <tenon/core/api.h>

namespace tenon {

// A short list of int64: a shape, or strides in elements. Cheap to copy. It holds at most eight
// numbers; one more is a ShapeError.
//
// A function that takes a Shape also takes a braced list, a vector or span of int64_t, or one
// integer, which is a list of one: `x.sum(0)`, `x.reshape(-1)`, `zeros({2, 3})`.
class TENON_API Shape {
 public:
  // The most dimensions that a list has.
  static constexpr size_t max_rank = 8;

  // Makes the empty list, the shape of a scalar.
  constexpr Shape() = default;
  // Make the list of these numbers. Throw a ShapeError for more than eight.
  Shape(std::initializer_list<int64_t> dims)
      : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  Shape(std::span<const int64_t> dims);
  Shape(const std::vector<int64_t>& dims) : Shape(std::span<const int64_t>(dims)) {}
  // Makes the list of this one integer. A bool is none, so that sum(x, true) does not compile.
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  constexpr Shape(I dim) : rank_(1), dims_{static_cast<int64_t>(dim)} {}
  // Returns a list of `rank` equal numbers.
  static Shape filled(size_t rank, int64_t value);
  // Returns the row-major strides of a tensor of `shape`, which was checked when the tensor was
  // created. If the result initializes a member, it is constructed in place.
  static Shape row_major(const Shape& shape) { return Shape(RowMajor{}, shape); }

  // Returns the number of dimensions.
  size_t size() const { return rank_; }
  // Returns whether there are no dimensions.
  bool empty() const { return rank_ == 0; }
  // Returns dimension i; a negative i counts from the end, so that [-1] is the last. Throws an
  // IndexError if there is no such dimension.
  template <std::integral I>
  int64_t operator[](I i) const {
    return dims_[checked(i)];
  }
  template <std::integral I>
  int64_t& operator[](I i) {
    return dims_[checked(i)];
  }
  // Returns the last dimension. Throws an IndexError if there is none.
  int64_t back() const { return (*this)[-1]; }
  // Returns the address of the first dimension, which nothing checks.
  const int64_t* data() const { return dims_; }
  // Return iterators, for loops over the dimensions.
  const int64_t* begin() const { return dims_; }
  const int64_t* end() const { return dims_ + rank_; }
  // Returns the dimensions in place.
  std::span<const int64_t> span() const { return {dims_, rank_}; }

  // Appends a dimension. Throws a ShapeError if there are eight already.
  void push_back(int64_t dim);
  // Puts a dimension before dimension `at`, or behind the last if `at` is size(). Throws a
  // ShapeError if there are eight already, and an IndexError if `at` is larger than size().
  void insert(size_t at, int64_t dim);
  // Removes dimension `at`. Throws an IndexError if there is no such dimension.
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
  // Returns the row-major strides of a tensor of this shape, a dimension of 0 counted as 1. Throws
  // a ShapeError if one leaves int64.
  Shape contiguous_strides() const;
  // Returns "(2, 3)", "(4,)" or "()".
  std::string str() const;

  // Returns whether both lists have the same numbers.
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
  // Returns where dimension i is, a negative one counted from the end.
  template <class I>
  size_t checked(I i) const {
    size_t at = static_cast<size_t>(i);
    if constexpr (std::is_signed_v<I>)
      if (i < 0) at += rank_;
    if (at >= rank_) [[unlikely]]
      refuse_index(static_cast<int64_t>(i));
    return at;
  }
  [[noreturn]] void refuse_index(int64_t i) const;
  [[noreturn]] void refuse_product(const char* what) const;

  uint32_t rank_ = 0;
  int64_t dims_[max_rank] = {};
};

// Distances in elements between neighbors along each dimension.
using Strides = Shape;

// Returns the shape that a and b broadcast to, by the rules of NumPy. Throws a ShapeError that
// names both and the operator `op` if they do not.
TENON_API Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);

}  // namespace tenon
