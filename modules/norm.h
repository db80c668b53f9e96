// Normalisation layers.
#pragma once

#include <optional>

#include <tenon/modules/module.h>

namespace tenon::nn {

struct BatchNormOptions {
  double eps = 1e-5;  // added to the variance
  std::optional<double> momentum =
      0.1;  // weight of a new batch in the running statistics; nullopt: their plain average
  bool affine = true;               // learn a weight (starts at 1) and a bias (0) for each channel
  bool track_running_stats = true;  // and use them in eval mode
  TensorOptions tensor = {};
};

// What the batch normalisations share (Ioffe and Szegedy, arXiv:1502.03167).
struct TENON_API BatchNormState {
  BatchNormState(int64_t num_features, const BatchNormOptions& options);

  int64_t num_features;
  BatchNormOptions options;
  Parameter weight, bias;
  Buffer running_mean, running_var;
  Buffer num_batches_tracked;  // i64 scalar
  bool training = true;

 protected:
  Tensor normalise(const Tensor& x);
  void visit(FieldVisitor& v);
  std::string repr_text() const;
};

// x of shape (N, C) or (N, C, L). ShapeError for others.
struct TENON_API BatchNorm1d final : Module<BatchNorm1d>, BatchNormState {
  BatchNorm1d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormState(num_features, options) {}
  Tensor forward(const Tensor& x);
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// x of shape (N, C, H, W). ShapeError for others.
struct TENON_API BatchNorm2d final : Module<BatchNorm2d>, BatchNormState {
  BatchNorm2d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormState(num_features, options) {}
  Tensor forward(const Tensor& x);
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;  // learn a weight (starts at 1) and a bias (0) for each element
  bool bias = true;
  TensorOptions tensor = {};
};

// Normalises over the last dimensions, which have to be `normalized_shape` (Ba et al.,
// arXiv:1607.06450).
struct TENON_API LayerNorm final : Module<LayerNorm> {
  LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options = {});
  LayerNorm(int64_t size, const LayerNormOptions& options = {}) : LayerNorm(Shape{size}, options) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  Shape normalized_shape;
  LayerNormOptions options;
  Parameter weight, bias;
};

}  // namespace tenon::nn
