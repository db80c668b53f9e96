#include <tenon/core/autograd/autograd.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/modules/norm.h>
#include <tenon/modules/repr.h>
#include <tenon/modules/sync_batch_norm.h>

namespace tenon::nn {

BatchNormState::BatchNormState(int64_t n, const BatchNormOptions& o) : num_features(n), options(o) {
  require(n >= 0, "BatchNorm", "num_features", static_cast<double>(n), "at least 0");
  require_not_negative(o.eps, "BatchNorm", "eps");
  if (o.momentum)
    require(*o.momentum >= 0 && *o.momentum <= 1, "BatchNorm", "momentum", *o.momentum,
            "from 0 to 1, or absent");
  if (o.affine) {
    weight = Parameter(ones({n}, o.tensor));
    bias = Parameter(zeros({n}, o.tensor));
  }
  if (o.track_running_stats) {
    running_mean = zeros({n}, o.tensor);
    running_var = ones({n}, o.tensor);
    num_batches_tracked = zeros({}, {.dtype = i64, .device = o.tensor.device});
  }
}

Tensor BatchNormState::normalize(const Tensor& x, const char* layer) {
  if (x.size(1) != num_features)
    throw ShapeError(fmt::format(
        "{}: was made for num_features={} channels, got an input of shape {}, which has {}{}",
        layer, num_features, x.shape(), x.size(1), path_suffix()));
  double momentum = options.momentum.value_or(0);
  // Under DataParallel a batch is counted once, on the device that owns the counter.
  if (training && num_batches_tracked.defined()) {
    NoGrad guard;
    if (x.device() == num_batches_tracked.device())
      num_batches_tracked.copy_(num_batches_tracked + 1);
    if (!options.momentum)
      momentum = 1.0 / static_cast<double>(num_batches_tracked.item<int64_t>());
  }
  if (auto* all = sync && training ? detail::Lockstep::current() : nullptr)
    return detail::normalize_together(*all, *this, x, momentum);
  return batch_norm(x, running_mean, running_var, weight, bias, training || !running_mean.defined(),
                    momentum, options.eps);
}

void BatchNormState::visit(FieldVisitor& v) {
  v("weight", weight)("bias", bias)("running_mean", running_mean)("running_var", running_var);
  v("num_batches_tracked", num_batches_tracked)("training", training);
}

std::string BatchNormState::repr_text() const {
  return fmt::format("{}, eps={}, momentum={}, affine={}, track_running_stats={}{}", num_features,
                     repr(options.eps), options.momentum ? repr(*options.momentum) : "None",
                     repr(options.affine), repr(options.track_running_stats),
                     sync ? ", sync=True" : "");
}

namespace {

void require_rank(const Tensor& x, int64_t low, int64_t high, const char* layer,
                  const char* wanted) {
  if (x.dim() >= low && x.dim() <= high) return;
  throw ShapeError(fmt::format("{}: expected an input of shape {}, got one of shape {}", layer,
                               wanted, x.shape()));
}

}  // namespace

Tensor BatchNorm1d::forward(const Tensor& x) {
  require_rank(x, 2, 3, "BatchNorm1d", "(N, C) or (N, C, L)");
  return normalize(x, "BatchNorm1d");
}

Tensor BatchNorm2d::forward(const Tensor& x) {
  require_rank(x, 4, 4, "BatchNorm2d", "(N, C, H, W)");
  return normalize(x, "BatchNorm2d");
}

Tensor BatchNorm3d::forward(const Tensor& x) {
  require_rank(x, 5, 5, "BatchNorm3d", "(N, C, D, H, W)");
  return normalize(x, "BatchNorm3d");
}

LayerNorm::LayerNorm(const Shape& shape, const LayerNormOptions& o)
    : normalized_shape(shape), options(o) {
  for (int64_t size : shape)
    require(size >= 0, "LayerNorm", "a size in normalized_shape", static_cast<double>(size),
            "at least 0");
  require_not_negative(o.eps, "LayerNorm", "eps");
  if (!o.elementwise_affine) return;
  weight = Parameter(ones(shape, o.tensor));
  if (o.bias) bias = Parameter(zeros(shape, o.tensor));
}

Tensor LayerNorm::forward(const Tensor& x) const {
  return layer_norm(x, normalized_shape, weight, bias, options.eps);
}

void LayerNorm::fields(FieldVisitor& v) { v("weight", weight)("bias", bias); }

std::string LayerNorm::extra_repr() const {
  return fmt::format("{}, eps={}, elementwise_affine={}", normalized_shape, repr(options.eps),
                     repr(options.elementwise_affine));
}

}  // namespace tenon::nn
