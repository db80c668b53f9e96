// Activations: layers that call the function of the same name, most of them without parameters. x
// has any shape. The result has the shape and dtype of x, except that integers become f32 where the
// function does so. Options are checked by the call, which throws a ValueError for one outside its
// range, unless a constructor is said to do so. An undefined x is a ValueError.
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
// Returns x sigmoid(x) for each element (Elfwing et al., arXiv:1702.03118).
struct TENON_API SiLU final : Module<SiLU> {
  Tensor forward(const Tensor& x) const;
};
// Returns x Phi(x) for each element, where Phi is the distribution function of the standard normal
// distribution (Hendrycks and Gimpel, arXiv:1606.08415). `approximate` is "none", which computes
// Phi by erf, or "tanh", a formula of that paper; the constructor throws a ValueError for another.
struct TENON_API GELU final : Module<GELU> {
  GELU(std::string approximate = "none");
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  std::string approximate;
};
// Returns exp(x) / sum(exp(x)), summed along the dimension `dim`. A negative `dim` counts from the
// end; a call throws an IndexError for one that x does not have.
struct TENON_API Softmax final : Module<Softmax> {
  Softmax(int64_t dim) : dim(dim) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  int64_t dim;
};
// Returns exp(x) / sum(exp(x)), summed over the channels of images (N, C, H, W) or (C, H, W); a
// call throws a ShapeError for another number of dimensions.
struct TENON_API Softmax2d final : Module<Softmax2d> {
  Tensor forward(const Tensor& x) const;
};
// Returns log(exp(x) / sum(exp(x))), summed along the dimension `dim`, more precisely than the
// logarithm of Softmax would be. `dim` and its errors are those of Softmax.
struct TENON_API LogSoftmax final : Module<LogSoftmax> {
  LogSoftmax(int64_t dim) : dim(dim) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  int64_t dim;
};
// Returns x above 0 and alpha (exp(x) - 1) below for each element (Clevert et al.,
// arXiv:1511.07289).
struct TENON_API ELU final : Module<ELU> {
  ELU(double alpha = 1.0) : alpha(alpha) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  double alpha;
};
// Returns scale elu(x, alpha) for each element, with the constants of Klambauer et al.,
// arXiv:1706.02515.
struct TENON_API SELU final : Module<SELU> {
  Tensor forward(const Tensor& x) const;
};
// Returns x above 0 and alpha (exp(x / alpha) - 1) below for each element (Barron,
// arXiv:1704.07483). A call throws a ValueError if alpha is 0.
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
// Returns x tanh(softplus(x)) for each element (Misra, arXiv:1908.08681).
struct TENON_API Mish final : Module<Mish> {
  Tensor forward(const Tensor& x) const;
};
// Returns x + 3, limited to [0, 6] and divided by 6, for each element.
struct TENON_API Hardsigmoid final : Module<Hardsigmoid> {
  Tensor forward(const Tensor& x) const;
};
// Returns x hardsigmoid(x) for each element (Howard et al., arXiv:1905.02244).
struct TENON_API Hardswish final : Module<Hardswish> {
  Tensor forward(const Tensor& x) const;
};
// Returns each element, limited to [min_val, max_val]. A call throws a ValueError if min_val is
// above max_val.
struct TENON_API Hardtanh final : Module<Hardtanh> {
  Hardtanh(double min_val = -1.0, double max_val = 1.0) : min_val(min_val), max_val(max_val) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  double min_val, max_val;
};
// Returns each element, limited to [0, 6].
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
// Returns each element moved towards 0 by lambd, and 0 where |x| is at most lambd. A call throws a
// ValueError if lambd is negative.
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
// Returns a sigmoid(b), where a and b are the halves of x along `dim`, so that this dimension is
// half as large (Dauphin et al., arXiv:1612.08083). A call throws a ShapeError if its size is odd,
// and an IndexError if x does not have it.
struct TENON_API GLU final : Module<GLU> {
  GLU(int64_t dim = -1) : dim(dim) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  int64_t dim;
};
// Returns softmax(-x) along the dimension `dim`, which is as for Softmax.
struct TENON_API Softmin final : Module<Softmin> {
  Softmin(int64_t dim) : dim(dim) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  int64_t dim;
};
// Returns x above 0 and weight x below for each element, where the weight (num_parameters) is
// learned: one number for all, or one for each channel, which is dimension 1 (He et al.,
// arXiv:1502.01852). It starts at `init`, and `options` give its dtype and device. The constructor
// throws a ValueError for num_parameters below 1, a call a ShapeError for other channels.
struct TENON_API PReLU final : Module<PReLU> {
  PReLU(int64_t num_parameters = 1, double init = 0.25, const TensorOptions& options = {});
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor& v) { v("weight", weight); }
  std::string extra_repr() const;
  int64_t num_parameters;
  Parameter weight;
};

}  // namespace tenon::nn
