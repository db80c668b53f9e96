// New tensors (declared in core/factories.h).
#include <algorithm>
#include <string_view>

#include <tenon/core/base/module_path.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/layout.h>
#include <tenon/core/ops/creation/factory.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

Tensor new_tensor(const char* op, const Shape& shape, const TensorOptions& options,
                  const Tensor* like) {
  require_addressable(op, shape);
  const MemoryFormat format =
      options.memory_format.value_or(like ? preserve_format : contiguous_format);
  require_rank(op, shape, format);
  try {
    Tensor x = allocate_tensor(shape, dtype_of(options),
                               options.device ? *options.device : default_device());
    impl_of(x).storage->written.store(0, std::memory_order_relaxed);
    if (like && format == preserve_format)
      return make_view(x, shape, preserved_strides(shape, like->strides()), 0);
    if (moves_channels(format)) return make_view(x, shape, strides_in(shape, format), 0);
    return x;
  } catch (const OutOfMemoryError& e) {
    throw OutOfMemoryError(fmt::format("{} of shape {}{}: {}", op, shape, path_suffix(), e.what()));
  }
}

Tensor finished(Tensor x, const TensorOptions& options) {
  if (options.memory_format) x = no_grad([&] { return x.to(*options.memory_format); });
  if (options.requires_grad) x.requires_grad_();
  return x;
}

namespace {

TensorOptions options_like(const Tensor& like, const char* op, TensorOptions options) {
  require_tensor(op, like, "like");
  if (!options.dtype) options.dtype = dtype_of(like);
  if (!options.device) options.device = device_read_on(like);
  return options;
}

Tensor filled(const char* op, const Shape& shape, Number value, const TensorOptions& options,
              const Tensor* like = nullptr) {
  require_held(op, dtype_of(options), value);
  Tensor x = new_tensor(op, shape, options, like);
  x.fill_(value);
  return finished(x, options);
}

Tensor unwritten(const char* op, const Shape& shape, const TensorOptions& options,
                 const Tensor* like = nullptr) {
  Tensor x = new_tensor(op, shape, options, like);
  impl_of(x).storage->forget_failed();
  return finished(x, options);
}

}  // namespace

Tensor empty(const Shape& shape, const TensorOptions& options) {
  return unwritten("empty", shape, options);
}

Tensor full(const Shape& shape, Number value, const TensorOptions& options) {
  return filled("full", shape, value, options);
}
Tensor zeros(const Shape& shape, const TensorOptions& options) {
  return filled("zeros", shape, 0, options);
}
Tensor ones(const Shape& shape, const TensorOptions& options) {
  return filled("ones", shape, 1, options);
}
Tensor scalar(Number value, const TensorOptions& options) {
  return filled("scalar", {}, value, options);
}

Tensor empty_like(const Tensor& like, const TensorOptions& given) {
  const TensorOptions options = options_like(like, "empty_like", given);
  return unwritten("empty_like", like.shape(), options, &like);
}
Tensor zeros_like(const Tensor& like, const TensorOptions& given) {
  const TensorOptions options = options_like(like, "zeros_like", given);
  return filled("zeros_like", like.shape(), 0, options, &like);
}
Tensor ones_like(const Tensor& like, const TensorOptions& given) {
  const TensorOptions options = options_like(like, "ones_like", given);
  return filled("ones_like", like.shape(), 1, options, &like);
}

void detail::require_values(size_t count, const Shape& shape) {
  require_addressable("tensor", shape);
  if (count != static_cast<size_t>(shape.numel()))
    throw ShapeError(fmt::format("tensor: {} values given for shape {}, which has {} elements",
                                 count, shape, shape.numel()));
}

Tensor detail::tensor_of_list(const void* values, DType dtype, const Shape& shape,
                              const TensorOptions& options) {
  if (options.dtype || dtype == DType::f32 || dtype == DType::boolean)
    return from_host(values, dtype, shape, options);
  // Converted here, a list of whole numbers needs no operator.
  std::vector<float> converted(static_cast<size_t>(shape.numel()));
  auto convert = [&]<class T>(const T* from) {
    std::transform(from, from + converted.size(), converted.begin(),
                   [](T value) { return static_cast<float>(value); });
  };
  if (dtype == DType::f64) convert(static_cast<const double*>(values));
  if (dtype == DType::i64) convert(static_cast<const int64_t*>(values));
  if (dtype == DType::i32) convert(static_cast<const int32_t*>(values));
  return from_host(converted.data(), DType::f32, shape, options);
}

Tensor from_host(const void* values, DType dtype, const Shape& shape,
                 const TensorOptions& options) {
  require_addressable("from_host", shape);
  if (!values && shape.numel() > 0)
    throw ValueError(fmt::format("from_host: null pointer given for shape {}", shape));
  const Device device = options.device ? *options.device : default_device();
  // Bytes from elsewhere may have another "true" than 1, which kernels rely on.
  Tensor x = dtype == DType::boolean
                 ? tensor_from_host(values, DType::u8, shape, device).to(DType::boolean)
                 : tensor_from_host(values, dtype, shape, device);
  return finished(options.dtype ? x.to(*options.dtype) : x, options);
}

}  // namespace tenon
