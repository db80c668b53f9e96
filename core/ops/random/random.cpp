// Random values, in new tensors and in existing ones (core/factories.h).
#include <cmath>
#include <limits>

#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/creation/factory.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/random.h>

namespace tenon {

namespace {

// | `uniform` | -> y | ; seed:i, offset:i, low, high | floats; [low, high). Philox as
//   `plugins/sdk/philox.h` fixes it. f16 and bf16: the values of f32 rounded, and low where that
//   reaches high |
const Op uniform_op{{.name = "uniform", .scalars = 4, .draws = true}};
// | `normal` | -> y | ; seed:i, offset:i, mean, std | floats; as `plugins/sdk/philox.h` fixes it |
const Op normal_op{{.name = "normal", .scalars = 4, .draws = true}};
// | `randint` | -> y | ; seed:i, offset:i, low:i, high:i | i64, i32; [low, high) |
const Op randint_op{{.name = "randint", .scalars = 4, .draws = true}};

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

void require_floating(const char* op, const char* what, DType dtype) {
  if (!is_floating_point(dtype))
    throw DTypeError(fmt::format("{}: the {} must be floating, found {}", op, what, dtype));
}

void require_random_target(const char* op, const Tensor& target) {
  require_tensor(op, target);
  require_mutable(op, target);
  require_floating(op, "tensor", target.dtype());
}

}  // namespace

Tensor rand(const Shape& shape, const TensorOptions& options) {
  require_floating("rand", "dtype", dtype_of(options));
  Tensor x = new_tensor("rand", shape, options);
  x.uniform_();
  return finished(x, options);
}

Tensor randn(const Shape& shape, const TensorOptions& options) {
  require_floating("randn", "dtype", dtype_of(options));
  Tensor x = new_tensor("randn", shape, options);
  x.normal_();
  return finished(x, options);
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, const TensorOptions& given) {
  if (low >= high)
    throw ValueError(fmt::format("randint: needs low < high, found [{}, {})", low, high));
  const DType dtype = given.dtype.value_or(DType::i64);
  if (is_integer(dtype) && !(holds(dtype, low) && holds(dtype, high - 1)))
    throw ValueError(
        fmt::format("randint: low {} and high {} do not fit into {}; give a dtype "
                    "that holds all numbers between them",
                    low, high, dtype));
  TensorOptions options = given;
  // Kernels make i64 and i32; other types are converted.
  options.dtype = dtype == DType::i32 ? DType::i32 : DType::i64;
  Tensor x = new_tensor("randint", shape, options);
  fill_random(randint_op, x, Scalar::integer(low), Scalar::integer(high));
  return finished(x.to(dtype), options);
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
