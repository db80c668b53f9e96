// Parts of a tensor by subscripts, with the rules of PyTorch's x[1:5, 0]:
//
//   subscript(x, Slice(1, 5), 0)                         x[1:5, 0]
//   subscript(x, None, Ellipsis, mask)                   x[None, ..., mask]
//   subscript(x, Slice(), 1) = y                         x[:, 1] = y
//   subscript(x, rows, Slice(None, None, 2)) = 0.0       x[rows, ::2] = 0.0
//
// Whole numbers, slices, None and Ellipsis give a Part, a view that shares the values of x. With
// tensors among them, of indices or of bool, the result is a Selection, which becomes a Tensor
// where one is wanted: a copy, made by `index`. Assigning to either writes values into x.
//
// Where a gradient is wanted, assigning is recorded if the subscripts are tensors alone, as
// x(mask) = 0 and x(rows) = y are. Other parts are views, for which it is an AutogradError, as for
// a leaf that requires a gradient and for a tensor that shares its memory with others.
//
// A call with subscripts throws an IndexError if there are more of them than dimensions, or no
// slice with a whole number, and a ValueError for an undefined tensor, for a second Ellipsis, or
// for a slice whose step is not positive. Errors of tensors as subscripts are those of `index` and
// index_put, and are thrown when a Selection is read or written.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tenon/core/number.h>
#include <tenon/core/tensor.h>

namespace tenon {

// As a subscript, None stands for a new dimension of size 1, and in a slice for a bound that is not
// given, as Python's does.
struct NoneType {};
inline constexpr NoneType None;
// Ellipsis stands for as many whole dimensions as the other subscripts leave. There is at most one.
struct EllipsisType {};
inline constexpr EllipsisType Ellipsis;

// A bound of a slice, which is a whole number or, if it is not given, None.
struct SliceBound : std::optional<int64_t> {
  // Makes a bound that is not given.
  SliceBound(NoneType) {}
  // Makes a bound of a whole number.
  template <std::integral I>
  SliceBound(I at) : std::optional<int64_t>(static_cast<int64_t>(at)) {}
};
// The positions start, start + step, … before stop along one dimension, as Python's
// start:stop:step. Negative bounds count from the end, and those outside are moved to the ends.
struct Slice {
  // The first position, by default 0, and the one before which the slice ends, by default the
  // dimension's size.
  SliceBound start, stop;
  int64_t step;  // the distance between positions, at least 1
  // Makes a slice; without arguments, one of the whole dimension.
  Slice(SliceBound start = None, SliceBound stop = None, int64_t step = 1)
      : start(start), stop(stop), step(step) {}
};

// One of the subscripts: a whole number, a Slice, None, Ellipsis, or a tensor, of indices (i64 or
// i32) or a mask (bool or u8).
class Subscript {
 public:
  // Each makes a subscript of that kind. A bool is refused when the program is compiled.
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  Subscript(I at) : value_(static_cast<int64_t>(at)) {}
  Subscript(Slice slice) : value_(slice) {}
  Subscript(NoneType none) : value_(none) {}
  Subscript(EllipsisType ellipsis) : value_(ellipsis) {}
  Subscript(const Tensor& index) : value_(index) {}

  // The kinds of subscripts.
  using Value = std::variant<int64_t, Slice, NoneType, EllipsisType, Tensor>;
  // Returns what it was made from.
  const Value& value() const { return value_; }

 private:
  Value value_;
};

// A view of a part. It is a Tensor; assigning to the result of the call writes values.
class TENON_API Part : public Tensor {
 public:
  // Makes the view of x that the subscripts name, none of which is a tensor. Throws as said above.
  Part(const Tensor& x, std::span<const Subscript> subscripts);
  // Makes another handle to the same view.
  Part(const Part&) = default;

  // Writes values into the part, converted to its dtype and broadcast to its shape as by copy_;
  // dimensions of size 1 in front are dropped. Throws a ShapeError if they do not broadcast.
  Part& operator=(const Tensor& values) &&;
  // Writes a number to every element, as fill_ does, whose errors it has.
  Part& operator=(Number value) &&;
  // Writes the values of another part, as of any tensor.
  Part& operator=(const Part& values) && {
    return std::move(*this) = static_cast<const Tensor&>(values);
  }
  // Write the sum, difference, product or quotient of the part's values and these values or this
  // number back to the part, as the assignment does.
  Part& operator+=(const Tensor& values);
  Part& operator-=(const Tensor& values);
  Part& operator*=(const Tensor& values);
  Part& operator/=(const Tensor& values);
  Part& operator+=(Number value);
  Part& operator-=(Number value);
  Part& operator*=(Number value);
  Part& operator/=(Number value);
};

// A part that tensors of indices or of bool choose; each reading chooses again.
class TENON_API Selection {
 public:
  // Makes the selection of x by the subscripts, of which at least one is a tensor. Throws as said
  // above.
  Selection(const Tensor& x, std::span<const Subscript> subscripts);
  // Makes another selection of the same elements.
  Selection(const Selection&) = default;

  // Returns a copy of the part, in the shape and with the errors of `index`. If a subscript is a
  // mask, waits for it.
  Tensor get() const;
  // Returns get(), where a Tensor is wanted.
  operator Tensor() const { return get(); }

  // Writes values into the part, converted to its dtype and broadcast to its shape. Where an index
  // occurs several times, the last value is written. Throws as index_put.
  Selection& operator=(const Tensor& values) &&;
  // Writes a number to every element of the part. Where the only tensor among the subscripts is a
  // mask of bool, it does not wait for it. Throws a ValueError if an integer dtype does not hold
  // the number.
  Selection& operator=(Number value) &&;
  // Writes a copy of another selection, as any tensor.
  Selection& operator=(const Selection& values) && { return std::move(*this) = values.get(); }
  // Write the sum, difference, product or quotient of the part's values and these values or this
  // number back to the part, as the assignment does: once, where an index occurs several times.
  Selection& operator+=(const Tensor& values);
  Selection& operator-=(const Tensor& values);
  Selection& operator*=(const Tensor& values);
  Selection& operator/=(const Tensor& values);
  Selection& operator+=(Number value);
  Selection& operator-=(Number value);
  Selection& operator*=(Number value);
  Selection& operator/=(Number value);

 private:
  Tensor base_;                  // the view that the other subscripts give
  std::vector<Tensor> indices_;  // of it, as `index` takes them
};

namespace detail {
template <class... Indices>
struct Subscripted {
  static constexpr bool chooses =
      ((std::derived_from<Indices, Tensor> || std::same_as<Indices, Selection>) || ...);
  using type = std::conditional_t<chooses, Selection, Part>;
};
inline Subscript subscript_of(const Selection& index) { return index.get(); }
template <class I>
Subscript subscript_of(const I& index) {
  return index;
}
}  // namespace detail

// Returns the part of x that the subscripts name, one or more of what a Subscript is made from or
// Selections: a Selection if a tensor is among them, otherwise a Part. Throws as said above.
template <class... Indices>
  requires(sizeof...(Indices) > 0)
typename detail::Subscripted<Indices...>::type subscript(const Tensor& x,
                                                         const Indices&... indices) {
  const Subscript all[] = {detail::subscript_of(indices)...};
  return typename detail::Subscripted<Indices...>::type(x, all);
}

// Returns subscript(*this, indices...).
template <class... Indices>
  requires(sizeof...(Indices) > 0)
typename detail::Subscripted<Indices...>::type Tensor::operator()(const Indices&... indices) const {
  return subscript(*this, indices...);
}

}  // namespace tenon
