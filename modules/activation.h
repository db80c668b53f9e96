// Activations: layers without parameters, each of which calls the operator of the same name. The
// result of each has the shape and dtype of `x`, except that integers become f32 where the operator
// does so. A call throws what the operator throws.
#pragma once

#include <tenon/modules/module.h>

namespace tenon::nn {

// Returns max(x, 0) for each element.
struct TENON_API ReLU final : Module<ReLU> {
  Tensor forward(const Tensor& x) const;
};
// Returns 1 / (1 + exp(-x)) for each element.
struct TENON_API Sigmoid final : Module<Sigmoid> {
  Tensor forward(const Tensor& x) const;
};
// Returns the hyperbolic tangent of each element.
struct TENON_API Tanh final : Module<Tanh> {
  Tensor forward(const Tensor& x) const;
};
// Returns x sigmoid(x) for each element.
struct TENON_API SiLU final : Module<SiLU> {
  Tensor forward(const Tensor& x) const;
};
// Returns x Phi(x) for each element, where Phi is the distribution function of the normal
// distribution (Hendrycks and Gimpel, arXiv:1606.08415). `approximate` is "none" or "tanh", a
// formula that is faster to compute; the constructor throws a ValueError for anything else.
struct TENON_API GELU final : Module<GELU> {
  GELU(std::string approximate = "none");
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  std::string approximate;
};
// Returns exp(x) / sum(exp(x)), summed along the dimension `dim`. A negative `dim` counts from the
// end; one that `x` does not have is an IndexError of the call.
struct TENON_API Softmax final : Module<Softmax> {
  Softmax(int64_t dim) : dim(dim) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  int64_t dim;
};
// Returns exp(x) / sum(exp(x)), summed over the channels of images (N, C, H, W) or (C, H, W); other
// shapes are a ShapeError.
struct TENON_API Softmax2d final : Module<Softmax2d> {
  Tensor forward(const Tensor& x) const;
};
// Returns log(exp(x) / sum(exp(x))), summed along the dimension `dim`, more precisely than the
// logarithm of Softmax would. `dim` is as for Softmax.
struct TENON_API LogSoftmax final : Module<LogSoftmax> {
  LogSoftmax(int64_t dim) : dim(dim) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  int64_t dim;
};
// Returns x above 0 and alpha (exp(x) - 1) below for each element.
struct TENON_API ELU final : Module<ELU> {
  ELU(double alpha = 1.0) : alpha(alpha) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  double alpha;
};
// Returns scale elu(x, alpha) for each element, with the constants of arXiv:1706.02515.
struct TENON_API SELU final : Module<SELU> {
  Tensor forward(const Tensor& x) const;
};
// Returns x above 0 and alpha (exp(x / alpha) - 1) below for each element.
struct TENON_API CELU final : Module<CELU> {
  CELU(double alpha = 1.0) : alpha(alpha) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  double alpha;
};
// Returns x above 0 and negative_slope x below for each element.
struct TENON_API LeakyReLU final : Module<LeakyReLU> {
  LeakyReLU(double negative_slope = 0.01) : negative_slope(negative_slope) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  double negative_slope;
};
// Returns log(1 + exp(beta x)) / beta for each element, and x where beta x is above the threshold.
struct TENON_API Softplus final : Module<Softplus> {
  Softplus(double beta = 1.0, double threshold = 20.0) : beta(beta), threshold(threshold) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  double beta, threshold;
};
// Returns log(sigmoid(x)) for each element.
struct TENON_API LogSigmoid final : Module<LogSigmoid> {
  Tensor forward(const Tensor& x) const;
};
// Returns x tanh(softplus(x)) for each element.
struct TENON_API Mish final : Module<Mish> {
  Tensor forward(const Tensor& x) const;
};
// Returns x + 3 within [0, 6], divided by 6, for each element.
struct TENON_API Hardsigmoid final : Module<Hardsigmoid> {
  Tensor forward(const Tensor& x) const;
};
// Returns x hardsigmoid(x) for each element.
struct TENON_API Hardswish final : Module<Hardswish> {
  Tensor forward(const Tensor& x) const;
};
// Returns each element within [min_val, max_val].
struct TENON_API Hardtanh final : Module<Hardtanh> {
  Hardtanh(double min_val = -1.0, double max_val = 1.0) : min_val(min_val), max_val(max_val) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  double min_val, max_val;
};
// Returns each element within [0, 6].
struct TENON_API ReLU6 final : Module<ReLU6> {
  Tensor forward(const Tensor& x) const;
};
// Returns 0 where |x| is at most lambd and x elsewhere.
struct TENON_API Hardshrink final : Module<Hardshrink> {
  Hardshrink(double lambd = 0.5) : lambd(lambd) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  double lambd;
};
// Returns each element moved towards 0 by lambd, and 0 where |x| is at most lambd.
struct TENON_API Softshrink final : Module<Softshrink> {
  Softshrink(double lambd = 0.5) : lambd(lambd) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  double lambd;
};
// Returns x where it is above the threshold, and `value` elsewhere.
struct TENON_API Threshold final : Module<Threshold> {
  Threshold(double threshold, double value) : threshold(threshold), value(value) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  double threshold, value;
};
// Returns x - tanh(x) for each element.
struct TENON_API Tanhshrink final : Module<Tanhshrink> {
  Tensor forward(const Tensor& x) const;
};
// Returns x / (1 + |x|) for each element.
struct TENON_API Softsign final : Module<Softsign> {
  Tensor forward(const Tensor& x) const;
};
// Returns a sigmoid(b), where a and b are the halves of x along `dim`, which has an even size.
struct TENON_API GLU final : Module<GLU> {
  GLU(int64_t dim = -1) : dim(dim) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  int64_t dim;
};
// Returns softmax(-x) along the dimension `dim`.
struct TENON_API Softmin final : Module<Softmin> {
  Softmin(int64_t dim) : dim(dim) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  int64_t dim;
};
// Returns x above 0 and weight x below for each element, where the weight is a parameter: one for
// all, or one for each of `num_parameters` channels, which are dimension 1 (He et al.,
// arXiv:1502.01852). It starts at `init`.
struct TENON_API PReLU final : Module<PReLU> {
  PReLU(int64_t num_parameters = 1, double init = 0.25, const TensorOptions& options = {});
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v) { v("weight", weight); }
  std::string extra_repr() const;
  int64_t num_parameters;
  Parameter weight;
};

}  // namespace tenon::nn
