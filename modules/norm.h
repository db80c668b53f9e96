// The layers of batch and layer normalization. The result has the shape and dtype of the input,
// which is floating; parameters have its dtype or, where it is a half type, may be f32. Calls throw
// a ShapeError or DTypeError for an input that does not fit.
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
  // Whether to keep running statistics and to normalize with them in eval mode.
  bool track_running_stats = true;
  TensorOptions tensor = {};  // dtype and device of parameters and running statistics
};

// The part that all batch normalizations have (Ioffe and Szegedy, arXiv:1502.03167). In training
// mode, and without running statistics, they subtract the batch's mean of each channel and divide
// by sqrt(variance + eps); in eval mode they take the running statistics instead. Then they apply
// the channel's weight and bias. Constructors throw a ValueError for negative num_features and for
// an option outside its range; calls throw one if training sees fewer than two values a channel.
struct TENON_API BatchNormState {
  // Makes the parameters and running statistics for `num_features` channels.
  BatchNormState(int64_t num_features, const BatchNormOptions& options);

  int64_t num_features;
  BatchNormOptions options;
  Parameter weight, bias;            // (num_features); undefined unless options.affine
  Buffer running_mean, running_var;  // (num_features); undefined unless they are tracked
  Buffer num_batches_tracked;        // i64 scalar: the batches seen in training; as above
  bool training = true;
  // Whether, in training under DataParallel, the statistics are those of all parts of the batch, as
  // SyncBatchNorm describes.
  bool sync = false;

 protected:
  // Returns x of shape (N, num_features, …) normalized; errors begin with `layer`.
  Tensor normalize(const Tensor& x, const char* layer);
  void visit(FieldVisitor& v);
  std::string repr_text() const;
};

// Returns x of shape (N, C) or (N, C, L), C = num_features, normalized.
struct TENON_API BatchNorm1d final : Module<BatchNorm1d>, BatchNormState {
  BatchNorm1d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormState(num_features, options) {}
  Tensor forward(const Tensor& x);
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Returns x of shape (N, C, H, W), C = num_features, normalized.
struct TENON_API BatchNorm2d final : Module<BatchNorm2d>, BatchNormState {
  BatchNorm2d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormState(num_features, options) {}
  Tensor forward(const Tensor& x);
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Returns x of shape (N, C, D, H, W), C = num_features, normalized.
struct TENON_API BatchNorm3d final : Module<BatchNorm3d>, BatchNormState {
  BatchNorm3d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormState(num_features, options) {}
  Tensor forward(const Tensor& x);
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Returns x of shape (N, C) or (N, C, …), C = num_features, normalized as by the layers above. But
// where DataParallel shares a batch among devices, mean and variance in training are those of the
// whole batch, not those of each device's part. So the results, gradients and running statistics
// are, up to rounding, those of one device. All parts of a batch have to call the same such layers
// in the same order, or the call throws a ValueError.
struct TENON_API SyncBatchNorm final : Module<SyncBatchNorm>, BatchNormState {
  SyncBatchNorm(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormState(num_features, options) {
    sync = true;
  }
  Tensor forward(const Tensor& x);
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const;

  // Makes all batch normalizations of a model do the same, by setting their field `sync`; their
  // types stay as they are.
  static void convert_sync_batchnorm(ModuleRef model);
};

namespace detail {
// Returns the batch normalization that a module is, or null if it is none.
TENON_API BatchNormState* batch_norm_of(ModuleRef module);
}  // namespace detail

struct LayerNormOptions {
  double eps = 1e-5;  // added to the variance; finite and at least 0
  // Whether to learn a weight, which starts at 1, and a bias, which starts at 0, for each element.
  bool elementwise_affine = true;
  bool bias = true;           // false leaves out the bias alone
  TensorOptions tensor = {};  // dtype and device of the parameters
};

// Returns x of shape (…, normalized_shape) minus the mean over the dimensions of normalized_shape,
// divided by sqrt(variance + eps), times the weight plus the bias (Ba et al., arXiv:1607.06450).
// The constructor throws a ValueError for a negative size or an `eps` outside its range.
struct TENON_API LayerNorm final : Module<LayerNorm> {
  LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options = {});
  // Normalizes over the last dimension alone, which has this size.
  LayerNorm(int64_t size, const LayerNormOptions& options = {}) : LayerNorm(Shape{size}, options) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  Shape normalized_shape;
  LayerNormOptions options;
  Parameter weight, bias;  // (normalized_shape); undefined if the options leave them out
};

}  // namespace tenon::nn
