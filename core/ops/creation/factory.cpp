// New tensors (declared in core/tensor.h), and random values into existing ones.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include <tenon/core/base/module_path.h>
#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/layout.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/random.h>

namespace tenon {

namespace {

const Op arange_op{{.name = "arange"}};
const Op uniform_op{{.name = "uniform", .draws = true}};
const Op normal_op{{.name = "normal", .draws = true}};
const Op randint_op{{.name = "randint", .draws = true}};

DType dtype_of(const TensorOptions& options) { return options.dtype.value_or(DType::f32); }

Tensor allocate(const char* op, const Shape& shape, const TensorOptions& options,
                const Tensor* like = nullptr) {
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

Tensor finish(Tensor x, const TensorOptions& options) {
  if (options.memory_format) x = no_grad([&] { return x.to(*options.memory_format); });
  if (options.requires_grad) x.requires_grad_();
  return x;
}

TensorOptions options_like(const Tensor& like, const char* op, TensorOptions options) {
  require_tensor(op, like);
  if (!options.dtype) options.dtype = dtype_of(like);
  if (!options.device) options.device = device_read_on(like);
  return options;
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

void require_floating(const char* op, DType dtype) {
  if (!is_floating_point(dtype))
    throw DTypeError(fmt::format("{}: needs a floating type, found {}", op, dtype));
}

void require_random_target(const char* op, const Tensor& target) {
  require_tensor(op, target);
  require_mutable(op, target);
  require_floating(op, target.dtype());
}

Tensor filled(const char* op, const Shape& shape, Number value, const TensorOptions& options,
              const Tensor* like = nullptr) {
  require_held(op, dtype_of(options), value);
  Tensor x = allocate(op, shape, options, like);
  x.fill_(value);
  return finish(x, options);
}

std::string text_of(Number number) {
  return number.integral ? std::to_string(number.i) : number_text(number.f);
}

// Whether the step leads from `start` to `end`, which may be equal.
bool leads_to(Number start, Number end, Number step) {
  const bool whole = start.integral && end.integral;
  if (whole ? start.i == end.i : start.f == end.f) return true;
  return (step.f > 0) == (whole ? start.i < end.i : start.f < end.f);
}

// Returns how many numbers there are from `start` up to `end`, of which the step leads to it.
int64_t count_of_range(Number start, Number end, Number step) {
  constexpr int64_t most = 1'000'000'000'000'000;
  auto checked = [&](auto count) {
    if (count > most)
      throw ValueError(fmt::format(
          "arange: from {} to {} in steps of {} there are {} elements, more than can be addressed",
          text_of(start), text_of(end), text_of(step), number_text(static_cast<double>(count))));
    return static_cast<int64_t>(count);
  };
  if (!(start.integral && end.integral && step.integral))
    return checked(std::ceil((end.f - start.f) / step.f));
  // The distance of two int64 takes 65 bits.
  __extension__ using Wide = __int128;
  const Wide distance = Wide{end.i} - start.i;
  return checked(distance / step.i + (distance % step.i != 0));
}

}  // namespace

namespace {
Tensor unwritten(const char* op, const Shape& shape, const TensorOptions& options,
                 const Tensor* like = nullptr) {
  Tensor x = allocate(op, shape, options, like);
  impl_of(x).storage->forget_failed();
  return finish(x, options);
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

Tensor arange(Number start, Number end, Number step, const TensorOptions& options) {
  const DType dtype = dtype_of(options);
  if (step.f == 0 || !std::isfinite(step.f) || !std::isfinite(start.f) || !std::isfinite(end.f))
    throw ValueError(
        fmt::format("arange: start and end must be finite and step a finite number other than 0; "
                    "found {}, {}, {}",
                    text_of(start), text_of(end), text_of(step)));
  if (!leads_to(start, end, step))
    throw ValueError(fmt::format("arange: a step of {} never leads from {} to {}", text_of(step),
                                 text_of(start), text_of(end)));
  if (dtype == DType::boolean) throw DTypeError("arange: makes numbers, not bool");
  const int64_t count = count_of_range(start, end, step);
  if (count > 0 && start.integral && end.integral && step.integral) {
    require_held("arange", dtype, start);
    __extension__ using Wide = __int128;  // the last element lies between start and end
    require_held("arange", dtype, static_cast<int64_t>(start.i + Wide{count - 1} * step.i));
  }
  Tensor x = allocate("arange", count, options);
  Scalar scalars[] = {scalar_for(dtype, start), scalar_for(dtype, step)};
  run_into(x, {arange_op, {}, no_attrs, scalars});
  return finish(x, options);
}

Tensor rand(const Shape& shape, const TensorOptions& options) {
  require_floating("rand", dtype_of(options));
  Tensor x = allocate("rand", shape, options);
  x.uniform_();
  return finish(x, options);
}

Tensor randn(const Shape& shape, const TensorOptions& options) {
  require_floating("randn", dtype_of(options));
  Tensor x = allocate("randn", shape, options);
  x.normal_();
  return finish(x, options);
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, const TensorOptions& given) {
  if (low >= high)
    throw ValueError(fmt::format("randint: needs low < high, found [{}, {})", low, high));
  const DType dtype = given.dtype.value_or(DType::i64);
  if (is_integer(dtype) && !(holds(dtype, low) && holds(dtype, high - 1)))
    throw ValueError(fmt::format("randint: [{}, {}) does not fit into {}", low, high, dtype));
  TensorOptions options = given;
  // Kernels make i64 and i32; other types are converted.
  options.dtype = dtype == DType::i32 ? DType::i32 : DType::i64;
  Tensor x = allocate("randint", shape, options);
  fill_random(randint_op, x, Scalar::integer(low), Scalar::integer(high));
  return finish(x.to(dtype), options);
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
  return finish(options.dtype ? x.to(*options.dtype) : x, options);
}

Tensor& Tensor::uniform_(double low, double high) {
  require_random_target("uniform_", *this);
  // The kernels compute high - low in the tensor's type, and those of f16 and bf16 in f32.
  const double widest = dtype() == DType::f64 ? std::numeric_limits<double>::max()
                                              : std::numeric_limits<float>::max(),
               most = dtype() == DType::f16    ? 65504
                      : dtype() == DType::bf16 ? 0x1.fep127
                                               : widest;
  if (!(low <= high && std::abs(low) <= most && std::abs(high) <= most && high - low <= widest))
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
