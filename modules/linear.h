// A fully connected layer.
#pragma once

#include <tenon/modules/module.h>

namespace tenon::nn {

struct LinearOptions {
  bool bias = true;
  TensorOptions tensor = {};  // dtype and device of the parameters
};

// y = x W^T + b, for x of shape (…, in_features). Weight (out_features, in_features) and bias start
// as U(-k, k), k = 1/sqrt(in_features).
struct TENON_API Linear final : Module<Linear> {
  Linear(int64_t in_features, int64_t out_features, const LinearOptions& options = {});
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  int64_t in_features, out_features;
  Parameter weight, bias;  // bias is undefined where there is none
};

}  // namespace tenon::nn
