// The plain factories of tensors; core/ops/creation.h has others.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include <tenon/core/memory_format.h>
#include <tenon/core/tensor.h>

namespace tenon {

// How a factory makes a tensor. What is not given is the factory's own choice.
struct TensorOptions {
  // Without it, values that are given keep their type (tensor, from_host, to_tensor), randint makes
  // i64, the functions named _like take that of their argument, and all others make f32.
  std::optional<DType> dtype = std::nullopt;
  // Without it, default_device().
  std::optional<Device> device = std::nullopt;
  // Whether operators record their calls on the tensor for autograd; a DTypeError unless the dtype
  // is floating.
  bool requires_grad = false;
  // The order of the elements in memory. Without it, the functions named _like keep the order of
  // their argument (preserve_format), and all others make row-major tensors. Throws a ShapeError if
  // the format is one of tensors of other dimensions.
  std::optional<MemoryFormat> memory_format = std::nullopt;
};

// ---- factories ----
// They return a contiguous tensor, unless options.memory_format says otherwise. They throw a
// ShapeError for a negative size or a shape with more elements than can be addressed, a DeviceError
// if the device cannot be used, and an OutOfMemoryError if it has no room for the tensor.

// Returns a tensor whose values were never written, f32 by default.
TENON_API Tensor empty(const Shape& shape, const TensorOptions& options = {});
// Returns a tensor of which every element is `value`, f32 by default (not the type of the value, as
// in PyTorch). Throws a ValueError if an integer dtype does not hold the value.
TENON_API Tensor full(const Shape& shape, Number value, const TensorOptions& options = {});
// Returns a tensor of zeros, f32 by default.
TENON_API Tensor zeros(const Shape& shape, const TensorOptions& options = {});
// Returns a tensor of ones, f32 by default.
TENON_API Tensor ones(const Shape& shape, const TensorOptions& options = {});
// Returns start, start + step, start + 2 step, … up to but not including `end`, of shape (n), f32
// by default. Three integers are computed exactly. Throws a ValueError if a number is not finite,
// if step is 0 or leads away from `end`, or if an integer dtype does not hold the first or last of
// three integers, and a DTypeError for bool.
TENON_API Tensor arange(Number start, Number end, Number step = 1,
                        const TensorOptions& options = {});
// arange with the options and without a step, which is 1.
inline Tensor arange(Number start, Number end, const TensorOptions& options) {
  return arange(start, end, 1, options);
}
// arange from 0.
inline Tensor arange(Number end, const TensorOptions& options = {}) {
  return arange(0, end, 1, options);
}
// Returns samples of the uniform distribution in [0, 1), f32 by default. Throws a DTypeError unless
// options.dtype is floating.
TENON_API Tensor rand(const Shape& shape, const TensorOptions& options = {});
// Returns samples of the standard normal distribution, f32 by default. Throws a DTypeError unless
// options.dtype is floating.
TENON_API Tensor randn(const Shape& shape, const TensorOptions& options = {});
// Returns random whole numbers, equally likely, in [low, high), i64 by default. Throws a ValueError
// unless low < high and, for integer dtypes, unless the dtype holds all of them.
TENON_API Tensor randint(int64_t low, int64_t high, const Shape& shape,
                         const TensorOptions& options = {});
// Returns a tensor of the shape of `like`, and of its dtype, device and order of dimensions in
// memory where options do not give others, whose values were never written. Throws a ValueError for
// an undefined tensor.
TENON_API Tensor empty_like(const Tensor& like, const TensorOptions& options = {});
// Returns zeros like `like`, as empty_like.
TENON_API Tensor zeros_like(const Tensor& like, const TensorOptions& options = {});
// Returns ones like `like`, as empty_like.
TENON_API Tensor ones_like(const Tensor& like, const TensorOptions& options = {});
// Returns a copy of the row-major values of type `dtype` in host memory, converted to options.dtype
// if that is given. Throws a ValueError for a null pointer unless the shape has no elements.
TENON_API Tensor from_host(const void* values, DType dtype, const Shape& shape,
                           const TensorOptions& options = {});

namespace detail {
// Throws a ShapeError unless the shape has as many elements as there are values.
TENON_API void require_values(size_t count, const Shape& shape);
}  // namespace detail

// Returns a copy of the values in row-major order. The dtype is that of T: f32 for float and for a
// braced list, f64 for double, i64 for int64_t and long long, i32 for int32_t, u8 for uint8_t. If
// options.dtype is given, the values are converted to it. Without a shape the tensor has shape (n).
// Throws a ShapeError unless the shape has as many elements as there are values.
template <class T>
  requires std::is_arithmetic_v<T> && (!std::same_as<T, bool>)
Tensor tensor(std::span<const T> values, const Shape& shape, const TensorOptions& options = {}) {
  detail::require_values(values.size(), shape);
  return from_host(values.data(), DTypeOf<T>::value, shape, options);
}
template <class T>
  requires std::is_arithmetic_v<T> && (!std::same_as<T, bool>)
Tensor tensor(const std::vector<T>& values, const Shape& shape, const TensorOptions& options = {}) {
  return tensor(std::span<const T>(values), shape, options);
}
template <class T>
  requires std::is_arithmetic_v<T> && (!std::same_as<T, bool>)
Tensor tensor(const std::vector<T>& values) {
  return tensor(std::span<const T>(values), values.size());
}
inline Tensor tensor(std::initializer_list<float> values) {
  return tensor(std::span<const float>(values.begin(), values.size()), values.size());
}
inline Tensor tensor(std::initializer_list<float> values, const Shape& shape,
                     const TensorOptions& options = {}) {
  return tensor(std::span<const float>(values.begin(), values.size()), shape, options);
}
// Returns a tensor of shape () with this value, f32 by default. Throws a ValueError if an integer
// dtype does not hold the value.
TENON_API Tensor scalar(Number value, const TensorOptions& options = {});

// ---- a dtype alone as the options: zeros({2, 3}, f64) ----
// These are templates so that `{}` still stands for the options.

template <std::same_as<DType> D>
Tensor empty(const Shape& shape, D dtype) {
  return empty(shape, TensorOptions{.dtype = dtype});
}
template <std::same_as<DType> D>
Tensor full(const Shape& shape, Number value, D dtype) {
  return full(shape, value, TensorOptions{.dtype = dtype});
}
template <std::same_as<DType> D>
Tensor zeros(const Shape& shape, D dtype) {
  return zeros(shape, TensorOptions{.dtype = dtype});
}
template <std::same_as<DType> D>
Tensor ones(const Shape& shape, D dtype) {
  return ones(shape, TensorOptions{.dtype = dtype});
}
template <std::same_as<DType> D>
Tensor arange(Number start, Number end, Number step, D dtype) {
  return arange(start, end, step, TensorOptions{.dtype = dtype});
}
template <std::same_as<DType> D>
Tensor arange(Number start, Number end, D dtype) {
  return arange(start, end, 1, TensorOptions{.dtype = dtype});
}
template <std::same_as<DType> D>
Tensor arange(Number end, D dtype) {
  return arange(0, end, 1, TensorOptions{.dtype = dtype});
}
template <std::same_as<DType> D>
Tensor rand(const Shape& shape, D dtype) {
  return rand(shape, TensorOptions{.dtype = dtype});
}
template <std::same_as<DType> D>
Tensor randn(const Shape& shape, D dtype) {
  return randn(shape, TensorOptions{.dtype = dtype});
}
template <std::same_as<DType> D>
Tensor scalar(Number value, D dtype) {
  return scalar(value, TensorOptions{.dtype = dtype});
}

}  // namespace tenon
