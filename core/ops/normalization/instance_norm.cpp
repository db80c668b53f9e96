// instance_norm (core/ops/normalization.h).
#include <algorithm>

#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/normalization/channels.h>
#include <tenon/core/ops/normalization/fused.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

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

Tensor instance_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                     const Tensor& weight, const Tensor& bias, bool use_input_stats,
                     double momentum, double eps) try {
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
  if (!running_mean.defined() || !instances) {
    // Half inputs stay what they are: instance_norm has no rule of its own.
    const AutocastOff as_they_are;
    return run_group_norm(x, std::max<int64_t>(1, shape[1]), weight, bias, eps);
  }
  const bool half = is_half(dtype_of(x));
  const Tensor y =
      with_running_statistics(half ? x.to(f32) : x, running_mean, running_var, momentum, eps);
  return half ? scale_channels(y, wide(weight), wide(bias)).to(dtype_of(x))
              : scale_channels(y, weight, bias);
} catch (const Error&) {
  rethrow_in("instance_norm");
}

}  // namespace tenon
