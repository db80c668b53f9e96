// The tensor: a handle, cheap to copy, to typed strided values on a device.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <tenon/core/api.h>
#include <tenon/core/base/ref.h>
#include <tenon/core/device.h>
#include <tenon/core/dtype.h>
#include <tenon/core/error.h>
#include <tenon/core/number.h>
#include <tenon/core/shape.h>

namespace tenon {

struct TensorImpl;
struct Node;
TENON_API void retain(TensorImpl*);
TENON_API void release(TensorImpl*);

// Copies of a Tensor share the values. Only the mutators, whose names end in `_`, change values;
// each increments a version that autograd checks. Work is queued: a call returns at once, and
// reading a value waits for it. Names and argument order are PyTorch's. A negative dimension counts
// from the end. A default-constructed tensor is undefined; using it is a ValueError.
class TENON_API Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  // Assignment makes this handle refer to another tensor; it does not write values. Therefore a
  // temporary cannot be assigned to. Compilers show these lines in the error.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  // x[0] = y would change nothing, and `if (loss < best)` would only test whether a handle is
  // defined. Compilers show these lines in the error.
  Tensor& operator=(const Tensor&) && = delete;  // to write values, use x[0].copy_(y)
  Tensor& operator=(Number) && = delete;         // to write values, use x[0].fill_(2)
  explicit operator bool() const = delete;       // ask x.defined(), or read x.item()

  bool defined() const { return static_cast<bool>(impl_); }

  DType dtype() const;
  const Shape& shape() const;
  const Strides& strides() const;  // in elements
  int64_t size(int64_t dim) const;
  int64_t dim() const;  // number of dimensions
  int64_t numel() const;
  Device device() const;
  bool is_contiguous() const;
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  // How often the values were changed in place. Views share the count.
  uint64_t version() const;

  // ---- reading values: each waits for the work that computes them ----

  // Blocks until the values are computed. Throws the error of the queued operator that should have
  // computed them.
  const Tensor& wait() const;
  // Returns whether wait() would return at once.
  bool is_ready() const;
  // Returns the only element, converted to T. Throws a ValueError if there is not exactly one.
  template <class T = double>
  T item() const {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(item_double());
    else
      return static_cast<T>(item_int64());
  }
  // Returns all elements in row-major order, converted to T. Throws an OutOfMemoryError if the host
  // has no memory for them.
  template <class T>
  std::vector<T> to_vector() const {
    if constexpr (std::is_same_v<T, bool>) {
      const std::vector<uint8_t> truths = to_vector<uint8_t>();
      return {truths.begin(), truths.end()};
    } else {
      std::vector<T> values;
      require_room_on_host(sizeof(T));
      try {
        values.resize(static_cast<size_t>(numel()));
      } catch (const std::exception&) {
        refuse_copy_to_host(sizeof(T));
      }
      copy_to_host(values.data(), DTypeOf<T>::value);
      return values;
    }
  }
  // Waits, and returns the address of the first element of a contiguous tensor on a host-visible
  // device. Throws a DTypeError if T is not its type. The address is valid while the tensor lives
  // and is not changed.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(host_data(DTypeOf<T>::value));
  }
  // Writes all elements to host memory, in row-major order and converted.
  void copy_to_host(void* destination, DType as) const;
  // Returns PyTorch's text: "tensor([[1.0000, 2.0000]])", with large tensors summarised.
  std::string str() const;

  // ---- autograd ----
  bool requires_grad() const;
  Tensor& requires_grad_(bool value = true);  // only for leaves of a floating dtype
  bool is_leaf() const;
  Tensor grad() const;                // undefined if there is none
  void set_grad(const Tensor& grad);  // ShapeError, DTypeError or DeviceError if it does not fit
  // Adds d(this)/d(leaf) to the grad of every leaf. `gradient` defaults to 1 for a tensor of one
  // element. The graph is freed unless retain_graph is set, whose default is create_graph.
  // create_graph records the backward pass itself, for gradients of higher order.
  struct BackwardOptions {
    std::optional<bool> retain_graph = std::nullopt;
    bool create_graph = false;
  };
  void backward(const Tensor& gradient, BackwardOptions options) const;
  void backward() const { backward(Tensor(), BackwardOptions()); }
  void backward(const Tensor& gradient) const { backward(gradient, BackwardOptions()); }
  Tensor detach() const;  // shares values, has no history

  // ---- moving ----
  Tensor to(Device device) const;  // this tensor itself if it is already there
  Tensor to(DType dtype) const;
  Tensor contiguous() const;
  Tensor clone() const;

  // ---- views and shapes (core/ops/shape.h) ----
  Tensor reshape(Shape shape) const;  // one dimension may be -1; a view if possible
  Tensor view(Shape shape) const;     // ShapeError if that needs a copy
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const;
  Tensor transpose(int64_t a, int64_t b) const;
  Tensor t() const;  // transposes a matrix
  Tensor permute(std::initializer_list<int64_t> dims) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor squeeze(int64_t dim) const;
  Tensor expand(Shape shape) const;  // -1 keeps a dimension
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  Tensor slice(int64_t dim, int64_t start, int64_t end, int64_t step = 1) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor operator[](int64_t index) const { return select(0, index); }

  // ---- arithmetic in method form (core/ops/) ----
  Tensor sum() const;
  Tensor sum(std::initializer_list<int64_t> dims, bool keepdim = false) const;
  Tensor mean() const;
  Tensor mean(std::initializer_list<int64_t> dims, bool keepdim = false) const;
  Tensor argmax(int64_t dim, bool keepdim = false) const;
  Tensor matmul(const Tensor& other) const;
  Tensor exp() const;
  Tensor log() const;
  Tensor sqrt() const;
  Tensor square() const;
  Tensor abs() const;
  Tensor relu() const;
  Tensor sigmoid() const;
  Tensor tanh() const;
  Tensor pow(Number exponent) const;  // an integer tensor to an integer power stays integer
  Tensor softmax(int64_t dim) const;

  // ---- mutators ----
  Tensor& copy_(const Tensor& source);  // converts dtype and device, broadcasts
  Tensor& fill_(Number value);
  Tensor& zero_() { return fill_(0); }
  Tensor& uniform_(double low = 0, double high = 1);
  Tensor& normal_(double mean = 0, double std = 1);

  const Ref<TensorImpl>& impl() const { return impl_; }

 private:
  double item_double() const;
  int64_t item_int64() const;
  const void* host_data(DType expected) const;
  void require_room_on_host(size_t bytes_per_element) const;
  [[noreturn]] void refuse_copy_to_host(size_t bytes_per_element) const;

  Ref<TensorImpl> impl_;
};

TENON_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

struct TensorOptions {
  DType dtype = DType::f32;
  std::optional<Device> device = std::nullopt;  // nullopt means default_device()
  bool requires_grad = false;                   // whether operators record their calls for autograd
};

// ---- factories ----
// They throw a ShapeError for a negative size or a shape with more elements than can be addressed,
// and an OutOfMemoryError if the device has no room for them.

// Returns a tensor whose values were never written.
TENON_API Tensor empty(const Shape& shape, const TensorOptions& options = {});
// Returns a tensor of which every element is `value`.
TENON_API Tensor full(const Shape& shape, Number value, const TensorOptions& options = {});
// Returns a tensor of zeros.
inline Tensor zeros(const Shape& shape, const TensorOptions& options = {}) {
  return full(shape, 0, options);
}
// Returns a tensor of ones.
inline Tensor ones(const Shape& shape, const TensorOptions& options = {}) {
  return full(shape, 1, options);
}
// Returns start, start + step, start + 2 step, … up to but not including `end`, of shape (n).
// Throws a ValueError if a number is not finite, if step is 0 or leads away from `end`, and a
// DTypeError for bool.
TENON_API Tensor arange(double start, double end, double step = 1,
                        const TensorOptions& options = {});
// Returns samples of the uniform distribution in [0, 1). Throws a DTypeError unless options.dtype
// is floating.
TENON_API Tensor rand(const Shape& shape, const TensorOptions& options = {});
// Returns samples of the standard normal distribution. Throws a DTypeError unless options.dtype is
// floating.
TENON_API Tensor randn(const Shape& shape, const TensorOptions& options = {});
// Returns random whole numbers, equally likely, in [low, high). Throws a ValueError unless
// low < high and, for i32 and i64, unless the dtype holds all of them.
TENON_API Tensor randint(int64_t low, int64_t high, const Shape& shape,
                         TensorOptions options = {.dtype = DType::i64});
// Returns a tensor of the shape, dtype and device of `like` whose values were never written.
TENON_API Tensor empty_like(const Tensor& like);
// Returns zeros of the shape, dtype and device of `like`.
TENON_API Tensor zeros_like(const Tensor& like);
// Returns ones of the shape, dtype and device of `like`.
TENON_API Tensor ones_like(const Tensor& like);
// Returns a copy of the row-major values of type `dtype` in host memory, converted to
// options.dtype. Throws a ValueError for a null pointer unless the shape has no elements.
TENON_API Tensor from_host(const void* values, DType dtype, const Shape& shape,
                           const TensorOptions& options);

namespace detail {
// Throws a ShapeError unless the shape has as many elements as there are values.
TENON_API void require_values(size_t count, const Shape& shape);
}  // namespace detail

// Returns a copy of the values, in row-major order, with dtype DTypeOf<T> unless the options say
// otherwise; floating literals give f32. Without a shape the tensor has shape (n). Throws a
// ShapeError unless the shape has as many elements as there are values.
template <class T>
  requires std::is_arithmetic_v<T> && (!std::same_as<T, bool>)
Tensor tensor(std::span<const T> values, const Shape& shape,
              TensorOptions options = {.dtype = DTypeOf<T>::value}) {
  detail::require_values(values.size(), shape);
  return from_host(values.data(), DTypeOf<T>::value, shape, options);
}
template <class T>
  requires std::is_arithmetic_v<T> && (!std::same_as<T, bool>)
Tensor tensor(const std::vector<T>& values, const Shape& shape,
              TensorOptions options = {.dtype = DTypeOf<T>::value}) {
  return tensor(std::span<const T>(values), shape, options);
}
template <class T>
  requires std::is_arithmetic_v<T> && (!std::same_as<T, bool>)
Tensor tensor(const std::vector<T>& values) {
  return tensor(std::span<const T>(values), Shape{static_cast<int64_t>(values.size())});
}
inline Tensor tensor(std::initializer_list<float> values) {
  return tensor(std::span<const float>(values.begin(), values.size()),
                Shape{static_cast<int64_t>(values.size())});
}
inline Tensor tensor(std::initializer_list<float> values, const Shape& shape) {
  return tensor(std::span<const float>(values.begin(), values.size()), shape);
}
// Returns a tensor of shape () with this value.
inline Tensor scalar(Number value, const TensorOptions& options = {}) {
  return full({}, value, options);
}

}  // namespace tenon
