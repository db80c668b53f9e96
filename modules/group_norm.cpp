#include <tenon/core/base/module_path.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/modules/group_norm.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

namespace {

void require_channels_of(const Tensor& x, int64_t channels, const char* layer, const char* option) {
  if (x.dim() >= 2 && x.size(1) == channels) return;
  throw ShapeError(fmt::format("{}: was made for {}={} channels, got an input of shape {}{}", layer,
                               option, channels, x.shape(), path_suffix()));
}

}  // namespace

GroupNorm::GroupNorm(int64_t groups, int64_t channels, const GroupNormOptions& o)
    : num_groups(groups), num_channels(channels), options(o) {
  require(groups >= 1, "GroupNorm", "num_groups", static_cast<double>(groups), "at least 1");
  require(channels >= 0, "GroupNorm", "num_channels", static_cast<double>(channels), "at least 0");
  require(channels % groups == 0, "GroupNorm", "num_channels", static_cast<double>(channels),
          fmt::format("a multiple of num_groups, {}", groups).c_str());
  require_not_negative(o.eps, "GroupNorm", "eps");
  if (!o.affine) return;
  weight = Parameter(ones({channels}, o.tensor));
  bias = Parameter(zeros({channels}, o.tensor));
}

Tensor GroupNorm::forward(const Tensor& x) const {
  require_channels_of(x, num_channels, "GroupNorm", "num_channels");
  return group_norm(x, num_groups, weight, bias, options.eps);
}

void GroupNorm::fields(FieldVisitor& v) { v("weight", weight)("bias", bias); }

std::string GroupNorm::extra_repr() const {
  return fmt::format("{}, {}, eps={}, affine={}", num_groups, num_channels, repr(options.eps),
                     repr(options.affine));
}

InstanceNormState::InstanceNormState(int64_t n, const InstanceNormOptions& o)
    : num_features(n), options(o) {
  require(n >= 0, "InstanceNorm", "num_features", static_cast<double>(n), "at least 0");
  require_not_negative(o.eps, "InstanceNorm", "eps");
  require(o.momentum >= 0 && o.momentum <= 1, "InstanceNorm", "momentum", o.momentum,
          "from 0 to 1");
  if (o.affine) {
    weight = Parameter(ones({n}, o.tensor));
    bias = Parameter(zeros({n}, o.tensor));
  }
  if (o.track_running_stats) {
    running_mean = zeros({n}, o.tensor);
    running_var = ones({n}, o.tensor);
  }
}

Tensor InstanceNormState::normalize(const Tensor& x, int64_t dims, const char* layer) {
  if (x.dim() != dims)
    throw ShapeError(fmt::format("{}: expected an input of {} dimensions, got one of shape {}",
                                 layer, dims, x.shape()));
  require_channels_of(x, num_features, layer, "num_features");
  return instance_norm(x, running_mean, running_var, weight, bias,
                       training || !running_mean.defined(), options.momentum, options.eps);
}

void InstanceNormState::visit(FieldVisitor& v) {
  v("weight", weight)("bias", bias)("running_mean", running_mean)("running_var", running_var);
  v("training", training);
}

std::string InstanceNormState::repr_text() const {
  return fmt::format("{}, eps={}, momentum={}, affine={}, track_running_stats={}", num_features,
                     repr(options.eps), repr(options.momentum), repr(options.affine),
                     repr(options.track_running_stats));
}

RMSNorm::RMSNorm(const Shape& shape, const RMSNormOptions& o)
    : normalized_shape(shape), options(o) {
  for (int64_t size : shape)
    require(size >= 0, "RMSNorm", "a size in normalized_shape", static_cast<double>(size),
            "at least 0");
  if (o.eps) require_not_negative(*o.eps, "RMSNorm", "eps");
  if (o.elementwise_affine) weight = Parameter(ones(shape, o.tensor));
}

Tensor RMSNorm::forward(const Tensor& x) const {
  return rms_norm(x, normalized_shape, weight, options.eps);
}

void RMSNorm::fields(FieldVisitor& v) { v("weight", weight); }

std::string RMSNorm::extra_repr() const {
  return fmt::format("{}, eps={}, elementwise_affine={}", normalized_shape,
                     options.eps ? repr(*options.eps) : "None", repr(options.elementwise_affine));
}

Tensor LocalResponseNorm::forward(const Tensor& x) const {
  return local_response_norm(x, size, alpha, beta, k);
}

std::string LocalResponseNorm::extra_repr() const {
  return fmt::format("{}, alpha={}, beta={}, k={}", size, repr(alpha), repr(beta), repr(k));
}

}  // namespace tenon::nn
