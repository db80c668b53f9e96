#include <algorithm>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/modules/sync_batch_norm.h>

namespace tenon::nn {

namespace detail {

namespace {

// (C) as it broadcasts to x (N, C, …), in the dtype of the statistics, on the device of x.
Tensor by_channel(const Tensor& t, const Tensor& x) {
  Shape shape(std::vector<int64_t>(static_cast<size_t>(x.dim()), 1));
  shape[1] = t.size(0);
  return t.reshape(shape).to(x.device());
}

// The sums over all parts of f(x), (N, C, …), for each channel, on the device of the first part.
template <class F>
Tensor sum_of_all(const std::vector<Tensor>& parts, F f) {
  Tensor total;
  for (const Tensor& x : parts) {
    Shape dims;
    for (int64_t d = 0; d < x.dim(); ++d)
      if (d != 1) dims.push_back(d);
    const Tensor own = sum(f(x), dims).to(parts[0].device());
    total = total.defined() ? total + own : own;
  }
  return total;
}

// Sets a running statistic to (1 - momentum) * itself + momentum * `value`.
void follow(const Tensor& running, const Tensor& value, double momentum) {
  if (!running.defined()) return;
  const NoGrad guard;
  Tensor(running).copy_(running * (1 - momentum) + value.to(running.dtype()) * momentum);
}

// The parts, each normalized by the mean and the variance of all. Runs in the first part, whose
// device has the running statistics.
std::vector<Tensor> normalized(const std::vector<Tensor>& parts, const BatchNormState& layer,
                               double momentum) {
  int64_t elements = 0;
  for (const Tensor& x : parts) elements += x.numel() / std::max<int64_t>(x.size(1), 1);
  if (elements < 2)
    throw ValueError(fmt::format(
        "SyncBatchNorm: training needs at least two values for each channel, and all parts of the "
        "batch have {}{}",
        elements, path_suffix()));
  const auto count = static_cast<double>(elements);
  const Tensor mean = sum_of_all(parts, [](const Tensor& x) { return x; }) / count;
  std::vector<Tensor> centered;
  for (const Tensor& x : parts) centered.push_back(x - by_channel(mean, x));
  const Tensor var = sum_of_all(centered, [](const Tensor& x) { return square(x); }) / count;
  follow(layer.running_mean, mean.detach(), momentum);
  follow(layer.running_var, var.detach() * (count / (count - 1)), momentum);
  const Tensor scale = rsqrt(var + layer.options.eps);
  for (Tensor& x : centered) x = x * by_channel(scale, x);
  return centered;
}

}  // namespace

Tensor normalize_together(Lockstep& all, const BatchNormState& layer, const Tensor& x,
                          double momentum) {
  if (!is_floating_point(x.dtype()))
    throw DTypeError(fmt::format("SyncBatchNorm: the input is {}, but must be floating{}",
                                 x.dtype(), path_suffix()));
  if (all.is_inside_a_checkpoint())
    throw AutogradError(fmt::format(
        "SyncBatchNorm: the parts of DataParallel compute their statistics together, which "
        "checkpoint() cannot do again in the backward pass; call it outside of "
        "checkpoint(){}",
        path_suffix()));
  // Sums of half types would lose what is small.
  const bool half = x.dtype() != f64 && x.dtype() != f32;
  Tensor y = all.exchange(&layer, half ? x.to(f32) : x, [&](const std::vector<Tensor>& parts) {
    return normalized(parts, layer, momentum);
  });
  if (layer.weight.defined()) y = y * by_channel(layer.weight, y);
  if (layer.bias.defined()) y = y + by_channel(layer.bias, y);
  return y.to(x.dtype());
}

BatchNormState* batch_norm_of(ModuleRef module) {
  if (auto* norm = module.as<BatchNorm1d>()) return norm;
  if (auto* norm = module.as<BatchNorm2d>()) return norm;
  if (auto* norm = module.as<BatchNorm3d>()) return norm;
  return module.as<SyncBatchNorm>();
}

}  // namespace detail

Tensor SyncBatchNorm::forward(const Tensor& x) {
  if (x.dim() < 2)
    throw ShapeError(fmt::format(
        "SyncBatchNorm: expected an input of shape (N, C) or (N, C, …), got one of shape {}{}",
        x.shape(), path_suffix()));
  return normalize(x, "SyncBatchNorm");
}

std::string SyncBatchNorm::extra_repr() const {
  const std::string text = repr_text();
  return text.substr(0, text.rfind(", sync=True"));  // which is what the type says
}

void SyncBatchNorm::convert_sync_batchnorm(ModuleRef model) {
  for (auto& [name, module] : nn::named_modules(model))
    if (BatchNormState* norm = detail::batch_norm_of(module)) norm->sync = true;
}

}  // namespace tenon::nn
