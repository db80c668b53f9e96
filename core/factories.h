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

// Says how a factory makes a tensor. What is not given is the factory's own choice.
struct TensorOptions {
  // Sets the dtype of the tensor. Without it, values that are given keep their type (tensor,
  // from_host, to_tensor), randint makes i64, the functions named _like take that of their
  // argument, and all others make f32.
  std::optional<DType> dtype = std::nullopt;
  // Sets the device of the tensor; without it, it is default_device().
  std::optional<Device> device = std::nullopt;
  // True has operators record their calls on the tensor for autograd. Throws a DTypeError unless
  // the dtype is floating.
  bool requires_grad = false;
  // Sets the order of the elements in memory. Without it, the functions named _like keep the order
  // of their argument (preserve_format), and all others make row-major tensors. Throws a ShapeError
  // if the format is one of tensors of other dimensions.
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
// Returns arange(start, end, 1, options).
inline Tensor arange(Number start, Number end, const TensorOptions& options) {
  return arange(start, end, 1, options);
}
// Returns arange(0, end, 1, options).
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
// Returns randint(0, high, shape, options).
inline Tensor randint(int64_t high, const Shape& shape, const TensorOptions& options = {}) {
  return randint(0, high, shape, options);
}
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

// A number, or numbers in nested braces, as `tensor` takes them.
class TENON_API NestedNumbers {
 public:
  // Takes a number.
  template <class T>
    requires std::is_arithmetic_v<T>
  NestedNumbers(T number) : number_(number) {}
  // Takes a list of numbers or of lists.
  NestedNumbers(std::initializer_list<NestedNumbers> rows);
  NestedNumbers(const NestedNumbers&);
  ~NestedNumbers();

  // Returns whether it is a list.
  bool is_list() const { return is_list_; }
  // Returns the number, or 0 for a list.
  Number number() const { return number_; }
  // Returns the members of a list; nothing for a number.
  const std::vector<NestedNumbers>& rows() const { return rows_; }

 private:
  Number number_ = 0;
  bool is_list_ = false;
  std::vector<NestedNumbers> rows_;
};

namespace detail {

// Throws a ShapeError unless the shape has as many elements as there are values.
TENON_API void require_values(size_t count, const Shape& shape);
// Returns a tensor of these values: of bool where they are, otherwise f32, where options give no
// dtype.
TENON_API Tensor tensor_of_list(const void* values, DType dtype, const Shape& shape,
                                const TensorOptions& options);
// Returns the tensor of nested numbers.
TENON_API Tensor tensor_of_numbers(const NestedNumbers& values, const TensorOptions& options);
// Holds for the types of elements in a list in braces.
template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, int> ||
                  std::same_as<T, long> || std::same_as<T, long long>;
// A parameter that no type fits, so that a list's type cannot be named in its place.
enum class TypeOfList { deduced };

// Holds for what may stand for the options of a factory: a dtype, a device, or a dtype and a
// device.
template <class T>
concept Placing = std::same_as<T, DType> || std::convertible_to<const T&, Device>;
// Return the options that these stand for.
inline TensorOptions placed(DType dtype) { return {.dtype = dtype}; }
inline TensorOptions placed(const Device& device) { return {.device = device}; }
inline TensorOptions placed(DType dtype, const Device& device) {
  return {.dtype = dtype, .device = device};
}

}  // namespace detail

// Returns a tensor of shape () for a number, and for a list in braces one with a dimension for each
// depth of braces: tensor({{1, 2}, {3, 4}}) is a matrix. Numbers are f32, whatever the type that
// C++ gives them, and bool stays bool, where the options give no dtype. Throws a ShapeError for
// rows of different lengths and for more than eight depths, and a ValueError for a number that an
// integer dtype does not hold.
TENON_API Tensor tensor(const NestedNumbers& values);
// Returns the same with options. With a shape the numbers are taken in row-major order; a
// ShapeError unless it has as many elements.
TENON_API Tensor tensor(const NestedNumbers& values, const Shape& shape,
                        const TensorOptions& options = {});
template <std::same_as<TensorOptions> O = TensorOptions>  // so that `{}` means the shape ()
Tensor tensor(const NestedNumbers& values, const O& options) {
  return detail::tensor_of_numbers(values, options);
}
// Returns the same for a list of one depth, whose elements have one type. A type that is named is
// that of a vector below: tensor<int64_t>({1, 2}) is i64.
template <detail::TypeOfList = detail::TypeOfList::deduced, detail::Element T>
Tensor tensor(std::initializer_list<T> values) {
  return detail::tensor_of_list(values.begin(), DTypeOf<T>::value, values.size(), {});
}
template <detail::TypeOfList = detail::TypeOfList::deduced, detail::Element T>
Tensor tensor(std::initializer_list<T> values, const Shape& shape,
              const TensorOptions& options = {}) {
  detail::require_values(values.size(), shape);
  return detail::tensor_of_list(values.begin(), DTypeOf<T>::value, shape, options);
}
// Returns the same for a list of bools, whose values std::vector<bool> would not hold one by one.
template <std::same_as<bool> B>
Tensor tensor(std::initializer_list<B> values) {
  return detail::tensor_of_list(values.begin(), DType::boolean, values.size(), {});
}
template <std::same_as<bool> B>
Tensor tensor(std::initializer_list<B> values, const Shape& shape,
              const TensorOptions& options = {}) {
  detail::require_values(values.size(), shape);
  return detail::tensor_of_list(values.begin(), DType::boolean, shape, options);
}

// Returns a copy of the values in row-major order. The dtype is that of T: f32 for float, f64 for
// double, i64 for int64_t and long long, i32 for int32_t, u8 for uint8_t. If options.dtype is
// given, the values are converted to it. Without a shape the tensor has shape (n). Throws a
// ShapeError unless the shape has as many elements as there are values.
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
template <class T, std::same_as<TensorOptions> O = TensorOptions>
  requires std::is_arithmetic_v<T> && (!std::same_as<T, bool>)
Tensor tensor(const std::vector<T>& values, const O& options) {
  return tensor(std::span<const T>(values), values.size(), options);
}
template <class T>
  requires std::is_arithmetic_v<T> && (!std::same_as<T, bool>)
Tensor tensor(const std::vector<T>& values) {
  return tensor(std::span<const T>(values), values.size());
}
// Returns a tensor of shape () with this value, f32 by default. Throws a ValueError if an integer
// dtype does not hold the value.
TENON_API Tensor scalar(Number value, const TensorOptions& options = {});

// ---- a dtype, a device or both as the options: zeros({2, 3}, f64, "cuda:0") ----

// Returns empty(shape) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor empty(const Shape& shape, const P&... at) {
  return empty(shape, detail::placed(at...));
}
// Returns full(shape, value) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor full(const Shape& shape, Number value, const P&... at) {
  return full(shape, value, detail::placed(at...));
}
// Returns zeros(shape) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor zeros(const Shape& shape, const P&... at) {
  return zeros(shape, detail::placed(at...));
}
// Returns ones(shape) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor ones(const Shape& shape, const P&... at) {
  return ones(shape, detail::placed(at...));
}
// Returns arange(start, end, step) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor arange(Number start, Number end, Number step, const P&... at) {
  return arange(start, end, step, detail::placed(at...));
}
// Returns arange(start, end, 1) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor arange(Number start, Number end, const P&... at) {
  return arange(start, end, 1, detail::placed(at...));
}
// Returns arange(0, end, 1) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor arange(Number end, const P&... at) {
  return arange(0, end, 1, detail::placed(at...));
}
// Returns rand(shape) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor rand(const Shape& shape, const P&... at) {
  return rand(shape, detail::placed(at...));
}
// Returns randn(shape) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor randn(const Shape& shape, const P&... at) {
  return randn(shape, detail::placed(at...));
}
// Returns randint(low, high, shape) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor randint(int64_t low, int64_t high, const Shape& shape, const P&... at) {
  return randint(low, high, shape, detail::placed(at...));
}
// Returns randint(0, high, shape) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor randint(int64_t high, const Shape& shape, const P&... at) {
  return randint(0, high, shape, detail::placed(at...));
}
// Returns empty_like(like) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor empty_like(const Tensor& like, const P&... at) {
  return empty_like(like, detail::placed(at...));
}
// Returns zeros_like(like) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor zeros_like(const Tensor& like, const P&... at) {
  return zeros_like(like, detail::placed(at...));
}
// Returns ones_like(like) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor ones_like(const Tensor& like, const P&... at) {
  return ones_like(like, detail::placed(at...));
}
// Returns scalar(value) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor scalar(Number value, const P&... at) {
  return scalar(value, detail::placed(at...));
}
// Returns tensor(values) of this dtype, on this device, or both.
template <detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor tensor(const NestedNumbers& values, const P&... at) {
  return tensor(values, detail::placed(at...));
}
// Returns the values as a tensor (n) of this dtype, on this device, or both.
template <class T, detail::Placing... P>
  requires(sizeof...(P) > 0)
Tensor tensor(const std::vector<T>& values, const P&... at) {
  return tensor(values, values.size(), detail::placed(at...));
}

}  // namespace tenon
