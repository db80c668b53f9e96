// Dropout.
#pragma once

#include <tenon/modules/module.h>

namespace tenon::nn {

// While training, sets each element to 0 with probability `p` and scales the others by 1 / (1 - p);
// else passes its input on.
struct TENON_API Dropout final : Module<Dropout> {
  Dropout(double p = 0.5);  // in [0, 1], ValueError otherwise
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v) { v("training", training); }
  std::string extra_repr() const;

  double p;
  bool training = true;
};

}  // namespace tenon::nn
