// Tensors in memory of the host: values that the host writes, and memory of the user's own.
#pragma once

#include <functional>
#include <span>
#include <utility>

#include <tenon/core/tensor.h>

namespace tenon {

// A contiguous tensor on cpu:0 with undefined values, and the address to which to write them. No
// queued work uses this memory. `values` is null if there are no elements. Write the values before
// you hand out the tensor, and do not change them afterwards; Tensor::write_ does that.
struct HostTensor {
  Tensor tensor;
  void* values;
};
// Returns a new one of this shape and dtype. Throws a ShapeError if the shape cannot be addressed,
// and an OutOfMemoryError if there is no memory for it.
TENON_API HostTensor make_host_tensor(const Shape& shape, DType dtype);

// Returns `tensor` on cpu:0, contiguous and detached. Waits for its values and throws the error of
// the work that should have computed them.
TENON_API Tensor on_host(const Tensor& tensor);
// Returns the address of the values of a tensor that on_host returned; null if it has no elements.
TENON_API const void* host_values(const Tensor& tensor);

// Is called with the address that was given to from_blob when its memory is not used any more. It
// must not throw; what it throws is logged.
using BlobDeleter = std::function<void(void*)>;

// Returns a tensor on cpu:0 whose values are those at `data`, without a copy: mutators write there,
// and what the program writes there the tensor has. The memory has to stay valid until the last
// tensor that shares it is gone; the thread that drops that one waits for the work that still uses
// the memory, and then calls the deleter, once. Without a deleter, wait() for the results, and drop
// the tensors, before the memory ends. While work is queued that uses the memory, the program must
// not write to it; what it writes does not count in version(), so a backward pass does not notice.
// The values are row-major. Throws a ValueError for a null pointer (unless there are no elements)
// and for an address that is not a multiple of the size of an element (copy the values with
// from_host then), and a ShapeError for a shape that cannot be addressed; the deleter is not called
// then.
TENON_API Tensor from_blob(void* data, const Shape& shape, DType dtype = DType::f32,
                           BlobDeleter deleter = {});
// Returns the same of values at these strides, which count elements. Throws a ValueError for
// negative strides as well.
TENON_API Tensor from_blob(void* data, const Shape& shape, const Strides& strides, DType dtype,
                           BlobDeleter deleter = {});

namespace detail {
// The time in which the host may write to a tensor (Tensor::write_).
class TENON_API HostWrite {
 public:
  HostWrite(const Tensor& tensor, DType dtype);
  ~HostWrite();
  HostWrite(const HostWrite&) = delete;
  HostWrite& operator=(const HostWrite&) = delete;
  void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  Tensor tensor_;
  void* data_;
  size_t size_;
};
}  // namespace detail

// See core/tensor.h.
template <class T, class F>
Tensor& Tensor::write_(F&& fn) {
  const detail::HostWrite write(*this, DTypeOf<T>::value);
  std::forward<F>(fn)(std::span<T>(static_cast<T*>(write.data()), write.size()));
  return *this;
}

}  // namespace tenon
