// The fully connected layers, linear and bilinear, and two measures of distance.
#pragma once

#include <concepts>

#include <tenon/core/ops/linalg.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

// Returns x W^T + b of shape (…, out_features) for an input of shape (…, in_features) and the dtype
// of the weight. The weight W has shape (out_features, in_features) and the bias b (out_features);
// both start uniform in (-k, k), where k = 1 / sqrt(in_features). The constructor throws a
// ValueError for negative sizes; a call throws a ShapeError or DTypeError for an input that does
// not fit.
struct TENON_API Linear final : Module<Linear> {
  Linear(int64_t in_features, int64_t out_features, const WeightOptions& options = {});
  // Makes the layer with or without a bias, as PyTorch's third argument: nn::Linear(784, 10,
  // false).
  template <std::same_as<bool> B>
  Linear(int64_t in_features, int64_t out_features, B bias)
      : Linear(in_features, out_features, WeightOptions{.bias = bias}) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  int64_t in_features, out_features;
  Parameter weight, bias;  // the bias is undefined if the layer has none
};

// Returns x1^T A_o x2 + b_o for each output o, of shape (…, out_features), for inputs of shapes
// (…, in1_features) and (…, in2_features). The weight A has shape (out_features, in1_features,
// in2_features) and the bias b (out_features); both start uniform in (-k, k), where k = 1 /
// sqrt(in1_features). The constructor throws a ValueError for sizes below 1; a call throws a
// ShapeError or DTypeError for inputs that do not fit.
struct TENON_API Bilinear final : Module<Bilinear> {
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features,
           const WeightOptions& options = {});
  Tensor forward(const Tensor& x1, const Tensor& x2) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  int64_t in1_features, in2_features, out_features;
  Parameter weight, bias;  // the bias is undefined if the layer has none
};

// Returns the cosine of the angle between x1 and x2 along `dim`, as tenon::cosine_similarity does,
// with its errors: for shapes that broadcast, the broadcast shape without `dim`. `eps` is the least
// length that is divided by.
struct TENON_API CosineSimilarity final : Module<CosineSimilarity> {
  CosineSimilarity(int64_t dim = 1, double eps = 1e-8) : dim(dim), eps(eps) {}
  Tensor forward(const Tensor& x1, const Tensor& x2) const {
    return cosine_similarity(x1, x2, dim, eps);
  }
  void fields(FieldVisitor&) {}

  int64_t dim;
  double eps;
};

// Returns the p-norm of x1 - x2 + eps along the last dimension, as tenon::pairwise_distance does,
// with its errors: for shapes that broadcast, the broadcast shape without the last dimension, or
// with one of size 1 there if keepdim is true.
struct TENON_API PairwiseDistance final : Module<PairwiseDistance> {
  PairwiseDistance(double p = 2, double eps = 1e-6, bool keepdim = false)
      : norm(p), eps(eps), keepdim(keepdim) {}
  Tensor forward(const Tensor& x1, const Tensor& x2) const {
    return pairwise_distance(x1, x2, norm, eps, keepdim);
  }
  void fields(FieldVisitor&) {}

  double norm, eps;
  bool keepdim;
};

}  // namespace tenon::nn
