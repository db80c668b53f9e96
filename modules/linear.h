// The fully connected layer.
#pragma once

#include <tenon/modules/module.h>

namespace tenon::nn {

// Returns x W^T + b of shape (…, out_features) for an input of shape (…, in_features) and the dtype
// of the weight. The weight W has shape (out_features, in_features) and the bias b (out_features);
// both start uniform in (-k, k), where k = 1 / sqrt(in_features). The constructor throws a
// ValueError for negative sizes; a call throws a ShapeError or DTypeError for an input that does
// not fit.
struct TENON_API Linear final : Module<Linear> {
  Linear(int64_t in_features, int64_t out_features, const WeightOptions& options = {});
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  int64_t in_features, out_features;
  Parameter weight, bias;  // the bias is undefined if the layer has none
};

}  // namespace tenon::nn
