// New tensors beyond the plain factories of core/factories.h, whose errors they share: a ShapeError
// for a size that is negative or too large, a DeviceError and an OutOfMemoryError. They are f32 and
// on default_device() where options do not say otherwise. The functions named _like have shape,
// dtype and device of their argument where options do not say otherwise, and throw a ValueError for
// an undefined tensor.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Returns `steps` numbers from start to end, both included, at equal distances; one step is start.
// Integer dtypes truncate them. Throws a ValueError for a negative number of steps, a number that
// is not finite or one that an integer dtype does not hold, and a DTypeError for bool.
TENON_API Tensor linspace(Number start, Number end, int64_t steps,
                          const TensorOptions& options = {});
// Returns base^x for the numbers x of linspace. Throws as linspace.
TENON_API Tensor logspace(Number start, Number end, int64_t steps, double base = 10,
                          const TensorOptions& options = {});
// Returns a matrix (n, n) or (n, m) with ones on its diagonal and zeros elsewhere.
TENON_API Tensor eye(int64_t n, const TensorOptions& options = {});
TENON_API Tensor eye(int64_t n, int64_t m, const TensorOptions& options = {});
// Returns the rows and columns of the elements on and below a diagonal of a matrix of `row` rows
// and `col` columns, in row-major order: shape (2, n), i64 by default. Throws a ValueError for a
// negative size.
TENON_API Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0,
                              const TensorOptions& options = {});
// Returns the same for the elements on and above the diagonal.
TENON_API Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0,
                              const TensorOptions& options = {});

// Returns a tensor of which every element is `value`. Throws a ValueError if an integer dtype does
// not hold the value.
TENON_API Tensor full_like(const Tensor& like, Number value, const TensorOptions& options = {});
// Returns samples of the uniform distribution in [0, 1). Throws a DTypeError for a dtype that is
// not floating.
TENON_API Tensor rand_like(const Tensor& like, const TensorOptions& options = {});
// Returns samples of the standard normal distribution. Throws a DTypeError for a dtype that is not
// floating.
TENON_API Tensor randn_like(const Tensor& like, const TensorOptions& options = {});
// Returns random whole numbers, equally likely, in [low, high). Throws as randint.
TENON_API Tensor randint_like(const Tensor& like, int64_t low, int64_t high,
                              const TensorOptions& options = {});

// Returns the numbers from 0 to n - 1 in a random order, i64 by default. They are drawn on the
// host. Throws a ValueError for a negative n or one that an integer dtype does not hold.
TENON_API Tensor randperm(int64_t n, const TensorOptions& options = {});

// Returns classes as vectors: shape (…, num_classes), i64, with 1 at x and 0 elsewhere. With
// num_classes = -1 there is one more than the largest x, for which it waits. A class outside
// [0, num_classes) is an IndexError of the queued work. Throws a DTypeError unless x is i64 or i32,
// and a ValueError for another number of classes or, with -1, without an element.
TENON_API Tensor one_hot(const Tensor& x, int64_t num_classes = -1);

// ---- a dtype, a device or both as the options, as of the factories: eye(3, f64, "cuda:0") ----

template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor linspace(Number start, Number end, int64_t steps, const P&... at) {
  return linspace(start, end, steps, detail::placed(at...));
}
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor eye(int64_t n, const P&... at) {
  return eye(n, detail::placed(at...));
}
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor eye(int64_t n, int64_t m, const P&... at) {
  return eye(n, m, detail::placed(at...));
}
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor full_like(const Tensor& like, Number value, const P&... at) {
  return full_like(like, value, detail::placed(at...));
}
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor rand_like(const Tensor& like, const P&... at) {
  return rand_like(like, detail::placed(at...));
}
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor randn_like(const Tensor& like, const P&... at) {
  return randn_like(like, detail::placed(at...));
}
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor randperm(int64_t n, const P&... at) {
  return randperm(n, detail::placed(at...));
}

}  // namespace tenon
