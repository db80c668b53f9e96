// Normalisation of groups of channels, of each channel of each image, and by root mean square.
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

// Normalises each of `num_groups` groups of channels of an input of shape (N, C) or (N, C, …),
// C = num_channels (Wu and He, arXiv:1803.08494). The constructor throws a ValueError for a
// negative size, a bad `eps`, or unless num_groups divides num_channels; a call throws a ShapeError
// for another number of channels.
struct TENON_API GroupNorm final : Module<GroupNorm> {
  GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options = {});
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  int64_t num_groups, num_channels;
  GroupNormOptions options;
  Parameter weight, bias;
};

struct InstanceNormOptions {
  double eps = 1e-5;      // added to the variance; finite and at least 0
  double momentum = 0.1;  // the weight of a new batch in the running statistics, in [0, 1]
  bool affine = false;    // whether to learn a weight and a bias for each channel
  // Whether to keep running statistics and to normalise with them in eval mode.
  bool track_running_stats = false;
  TensorOptions tensor = {};  // dtype and device of parameters and running statistics
};

// What the instance normalisations have in common: they normalise each channel of each image
// (Ulyanov et al., arXiv:1607.08022). Constructors throw a ValueError for an option outside its
// range; a call throws a ShapeError for another number of channels.
struct TENON_API InstanceNormState {
  InstanceNormState(int64_t num_features, const InstanceNormOptions& options);

  int64_t num_features;
  InstanceNormOptions options;
  Parameter weight, bias;
  Buffer running_mean, running_var;
  bool training = true;

 protected:
  Tensor normalise(const Tensor& x, int64_t dims, const char* layer);
  void visit(FieldVisitor& v);
  std::string repr_text() const;
};

// Normalises an input of shape (N, C, L).
struct TENON_API InstanceNorm1d final : Module<InstanceNorm1d>, InstanceNormState {
  InstanceNorm1d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormState(num_features, options) {}
  Tensor forward(const Tensor& x) { return normalise(x, 3, "InstanceNorm1d"); }
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Normalises an input of shape (N, C, H, W).
struct TENON_API InstanceNorm2d final : Module<InstanceNorm2d>, InstanceNormState {
  InstanceNorm2d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormState(num_features, options) {}
  Tensor forward(const Tensor& x) { return normalise(x, 4, "InstanceNorm2d"); }
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Normalises an input of shape (N, C, D, H, W).
struct TENON_API InstanceNorm3d final : Module<InstanceNorm3d>, InstanceNormState {
  InstanceNorm3d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormState(num_features, options) {}
  Tensor forward(const Tensor& x) { return normalise(x, 5, "InstanceNorm3d"); }
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

struct RMSNormOptions {
  std::optional<double> eps = {};  // the distance from 1 to the next number unless it is given
  bool elementwise_affine = true;  // whether to learn a weight, which starts at 1
  TensorOptions tensor = {};       // dtype and device of the parameter
};

// Divides by the root mean square over the last dimensions, which have to be `normalized_shape`
// (Zhang and Sennrich, arXiv:1910.07467). The constructor throws a ValueError for a negative size
// or a bad `eps`; a call throws a ShapeError for another shape.
struct TENON_API RMSNorm final : Module<RMSNorm> {
  RMSNorm(const Shape& normalized_shape, const RMSNormOptions& options = {});
  RMSNorm(int64_t size, const RMSNormOptions& options = {}) : RMSNorm(Shape{size}, options) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  Shape normalized_shape;
  RMSNormOptions options;
  Parameter weight;
};

// Returns x / (k + alpha * mean of x² over `size` neighbouring channels)^beta, as
// tenon::local_response_norm does, with its shapes and errors.
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
