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

}  // namespace tenon::nn
