// Layers that set elements to 0 at random while `training` is set and return their input otherwise.
// The input is floating, and the result has its shape and dtype. Constructors throw a ValueError
// for a `p` outside [0, 1].
#pragma once

#include <tenon/modules/module.h>

namespace tenon::nn {

// Returns x of any shape with each element set to 0 with probability `p`, and the others multiplied
// by 1 / (1 - p) (Srivastava et al., JMLR 15, 2014).
struct TENON_API Dropout final : Module<Dropout> {
  Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v) { v("training", training); }
  std::string extra_repr() const;

  double p;
  bool training = true;
};

// Returns x of shape (N, C, L) or (C, L) with each channel set to 0 as a whole with probability
// `p`, and the others multiplied by 1 / (1 - p) (Tompson et al., arXiv:1411.4280). A call throws a
// ShapeError for another shape.
struct TENON_API Dropout1d final : Module<Dropout1d> {
  Dropout1d(double p = 0.5);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v) { v("training", training); }
  std::string extra_repr() const;

  double p;
  bool training = true;
};
// Returns the same for x of shape (N, C, H, W), or (N, C, L): as in PyTorch, three dimensions are
// not taken as (C, H, W). A call throws a ShapeError for another shape.
struct TENON_API Dropout2d final : Module<Dropout2d> {
  Dropout2d(double p = 0.5);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v) { v("training", training); }
  std::string extra_repr() const;

  double p;
  bool training = true;
};
// Returns the same for x of shape (N, C, D, H, W) or (C, D, H, W). A call throws a ShapeError for
// another shape.
struct TENON_API Dropout3d final : Module<Dropout3d> {
  Dropout3d(double p = 0.5);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v) { v("training", training); }
  std::string extra_repr() const;

  double p;
  bool training = true;
};

// Returns x of any shape with each element set, with probability `p`, to the least value of SELU,
// and the whole scaled and shifted so that a mean of 0 and a variance of 1 are kept (Klambauer et
// al., arXiv:1706.02515). With p = 1 the result is x * 0.
struct TENON_API AlphaDropout final : Module<AlphaDropout> {
  AlphaDropout(double p = 0.5);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v) { v("training", training); }
  std::string extra_repr() const;

  double p;
  bool training = true;
};

}  // namespace tenon::nn
