// group_norm and instance_norm (core/ops/normalization.h).
#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/normalization/channels.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// Throws unless x is floating and has at least `rank` dimensions, of which the second is that of
// the channels, and each of the others is undefined or has shape (c).
void require_channels(const char* op, const Tensor& x, size_t rank,
                      std::initializer_list<std::pair<const char*, const Tensor*>> others) {
  require_tensor(op, x);
  const Shape& shape = shape_of(x);
  if (!is_floating_point(dtype_of(x)))
    throw DTypeError(fmt::format("{}: needs a floating input, found {}; {}", op, dtype_of(x),
                                 conversion_to(f32)));
  if (shape.size() < rank)
    throw ShapeError(fmt::format("{}: needs an input {}, found shape {}", op,
                                 rank == 2 ? "(n, c) or (n, c, …)" : "(n, c, …)", shape));
  for (auto& [name, t] : others)
    if (t->defined() && !(shape_of(*t) == Shape{shape[1]}))
      throw ShapeError(
          fmt::format("{}: {} has shape {}, but must be ({},) for an input of shape {}", op, name,
                      shape_of(*t), shape[1], shape));
}

// Normalises rows of neighbouring elements, `rows` of them, by the fused operator.
Tensor normalize_rows(const Tensor& x, int64_t rows, double eps) {
  const Shape& shape = shape_of(x);
  const int64_t size = rows ? shape.numel() / rows : 1;
  return layer_norm(x.reshape({rows, size}), {size}, Tensor(), Tensor(), eps).reshape(shape);
}

// Half types are computed in f32, with weights of either type, and rounded once.
Tensor wide(const Tensor& parameter) {
  return parameter.defined() && is_half(dtype_of(parameter)) ? parameter.to(f32) : parameter;
}

// Each value `n` times, one after the other: (c) becomes (n c). It is updated in place, so it may
// not stay a view, as it would of one value.
Tensor repeated(const Tensor& values, int64_t n) {
  return values.unsqueeze(0).expand({n, values.numel()}).reshape({n * values.numel()}).contiguous();
}

// Statistics of each image separately, and running statistics of the mean of them.
Tensor with_running_statistics(const Tensor& x, const Tensor& running_mean,
                               const Tensor& running_var, double momentum, double eps) {
  const Shape& shape = shape_of(x);
  const int64_t n = shape[0], c = shape[1];
  Shape joined = shape;
  joined[0] = 1, joined[1] = n * c;
  Tensor mean = repeated(running_mean.detach(), n).to(dtype_of(x)),
         var = repeated(running_var.detach(), n).to(dtype_of(x));
  const Tensor y =
      batch_norm(x.reshape(joined), mean, var, Tensor(), Tensor(), true, momentum, eps);
  {
    const NoGrad not_recorded;
    Tensor(running_mean).copy_(tenon::mean(mean.reshape({n, c}), {0}).to(dtype_of(running_mean)));
    Tensor(running_var).copy_(tenon::mean(var.reshape({n, c}), {0}).to(dtype_of(running_var)));
  }
  return y.reshape(shape);
}

}  // namespace

Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                  double eps) {
  if (const Autocasting cast{"group_norm", {&x, &weight, &bias}})
    return group_norm(cast(x), num_groups, cast(weight), cast(bias), eps);
  require_channels("group_norm", x, 2, {{"weight", &weight}, {"bias", &bias}});
  require_not_negative("group_norm", "eps", eps);
  const Shape& shape = shape_of(x);
  if (num_groups < 1 || shape[1] % num_groups)
    throw ValueError(fmt::format(
        "group_norm: the {} channels of an input of shape {} cannot be divided into {} groups",
        shape[1], shape, num_groups));
  if (is_half(dtype_of(x)))
    return group_norm(x.to(f32), num_groups, wide(weight), wide(bias), eps).to(dtype_of(x));
  return scale_channels(normalize_rows(x, shape[0] * num_groups, eps), weight, bias);
}

Tensor instance_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                     const Tensor& weight, const Tensor& bias, bool use_input_stats,
                     double momentum, double eps) {
  require_channels("instance_norm", x, 3,
                   {{"running_mean", &running_mean},
                    {"running_var", &running_var},
                    {"weight", &weight},
                    {"bias", &bias}});
  require_not_negative("instance_norm", "eps", eps);
  if (running_mean.defined() != running_var.defined())
    throw ValueError("instance_norm: running_mean and running_var must both be given, or neither");
  if (!use_input_stats && !running_mean.defined())
    throw ValueError(
        "instance_norm: needs running_mean and running_var where use_input_stats is false");
  const Shape& shape = shape_of(x);
  const int64_t instances = shape[0] * shape[1];
  if (!use_input_stats)
    return batch_norm(x, running_mean, running_var, weight, bias, false, momentum, eps);
  if (instances && shape.numel() / instances < 2)
    throw ValueError(fmt::format(
        "instance_norm: expected more than 1 value in each channel of an image, found an input of "
        "shape {}",
        shape));
  const bool updates = running_mean.defined() && instances, half = is_half(dtype_of(x));
  const Tensor values = half ? x.to(f32) : x;
  const Tensor y = updates
                       ? with_running_statistics(values, running_mean, running_var, momentum, eps)
                       : normalize_rows(values, instances, eps);
  return half ? scale_channels(y, wide(weight), wide(bias)).to(dtype_of(x))
              : scale_channels(y, weight, bias);
}

}  // namespace tenon
