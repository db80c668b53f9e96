// New tensors (declared in core/tensor.h), and random values into existing ones.
#include <cmath>
#include <limits>
#include <string_view>

#include <tenon/core/base/module_path.h>
#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/random.h>

namespace tenon {

namespace {

const Op arange_op{{.name = "arange"}};
const Op uniform_op{{.name = "uniform"}};
const Op normal_op{{.name = "normal"}};
const Op randint_op{{.name = "randint"}};

Tensor allocate(std::string_view op, const Shape& shape, const TensorOptions& options) {
  require_addressable(op, shape);
  try {
    Tensor x =
        allocate_tensor(shape, options.dtype, options.device ? *options.device : default_device());
    impl_of(x).storage->written.store(0, std::memory_order_relaxed);
    return x;
  } catch (const OutOfMemoryError& e) {
    throw OutOfMemoryError(fmt::format("{} of shape {}{}: {}", op, shape, path_suffix(), e.what()));
  }
}

Tensor finish(Tensor x, const TensorOptions& options) {
  if (options.requires_grad) x.requires_grad_();
  return x;
}

TensorOptions options_like(const Tensor& like, const char* op) {
  require_tensor(op, like);
  return {.dtype = dtype_of(like), .device = device_read_on(like)};
}

// Random operators write contiguous tensors; other targets get a copy of one.
void fill_random(const Op& op, Tensor& target, Scalar a, Scalar b) {
  if (!impl_of(target).contiguous) {
    Tensor values = allocate_tensor(target.shape(), target.dtype(), target.device());
    fill_random(op, values, a, b);
    target.copy_(values);
    return;
  }
  RandomState state = next_random();
  Scalar scalars[] = {Scalar::integer(static_cast<int64_t>(state.seed)),
                      Scalar::integer(static_cast<int64_t>(state.offset)), a, b};
  run_into(target, {op, {}, no_attrs, scalars});
}

void require_random_target(const char* op, const Tensor& target) {
  require_tensor(op, target);
  require_mutable(op, target);
  if (!is_floating_point(target.dtype()))
    throw DTypeError(fmt::format("{}: needs a floating type, found {}", op, target.dtype()));
}

}  // namespace

Tensor empty(const Shape& shape, const TensorOptions& options) {
  Tensor x = allocate("empty", shape, options);
  impl_of(x).storage->forget_failed();
  return finish(x, options);
}

Tensor full(const Shape& shape, Number value, const TensorOptions& options) {
  Tensor x = allocate("full", shape, options);
  x.fill_(value);
  return finish(x, options);
}

Tensor arange(double start, double end, double step, const TensorOptions& options) {
  if (step == 0 || !std::isfinite(step) || !std::isfinite(start) || !std::isfinite(end))
    throw ValueError(
        fmt::format("arange: start and end must be finite and step a finite number other than 0; "
                    "found {}, {}, {}",
                    number_text(start), number_text(end), number_text(step)));
  if ((end - start) / step < 0)
    throw ValueError(fmt::format("arange: a step of {} never leads from {} to {}",
                                 number_text(step), number_text(start), number_text(end)));
  if (options.dtype == DType::boolean) throw DTypeError("arange: makes numbers, not bool");
  double count = std::ceil((end - start) / step);
  if (count > 1e15)
    throw ValueError(
        fmt::format("arange: from {} to {} in steps of {} there are {} elements, more than can be "
                    "addressed",
                    number_text(start), number_text(end), number_text(step), number_text(count)));
  Tensor x = allocate("arange", {static_cast<int64_t>(count)}, options);
  Scalar scalars[] = {scalar_for(options.dtype, start), scalar_for(options.dtype, step)};
  run_into(x, {arange_op, {}, no_attrs, scalars});
  return finish(x, options);
}

Tensor rand(const Shape& shape, const TensorOptions& options) {
  Tensor x = allocate("rand", shape, options);
  x.uniform_();
  return finish(x, options);
}

Tensor randn(const Shape& shape, const TensorOptions& options) {
  Tensor x = allocate("randn", shape, options);
  x.normal_();
  return finish(x, options);
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, TensorOptions options) {
  if (low >= high)
    throw ValueError(fmt::format("randint: needs low < high, found [{}, {})", low, high));
  if (options.dtype != DType::i64 && options.dtype != DType::i32) {
    DType wanted = options.dtype;
    options.dtype = DType::i64;
    bool requires_grad = std::exchange(options.requires_grad, false);
    Tensor x = randint(low, high, shape, options).to(wanted);
    return requires_grad ? x.requires_grad_() : x;
  }
  int64_t max = options.dtype == DType::i32 ? std::numeric_limits<int32_t>::max()
                                            : std::numeric_limits<int64_t>::max();
  if (high - 1 > max || low < -max - 1)
    throw ValueError(
        fmt::format("randint: [{}, {}) does not fit into {}", low, high, options.dtype));
  Tensor x = allocate("randint", shape, options);
  fill_random(randint_op, x, Scalar::integer(low), Scalar::integer(high));
  return finish(x, options);
}

Tensor empty_like(const Tensor& like) {
  return empty(like.shape(), options_like(like, "empty_like"));
}
Tensor zeros_like(const Tensor& like) {
  return full(like.shape(), 0, options_like(like, "zeros_like"));
}
Tensor ones_like(const Tensor& like) {
  return full(like.shape(), 1, options_like(like, "ones_like"));
}

void detail::require_values(size_t count, const Shape& shape) {
  require_addressable("tensor", shape);
  if (count != static_cast<size_t>(shape.numel()))
    throw ShapeError(fmt::format("tensor: {} values given for shape {}, which has {} elements",
                                 count, shape, shape.numel()));
}

Tensor from_host(const void* values, DType dtype, const Shape& shape,
                 const TensorOptions& options) {
  require_addressable("from_host", shape);
  if (!values && shape.numel() > 0)
    throw ValueError(fmt::format("from_host: null pointer given for shape {}", shape));
  Tensor x =
      tensor_from_host(values, dtype, shape, options.device ? *options.device : default_device());
  return finish(x.to(options.dtype), options);
}

Tensor& Tensor::uniform_(double low, double high) {
  require_random_target("uniform_", *this);
  // The kernels compute high - low in the tensor's type.
  const double most = dtype() == DType::f64 ? std::numeric_limits<double>::max()
                                            : std::numeric_limits<float>::max();
  if (!(low <= high && std::abs(low) <= most && std::abs(high) <= most && high - low <= most))
    throw ValueError(
        fmt::format("uniform_: needs low <= high, both and their difference finite in {}; found "
                    "[{}, {})",
                    dtype(), number_text(low), number_text(high)));
  fill_random(uniform_op, *this, low, high);
  return *this;
}

Tensor& Tensor::normal_(double mean, double std) {
  require_random_target("normal_", *this);
  if (!(std >= 0) || std::isinf(std) || !std::isfinite(mean))
    throw ValueError(
        fmt::format("normal_: needs a finite mean, and a standard deviation that must not be "
                    "negative or infinite; found {} and {}",
                    number_text(mean), number_text(std)));
  fill_random(normal_op, *this, mean, std);
  return *this;
}

}  // namespace tenon
