// New tensors beyond the plain factories of core/factories.h, whose errors they share: a ShapeError
// for a size that is negative or too large, a DeviceError and an OutOfMemoryError. They are f32 and
// on default_device() where options do not say otherwise. The functions named _like take shape,
// dtype, device and order of elements in memory from their argument where options do not say
// otherwise, and throw a ValueError for an undefined tensor.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Returns `steps` numbers from start to end, both included, at equal distances, of shape (steps);
// one step gives start alone. Integer dtypes truncate them. Throws a ValueError for a negative
// number of steps, a number that is not finite or one that an integer dtype does not hold, and a
// DTypeError for bool.
TENON_API Tensor linspace(Number start, Number end, int64_t steps,
                          const TensorOptions& options = {});
// Returns base^x for the numbers x of linspace, of shape (steps). Throws as linspace; an integer
// dtype has to hold the first and the last result.
TENON_API Tensor logspace(Number start, Number end, int64_t steps, double base = 10,
                          const TensorOptions& options = {});
// Returns a matrix (n, n) with ones on its diagonal and zeros elsewhere.
TENON_API Tensor eye(int64_t n, const TensorOptions& options = {});
// The same as a matrix (n, m).
TENON_API Tensor eye(int64_t n, int64_t m, const TensorOptions& options = {});
// Returns the rows and columns of the elements on and below a diagonal of a matrix of `row` rows
// and `col` columns, in row-major order: shape (2, n), i64 by default. The diagonal is the main
// one, or lies `offset` above it. Throws a ValueError for a negative size.
TENON_API Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0,
                              const TensorOptions& options = {});
// Returns the same for the elements on and above the diagonal.
TENON_API Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0,
                              const TensorOptions& options = {});

// Returns a tensor of the shape of `like` of which every element is `value`. Throws a ValueError if
// an integer dtype does not hold the value.
TENON_API Tensor full_like(const Tensor& like, Number value, const TensorOptions& options = {});
// Returns samples of the uniform distribution in [0, 1), in the shape of `like`. Throws a
// DTypeError for a dtype that is not floating.
TENON_API Tensor rand_like(const Tensor& like, const TensorOptions& options = {});
// Returns samples of the standard normal distribution, in the shape of `like`. Throws a DTypeError
// for a dtype that is not floating.
TENON_API Tensor randn_like(const Tensor& like, const TensorOptions& options = {});
// Returns random whole numbers, equally likely, in [low, high), in the shape of `like`. Throws as
// randint.
TENON_API Tensor randint_like(const Tensor& like, int64_t low, int64_t high,
                              const TensorOptions& options = {});

// Returns the numbers from 0 to n - 1 in a random order, of shape (n), i64 by default. They are
// drawn on the host. Throws a ValueError for a negative n or one that an integer dtype does not
// hold.
TENON_API Tensor randperm(int64_t n, const TensorOptions& options = {});

// Returns the classes x (…) as vectors with 1 at the class and 0 elsewhere: i64 of shape
// (…, num_classes). With
// num_classes = -1 there is one more than the largest x, for which it waits. A class outside
// [0, num_classes) is an IndexError of the queued work. Throws a DTypeError unless x is i64 or i32,
// and a ValueError for another number of classes or, with -1, without an element.
TENON_API Tensor one_hot(const Tensor& x, int64_t num_classes = -1);

// ---- a dtype, a device or both in place of the options, as for the factories ----

// eye(3, f64, "cuda:0") is eye(3, {.dtype = f64, .device = "cuda:0"}). Shapes and errors are those
// of the function with options.

// Returns linspace(start, end, steps) of this dtype, on this device.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor linspace(Number start, Number end, int64_t steps, const P&... at) {
  return linspace(start, end, steps, detail::placed(at...));
}
// Returns eye(n) of this dtype, on this device.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor eye(int64_t n, const P&... at) {
  return eye(n, detail::placed(at...));
}
// Returns eye(n, m) of this dtype, on this device.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor eye(int64_t n, int64_t m, const P&... at) {
  return eye(n, m, detail::placed(at...));
}
// Returns full_like(like, value) of this dtype, on this device.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor full_like(const Tensor& like, Number value, const P&... at) {
  return full_like(like, value, detail::placed(at...));
}
// Returns rand_like(like) of this dtype, on this device.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor rand_like(const Tensor& like, const P&... at) {
  return rand_like(like, detail::placed(at...));
}
// Returns randn_like(like) of this dtype, on this device.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor randn_like(const Tensor& like, const P&... at) {
  return randn_like(like, detail::placed(at...));
}
// Returns randperm(n) of this dtype, on this device.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor randperm(int64_t n, const P&... at) {
  return randperm(n, detail::placed(at...));
}

}  // namespace tenon
