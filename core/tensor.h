// The tensor: a handle, cheap to copy, to typed strided values on a device.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iosfwd>
#include <limits>
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
#include <tenon/core/memory_format.h>
#include <tenon/core/number.h>
#include <tenon/core/shape.h>
#include <tenon/core/tensor_methods.h>

namespace tenon {

struct TensorImpl;
struct Node;
struct ValuesIndices;
class HookHandle;
namespace detail {
template <class... Indices>
struct Subscripted;
}
TENON_API void retain(TensorImpl*);
TENON_API void release(TensorImpl*);

// Copies of a Tensor share the values. Only the mutators, whose names end in `_`, change values;
// each increments a version that autograd checks. Work is queued: a call returns at once, and
// reading a value waits for it. Names and argument order are PyTorch's. A negative dimension counts
// from the end. A default-constructed tensor is undefined; using it is a ValueError.
class TENON_API Tensor : public TensorMethods {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}  // for the library itself
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  // Assignment makes this handle refer to another tensor; it does not write values.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  // x[0] = y would change nothing, and `if (loss < best)` would only test whether a handle is
  // defined. Compilers show these lines in the error.
  Tensor& operator=(const Tensor&) && = delete;  // to write values, use x[0].copy_(y)
  Tensor& operator=(Number) && = delete;         // to write values, use x[0].fill_(2)
  explicit operator bool() const = delete;       // ask x.defined(), or read x.item()

  // Returns whether this handle refers to a tensor.
  bool defined() const { return static_cast<bool>(impl_); }
  // Returns the type of the elements.
  DType dtype() const;
  // Returns the size of each dimension.
  const Shape& shape() const;
  // Returns how many elements lie between neighbors along each dimension.
  const Strides& strides() const;
  // Returns the size of a dimension. Throws an IndexError if there is no such dimension.
  int64_t size(int64_t dim) const;
  // Returns the number of dimensions, 0 for a scalar.
  int64_t dim() const;
  // Returns the number of elements, 1 for a scalar.
  int64_t numel() const;
  // Returns the device on which the values are.
  Device device() const;
  // Returns whether the elements lie without gaps in row-major order, or in that of `format`; both
  // hold for one channel or planes of one element. Throws a ValueError for preserve_format.
  bool is_contiguous(MemoryFormat format = contiguous_format) const;
  // Returns the format that the strides mean: one of channels if they are not row-major as well.
  MemoryFormat suggest_memory_format() const;
  // Returns how often the values were changed in place; views share it.
  uint64_t version() const;
  // Returns whether both handles name one tensor; two undefined ones do.
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

  // ---- reading values: each waits for the work that computes them ----
  // Waits for the values. Throws the error of the queued operator that should have computed them.
  const Tensor& wait() const;
  // Returns whether wait() would return at once.
  bool is_ready() const;
  // Returns the only element as a T: as a bool it is x != 0, as an integer it is truncated, and as
  // a floating number rounded. Throws a ValueError if there is not exactly one element, or if T
  // does not hold the value, such as NaN or 3e9 as an int.
  template <class T = double>
  T item() const {
    static_assert(std::is_arithmetic_v<T>, "item<T>() reads a number or a bool");
    if constexpr (std::is_same_v<T, bool>)
      return item_bool();
    else if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(item_floating(std::numeric_limits<T>::max()));
    else
      return static_cast<T>(
          item_integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
  // Returns all elements in row-major order, converted to T as to(DType) converts: as bool x != 0,
  // as an integer truncated. Unlike item(), it does not look whether T holds each value: a floating
  // value that an integer T does not hold has no meaning there, and an integer keeps its low bits.
  // Throws an OutOfMemoryError if the host has no room for them.
  template <class T>
  std::vector<T> to_vector() const {
    if constexpr (std::is_same_v<T, bool>) {
      const std::vector<uint8_t> truths = read_all<uint8_t>(DType::boolean);
      return {truths.begin(), truths.end()};
    } else {
      return read_all<T>(DTypeOf<T>::value);
    }
  }
  // Returns where the first element of a contiguous tensor is in the memory of the host, after
  // waiting; it stays valid while the tensor lives and is not changed. Throws a DTypeError if T is
  // not its type, a DeviceError if the host cannot read its device, and a ValueError if it is not
  // contiguous.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(host_data(DTypeOf<T>::value));
  }
  // Writes all elements, in row-major order and converted to `as`, to `destination` on the host.
  void copy_to_host(void* destination, DType as) const;
  // Returns the text that PyTorch prints, "tensor([[1.0000, 2.0000]])"; a long one is summarized.
  std::string str() const;

  // ---- autograd ----
  // Returns whether operators on this tensor are recorded.
  bool requires_grad() const;
  // Sets whether backward() fills grad() of this leaf. Throws a DTypeError if `value` is true
  // and the dtype is not floating, and an AutogradError if an operator made the tensor.
  Tensor& requires_grad_(bool value = true);
  // Returns whether no recorded operator made the tensor.
  bool is_leaf() const;
  // Returns the gradient that backward() added up here, an undefined tensor if there is none.
  Tensor grad() const;
  // Replaces the gradient; an undefined tensor removes it. Throws a ShapeError, a DTypeError or a
  // DeviceError if it does not fit.
  void set_grad(const Tensor& grad);
  struct BackwardOptions {
    // Keeps the graph, which the pass frees otherwise; by default if create_graph is true.
    std::optional<bool> retain_graph = std::nullopt;
    // Records the pass itself, for gradients of higher order.
    bool create_graph = false;
  };
  // Adds d(this)/d(leaf) to every leaf's grad. `gradient` is d(result)/d(this), of this tensor's
  // shape and dtype; undefined it stands for 1, which takes a single element. Throws an
  // AutogradError if nothing was recorded, if the graph is freed already, or if a value that it
  // needs was changed in place.
  void backward(const Tensor& gradient, BackwardOptions options) const;
  void backward() const { backward(Tensor(), BackwardOptions()); }
  void backward(const Tensor& gradient) const { backward(gradient, BackwardOptions()); }
  // Has backward passes call hook(gradient) with the whole gradient of this tensor, before it goes
  // on or is added to grad(); a Tensor that the hook returns replaces it: core/autograd/hooks.h.
  template <class Hook>
  HookHandle register_hook(Hook&& hook) const;
  // Has backward() fill grad() of this tensor, too, although an operator made it. Throws an
  // AutogradError if the tensor requires no gradient.
  void retain_grad() const;
  // Returns a tensor that shares the values and has no history.
  Tensor detach() const;

  // ---- copies, views and shapes: the same as the functions of core/ops/shape.h ----
  Tensor to(Device device, std::optional<DType> dtype = std::nullopt) const;  // then to(*dtype)
  Tensor to(DType dtype) const;
  Tensor to(MemoryFormat format) const;
  Tensor contiguous(MemoryFormat format = contiguous_format) const;
  Tensor clone(MemoryFormat format = preserve_format) const;
  Tensor reshape(const Shape& shape) const;
  Tensor view(const Shape& shape) const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const;
  Tensor transpose(int64_t dim0, int64_t dim1) const;
  // Returns a matrix with its dimensions exchanged; a vector or scalar is returned as it is. Throws
  // a ShapeError for more than two dimensions.
  Tensor t() const;
  Tensor permute(const Shape& dims) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor squeeze(int64_t dim) const;
  Tensor expand(const Shape& shape) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  Tensor slice(int64_t dim, int64_t start, int64_t end, int64_t step = 1) const;
  Tensor select(int64_t dim, int64_t index) const;
  // Returns the slice at `index` along the first dimension, as select(0, index).
  Tensor operator[](int64_t index) const;
  // Returns subscript(*this, indices…), a part to read or to write: core/ops/subscript.h.
  template <class... Indices>
    requires(sizeof...(Indices) > 0)
  typename detail::Subscripted<Indices...>::type operator()(const Indices&... indices) const;
  Tensor squeeze() const;
  Tensor movedim(const Shape& source, const Shape& destination) const;
  Tensor swapaxes(int64_t axis0, int64_t axis1) const;
  Tensor unflatten(int64_t dim, const Shape& sizes) const;
  Tensor broadcast_to(const Shape& shape) const;
  Tensor expand_as(const Tensor& other) const;
  Tensor view_as(const Tensor& other) const;
  Tensor reshape_as(const Tensor& other) const;
  // Returns this tensor converted to the dtype of `other`.
  Tensor type_as(const Tensor& other) const;
  Tensor diagonal(int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1) const;
  // Returns the windows of `size` elements along `dim` that begin every `step` elements, as a view:
  // the dimension counts the windows, and a new last one the elements of a window. Throws a
  // ValueError if size is negative or step not positive, and a ShapeError if size is too large.
  Tensor unfold(int64_t dim, int64_t size, int64_t step) const;
  std::vector<Tensor> unbind(int64_t dim = 0) const;
  std::vector<Tensor> split(int64_t size, int64_t dim = 0) const;
  std::vector<Tensor> split(const Shape& sizes, int64_t dim = 0) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const;
  std::vector<Tensor> tensor_split(int64_t sections, int64_t dim = 0) const;
  Tensor flip(const Shape& dims) const;
  Tensor roll(const Shape& shifts, const Shape& dims = {}) const;
  Tensor rot90(int64_t k = 1, const Shape& dims = {0, 1}) const;
  Tensor tril(int64_t diagonal = 0) const;
  Tensor triu(int64_t diagonal = 0) const;
  Tensor diag(int64_t diagonal = 0) const;
  Tensor diag_embed(int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1) const;
  Tensor trace() const;
  Tensor repeat(const Shape& repeats) const;
  Tensor tile(const Shape& repeats) const;
  Tensor repeat_interleave(int64_t repeats, std::optional<int64_t> dim = std::nullopt) const;
  Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> dim = std::nullopt) const;

  // ---- arithmetic and selection: the same as the functions of core/ops with these names ----
  Tensor sum() const;
  Tensor sum(const Shape& dims, bool keepdim = false) const;
  Tensor mean() const;
  Tensor mean(const Shape& dims, bool keepdim = false) const;
  Tensor prod() const;
  Tensor prod(const Shape& dims, bool keepdim = false) const;
  Tensor amax() const;
  Tensor amax(const Shape& dims, bool keepdim = false) const;
  Tensor amin() const;
  Tensor amin(const Shape& dims, bool keepdim = false) const;
  Tensor var(const Shape& dims = {}, int64_t correction = 1, bool keepdim = false) const;
  Tensor std(const Shape& dims = {}, int64_t correction = 1, bool keepdim = false) const;
  Tensor norm(double p = 2) const;
  Tensor norm(double p, const Shape& dims, bool keepdim = false) const;
  Tensor logsumexp(const Shape& dims, bool keepdim = false) const;
  Tensor any() const;
  Tensor any(const Shape& dims, bool keepdim = false) const;
  Tensor all() const;
  Tensor all(const Shape& dims, bool keepdim = false) const;
  Tensor max() const;
  ValuesIndices max(int64_t dim, bool keepdim = false) const;
  Tensor min() const;
  ValuesIndices min(int64_t dim, bool keepdim = false) const;
  Tensor cumsum(int64_t dim, std::optional<DType> dtype = std::nullopt) const;
  Tensor cumprod(int64_t dim, std::optional<DType> dtype = std::nullopt) const;
  ValuesIndices sort(int64_t dim = -1, bool descending = false, bool stable = false) const;
  Tensor argsort(int64_t dim = -1, bool descending = false, bool stable = false) const;
  ValuesIndices topk(int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true) const;
  Tensor argmax() const;
  Tensor argmax(int64_t dim, bool keepdim = false) const;
  Tensor argmin() const;
  Tensor argmin(int64_t dim, bool keepdim = false) const;
  Tensor matmul(const Tensor& other) const;
  Tensor mm(const Tensor& other) const;
  Tensor bmm(const Tensor& other) const;
  Tensor mv(const Tensor& vector) const;
  Tensor dot(const Tensor& other) const;
  Tensor outer(const Tensor& other) const;
  Tensor index_select(int64_t dim, const Tensor& index) const;
  Tensor gather(int64_t dim, const Tensor& index) const;
  Tensor scatter(int64_t dim, const Tensor& index, const Tensor& src) const;
  Tensor scatter(int64_t dim, const Tensor& index, Number value) const;
  Tensor scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const;
  Tensor index_add(int64_t dim, const Tensor& index, const Tensor& source, Number alpha = 1) const;
  Tensor masked_fill(const Tensor& mask, Number value) const;
  Tensor masked_select(const Tensor& mask) const;
  Tensor take(const Tensor& index) const;
  Tensor nonzero() const;
  Tensor add(const Tensor& other, Number alpha = 1) const;  // this + alpha other
  Tensor add(Number other) const;
  Tensor sub(const Tensor& other, Number alpha = 1) const;  // this - alpha other
  Tensor sub(Number other) const;
  Tensor mul(const Tensor& other) const;
  Tensor mul(Number other) const;
  Tensor div(const Tensor& other) const;
  Tensor div(Number other) const;
  Tensor maximum(const Tensor& other) const;
  Tensor minimum(const Tensor& other) const;
  Tensor eq(const Tensor& other) const;
  Tensor eq(Number other) const;
  Tensor ne(const Tensor& other) const;
  Tensor ne(Number other) const;
  Tensor lt(const Tensor& other) const;
  Tensor lt(Number other) const;
  Tensor le(const Tensor& other) const;
  Tensor le(Number other) const;
  Tensor gt(const Tensor& other) const;
  Tensor gt(Number other) const;
  Tensor ge(const Tensor& other) const;
  Tensor ge(Number other) const;
  Tensor logical_not() const;
  Tensor clamp(std::optional<Number> min, std::optional<Number> max = std::nullopt) const;
  Tensor neg() const;
  Tensor sign() const;
  Tensor floor() const;
  Tensor ceil() const;
  Tensor round() const;
  Tensor reciprocal() const;
  Tensor rsqrt() const;
  Tensor sin() const;
  Tensor cos() const;
  Tensor erf() const;
  Tensor pow(const Tensor& exponent) const;
  Tensor log_softmax(int64_t dim) const;
  Tensor exp() const;
  Tensor log() const;
  Tensor sqrt() const;
  Tensor square() const;
  Tensor abs() const;
  Tensor relu() const;
  Tensor sigmoid() const;
  Tensor tanh() const;
  Tensor pow(Number exponent) const;
  Tensor softmax(int64_t dim) const;

  // ---- mutators: they write values in place, which all views see, and return this tensor ----
  // copy_, fill_ and random values throw an AutogradError where a gradient would be lost.

  // Writes the values of `source`, converted to this dtype and device and broadcast to this shape.
  // Throws a ShapeError if they do not broadcast to it, and a ValueError if elements of this tensor
  // may share memory, as after expand.
  Tensor& copy_(const Tensor& source);
  // Writes `value` to every element. Throws a ValueError if an integer dtype does not hold the
  // value, or if elements share memory.
  Tensor& fill_(Number value);
  // Writes 0 to every element.
  Tensor& zero_() { return fill_(0); }
  // Write this + alpha other, this - alpha other, the product or the quotient; `other` broadcasts.
  // Throw a ShapeError if the result has another shape than this tensor, and a DTypeError if this
  // dtype does not hold its kind of numbers. The change is recorded where a gradient is wanted; an
  // AutogradError is thrown for a leaf that requires one and for a tensor that shares its memory
  // with others (its base, views, what backward() will read).
  Tensor& add_(const Tensor& other, Number alpha = 1);
  Tensor& add_(Number other);
  Tensor& sub_(const Tensor& other, Number alpha = 1);
  Tensor& sub_(Number other);
  Tensor& mul_(const Tensor& other);
  Tensor& mul_(Number other);
  Tensor& div_(const Tensor& other);
  Tensor& div_(Number other);
  // The same: x += y changes the values of x for all who share them; x = x + y makes new ones.
  Tensor& operator+=(const Tensor& other) { return add_(other); }
  Tensor& operator+=(Number other) { return add_(other); }
  Tensor& operator-=(const Tensor& other) { return sub_(other); }
  Tensor& operator-=(Number other) { return sub_(other); }
  Tensor& operator*=(const Tensor& other) { return mul_(other); }
  Tensor& operator*=(Number other) { return mul_(other); }
  Tensor& operator/=(const Tensor& other) { return div_(other); }
  Tensor& operator/=(Number other) { return div_(other); }
  // Calls fn(values) with the elements of a contiguous tensor, row-major, as a std::span<T>, to
  // read and write them on the host: x.write_<float>([](std::span<float> v) { v[0] = 1; }). It
  // waits before for all work that uses the memory; the span ends with the call, during which no
  // other thread may use the tensor. Errors are those of data<T>() and of the other mutators.
  template <class T, class F>
  Tensor& write_(F&& fn);
  // Writes samples of the uniform distribution in [low, high). Throws a DTypeError unless the dtype
  // is floating, and a ValueError unless low <= high and both and their difference are finite.
  Tensor& uniform_(double low = 0, double high = 1);
  // Writes samples of the normal distribution. Throws a DTypeError unless the dtype is floating,
  // and a ValueError unless mean and std are finite and std is not negative.
  Tensor& normal_(double mean = 0, double std = 1);
  // Returns the reference that the handle holds, for the library itself.
  const Ref<TensorImpl>& impl() const { return impl_; }

 private:
  template <class T>
  std::vector<T> read_all(DType dtype) const {
    std::vector<T> values;
    require_room_on_host(sizeof(T));
    try {
      values.resize(static_cast<size_t>(numel()));
    } catch (const std::exception&) {
      refuse_copy_to_host(sizeof(T));
    }
    copy_to_host(values.data(), dtype);
    return values;
  }
  bool item_bool() const;
  // The element as a double, of which the size is at most `largest` unless it is infinite.
  double item_floating(long double largest) const;
  // The element truncated, in [lowest, largest], as the low bits say.
  uint64_t item_integer(int64_t lowest, uint64_t largest) const;
  const void* host_data(DType expected) const;
  void require_room_on_host(size_t bytes_per_element) const;
  [[noreturn]] void refuse_copy_to_host(size_t bytes_per_element) const;

  Ref<TensorImpl> impl_;
};

// Prints str().
TENON_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace tenon

#include <tenon/core/factories.h>  // so that they come with the tensor
