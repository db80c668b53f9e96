// Normalization of groups of channels, of each channel of each image, and by root mean square. The
// result has the shape and dtype of the input, which is floating; parameters have its dtype or,
// where it is a half type, may be f32. Calls throw a ShapeError or DTypeError for an input that
// does not fit.
#pragma once

#include <optional>

#include <tenon/modules/module.h>

namespace tenon::nn {

struct GroupNormOptions {
  double eps = 1e-5;  // added to the variance; finite and at least 0
  // Whether to learn a weight, which starts at 1, and a bias, which starts at 0, for each channel.
  bool affine = true;
  TensorOptions tensor = {};  // dtype and device of the parameters
};

// Returns x of shape (N, C) or (N, C, …), C = num_channels, with each of `num_groups` groups of
// channels of each example normalized by its mean and variance, times the weight plus the bias of
// the channel (Wu and He, arXiv:1803.08494). The constructor throws a ValueError for num_groups
// below 1, a num_channels that is negative or no multiple of it, and an `eps` outside its range.
struct TENON_API GroupNorm final : Module<GroupNorm> {
  GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options = {});
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  int64_t num_groups, num_channels;
  GroupNormOptions options;
  Parameter weight, bias;  // (num_channels); undefined unless options.affine
};

struct InstanceNormOptions {
  double eps = 1e-5;      // added to the variance; finite and at least 0
  double momentum = 0.1;  // the weight of a new batch in the running statistics, in [0, 1]
  // Whether to learn a weight, which starts at 1, and a bias, which starts at 0, for each channel.
  bool affine = false;
  // Whether to keep running statistics and to normalize with them in eval mode.
  bool track_running_stats = false;
  TensorOptions tensor = {};  // dtype and device of parameters and running statistics
};

// The part that all instance normalizations have. They normalize each channel of each image by its
// mean and variance, or in eval mode by the running statistics if they keep them, and then apply
// the channel's weight and bias (Ulyanov et al., arXiv:1607.08022). Constructors throw a ValueError
// for negative num_features and for an option outside its range.
struct TENON_API InstanceNormState {
  // Makes the parameters and running statistics for `num_features` channels.
  InstanceNormState(int64_t num_features, const InstanceNormOptions& options);

  int64_t num_features;
  InstanceNormOptions options;
  Parameter weight, bias;            // (num_features); undefined unless options.affine
  Buffer running_mean, running_var;  // (num_features); undefined unless they are tracked
  bool training = true;

 protected:
  // Returns x, which has to have `dims` dimensions, normalized; errors begin with `layer`.
  Tensor normalize(const Tensor& x, int64_t dims, const char* layer);
  void visit(FieldVisitor& v);
  std::string repr_text() const;
};

// Returns x of shape (N, C, L), C = num_features, normalized.
struct TENON_API InstanceNorm1d final : Module<InstanceNorm1d>, InstanceNormState {
  InstanceNorm1d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormState(num_features, options) {}
  Tensor forward(const Tensor& x) { return normalize(x, 3, "InstanceNorm1d"); }
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Returns x of shape (N, C, H, W), C = num_features, normalized.
struct TENON_API InstanceNorm2d final : Module<InstanceNorm2d>, InstanceNormState {
  InstanceNorm2d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormState(num_features, options) {}
  Tensor forward(const Tensor& x) { return normalize(x, 4, "InstanceNorm2d"); }
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Returns x of shape (N, C, D, H, W), C = num_features, normalized.
struct TENON_API InstanceNorm3d final : Module<InstanceNorm3d>, InstanceNormState {
  InstanceNorm3d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormState(num_features, options) {}
  Tensor forward(const Tensor& x) { return normalize(x, 5, "InstanceNorm3d"); }
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

struct RMSNormOptions {
  // Added to the mean square; finite and at least 0. Without it, it is the distance from 1 to the
  // next number of the dtype in which it computes, f32 for half types.
  std::optional<double> eps = {};
  bool elementwise_affine = true;  // whether to learn a weight, which starts at 1
  TensorOptions tensor = {};       // dtype and device of the parameter
};

// Returns x of shape (…, normalized_shape), divided by the root of its mean square over the
// dimensions of normalized_shape and multiplied by the weight (Zhang and Sennrich,
// arXiv:1910.07467). The constructor throws a ValueError for a negative size or an `eps` outside
// its range.
struct TENON_API RMSNorm final : Module<RMSNorm> {
  RMSNorm(const Shape& normalized_shape, const RMSNormOptions& options = {});
  // Normalizes over the last dimension alone, which has this size.
  RMSNorm(int64_t size, const RMSNormOptions& options = {}) : RMSNorm(Shape{size}, options) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  Shape normalized_shape;
  RMSNormOptions options;
  Parameter weight;  // (normalized_shape); undefined unless options.elementwise_affine
};

// Returns x / (k + alpha * mean of x² over `size` neighboring channels)^beta for x of shape
// (N, C, …) with at least three dimensions (Krizhevsky et al., 2012). A call throws the errors of
// tenon::local_response_norm, also for a `size` that is not positive.
struct TENON_API LocalResponseNorm final : Module<LocalResponseNorm> {
  LocalResponseNorm(int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1)
      : size(size), alpha(alpha), beta(beta), k(k) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  int64_t size;
  double alpha, beta, k;
};

}  // namespace tenon::nn
