// The dropout layer.
#pragma once

#include <tenon/modules/module.h>

namespace tenon::nn {

// While `training` is set, sets each element to 0 with probability `p` and multiplies the others by
// 1 / (1 - p); otherwise returns its input (Srivastava et al. 2014). The input is floating and of
// any shape. The constructor throws a ValueError for a `p` outside [0, 1].
struct TENON_API Dropout final : Module<Dropout> {
  Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v) { v("training", training); }
  std::string extra_repr() const;

  double p;
  bool training = true;
};

// The dropouts below do the same to other things; their constructors throw as Dropout's.

// Sets whole channels to 0: those of (N, C, L) or (C, L) in Dropout1d, (N, C, H, W) in Dropout2d,
// which takes three dimensions as (N, C, L), as PyTorch does, and (N, C, D, H, W) or (C, D, H, W)
// in Dropout3d (Tompson et al., arXiv:1411.4280). Calls throw a ShapeError for other inputs.
struct TENON_API Dropout1d final : Module<Dropout1d> {
  Dropout1d(double p = 0.5);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v) { v("training", training); }
  std::string extra_repr() const;

  double p;
  bool training = true;
};
struct TENON_API Dropout2d final : Module<Dropout2d> {
  Dropout2d(double p = 0.5);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v) { v("training", training); }
  std::string extra_repr() const;

  double p;
  bool training = true;
};
struct TENON_API Dropout3d final : Module<Dropout3d> {
  Dropout3d(double p = 0.5);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v) { v("training", training); }
  std::string extra_repr() const;

  double p;
  bool training = true;
};

// Sets elements to the least value of SELU and scales so that mean 0 and variance 1 are kept
// (Klambauer et al., arXiv:1706.02515).
struct TENON_API AlphaDropout final : Module<AlphaDropout> {
  AlphaDropout(double p = 0.5);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v) { v("training", training); }
  std::string extra_repr() const;

  double p;
  bool training = true;
};

}  // namespace tenon::nn
