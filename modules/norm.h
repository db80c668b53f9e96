// The normalisation layers.
#pragma once

#include <optional>

#include <tenon/modules/module.h>

namespace tenon::nn {

struct BatchNormOptions {
  double eps = 1e-5;  // added to the variance; finite and at least 0
  // The weight of a new batch in the running statistics, in [0, 1]; nullopt takes the average of
  // all batches.
  std::optional<double> momentum = 0.1;
  // Whether to learn a weight, which starts at 1, and a bias, which starts at 0, for each channel.
  bool affine = true;
  // Whether to keep running statistics and to normalise with them in eval mode.
  bool track_running_stats = true;
  TensorOptions tensor = {};  // dtype and device of parameters and running statistics
};

// What the batch normalisations have in common (Ioffe and Szegedy, arXiv:1502.03167): in training
// mode, and without running statistics, they subtract the batch's mean of each channel and divide
// by sqrt(variance + eps); in eval mode they take the running statistics instead. Weight, bias and
// statistics have shape (num_features). Constructors throw a ValueError for an option outside its
// range.
struct TENON_API BatchNormState {
  BatchNormState(int64_t num_features, const BatchNormOptions& options);

  int64_t num_features;
  BatchNormOptions options;
  Parameter weight, bias;
  Buffer running_mean, running_var;
  Buffer num_batches_tracked;  // i64 scalar
  bool training = true;
  // In training under DataParallel, whether the statistics are those of all parts of the batch:
  // see SyncBatchNorm.
  bool sync = false;

 protected:
  Tensor normalise(const Tensor& x, const char* layer);
  void visit(FieldVisitor& v);
  std::string repr_text() const;
};

// Normalises an input of shape (N, C) or (N, C, L), C = num_features; other shapes are a
// ShapeError.
struct TENON_API BatchNorm1d final : Module<BatchNorm1d>, BatchNormState {
  BatchNorm1d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormState(num_features, options) {}
  Tensor forward(const Tensor& x);
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Normalises an input of shape (N, C, H, W), C = num_features; other shapes are a ShapeError.
struct TENON_API BatchNorm2d final : Module<BatchNorm2d>, BatchNormState {
  BatchNorm2d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormState(num_features, options) {}
  Tensor forward(const Tensor& x);
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Normalises an input of shape (N, C, D, H, W), C = num_features; other shapes are a ShapeError.
struct TENON_API BatchNorm3d final : Module<BatchNorm3d>, BatchNormState {
  BatchNorm3d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormState(num_features, options) {}
  Tensor forward(const Tensor& x);
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Normalises an input of shape (N, C) or (N, C, …), C = num_features, as the batch normalisations
// above; but where DataParallel shares a batch among devices, mean and variance in training are
// those of the whole batch, not those of each device's part. So the results, gradients and running
// statistics are, up to rounding, those of one device. All parts of a batch have to call the same
// such layers in the same order, or the call is a ValueError.
struct TENON_API SyncBatchNorm final : Module<SyncBatchNorm>, BatchNormState {
  SyncBatchNorm(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormState(num_features, options) {
    sync = true;
  }
  Tensor forward(const Tensor& x);
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const;

  // Makes all batch normalisations of a model, whose fields keep their types, do the same: sets
  // their field `sync`.
  static void convert_sync_batchnorm(ModuleRef model);
};

namespace detail {
// Returns the batch normalisation that a module is; null if it is none.
TENON_API BatchNormState* batch_norm_of(ModuleRef module);
}  // namespace detail

struct LayerNormOptions {
  double eps = 1e-5;  // added to the variance; finite and at least 0
  // Whether to learn a weight, which starts at 1, and a bias, which starts at 0, for each element.
  bool elementwise_affine = true;
  bool bias = true;           // false leaves out the bias alone
  TensorOptions tensor = {};  // dtype and device of the parameters
};

// Normalises over the last dimensions, which have to be `normalized_shape` (ShapeError otherwise):
// subtracts their mean and divides by sqrt(variance + eps) (Ba et al., arXiv:1607.06450). Weight
// and bias have shape `normalized_shape`. The constructor throws a ValueError for a negative size
// or a bad `eps`.
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
