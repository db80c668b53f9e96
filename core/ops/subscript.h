// Parts of a tensor by subscripts, with the rules of PyTorch's x[1:5, 0]:
//
//   subscript(x, Slice(1, 5), 0)                         x[1:5, 0]
//   subscript(x, None, Ellipsis, mask)                   x[None, ..., mask]
//   subscript(x, Slice(), 1) = y                         x[:, 1] = y
//   subscript(x, rows, Slice(None, None, 2)) = 0.0       x[rows, ::2] = 0.0
//
// Whole numbers, slices, None and Ellipsis give a Part, a view that shares the values of x. With
// tensors among them, of indices or of bool, it is a Selection, which is read where a Tensor is
// wanted: a copy, by `index`. Assigning to either writes values into x. Where a gradient is wanted,
// assigning is recorded if the subscripts are tensors alone, as x(mask) = 0 and x(rows) = y are;
// other parts are views, where it is an AutogradError, as for a leaf that requires a gradient and
// for a tensor that shares its memory with others. There are more subscripts than dimensions, or no
// such slice: an IndexError.
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

// Stands for a new dimension of size 1; in a slice for a bound that is not given.
struct NoneType {};
inline constexpr NoneType None;
// Stands for as many whole dimensions as the other subscripts leave. There is at most one.
struct EllipsisType {};
inline constexpr EllipsisType Ellipsis;

// A bound of a slice.
struct SliceBound : std::optional<int64_t> {
  SliceBound(NoneType) {}
  template <std::integral I>
  SliceBound(I at) : std::optional<int64_t>(static_cast<int64_t>(at)) {}
};
// The slices from start up to but not including stop, every step-th. Negative bounds count from the
// end, and those outside are moved to the ends.
struct Slice {
  SliceBound start, stop;
  int64_t step;
  Slice(SliceBound start = None, SliceBound stop = None, int64_t step = 1)
      : start(start), stop(stop), step(step) {}
};

// One of the subscripts.
class Subscript {
 public:
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  Subscript(I at) : value_(static_cast<int64_t>(at)) {}
  Subscript(Slice slice) : value_(slice) {}
  Subscript(NoneType none) : value_(none) {}
  Subscript(EllipsisType ellipsis) : value_(ellipsis) {}
  Subscript(const Tensor& index) : value_(index) {}

  using Value = std::variant<int64_t, Slice, NoneType, EllipsisType, Tensor>;
  const Value& value() const { return value_; }

 private:
  Value value_;
};

// A view of a part. It is a Tensor; assigning to the result of the call writes values.
class TENON_API Part : public Tensor {
 public:
  Part(const Tensor& x, std::span<const Subscript> subscripts);
  Part(const Part&) = default;

  // Write values, which are converted and broadcast as copy_ and fill_ do.
  Part& operator=(const Tensor& values) &&;
  Part& operator=(Number value) &&;
  Part& operator=(const Part& values) && {
    return std::move(*this) = static_cast<const Tensor&>(values);
  }
  Part& operator+=(const Tensor& values);
  Part& operator-=(const Tensor& values);
  Part& operator*=(const Tensor& values);
  Part& operator/=(const Tensor& values);
  Part& operator+=(Number value);
  Part& operator-=(Number value);
  Part& operator*=(Number value);
  Part& operator/=(Number value);
};

// A part that tensors of indices or of bool choose; each reading chooses anew.
class TENON_API Selection {
 public:
  Selection(const Tensor& x, std::span<const Subscript> subscripts);
  Selection(const Selection&) = default;

  // Returns a copy of the part. With a mask it waits for that.
  Tensor get() const;
  operator Tensor() const { return get(); }

  // Write values, which are converted and broadcast. A number is written through a mask without
  // waiting for it. Where an index occurs several times, the last value is written, after += too.
  Selection& operator=(const Tensor& values) &&;
  Selection& operator=(Number value) &&;
  Selection& operator=(const Selection& values) && { return std::move(*this) = values.get(); }
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

// Returns the part of x that the subscripts name, a Part or a Selection.
template <class... Indices>
  requires(sizeof...(Indices) > 0)
typename detail::Subscripted<Indices...>::type subscript(const Tensor& x,
                                                         const Indices&... indices) {
  const Subscript all[] = {detail::subscript_of(indices)...};
  return typename detail::Subscripted<Indices...>::type(x, all);
}

template <class... Indices>
  requires(sizeof...(Indices) > 0)
typename detail::Subscripted<Indices...>::type Tensor::operator()(const Indices&... indices) const {
  return subscript(*this, indices...);
}

}  // namespace tenon
