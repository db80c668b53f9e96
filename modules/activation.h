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
// Returns log(exp(x) / sum(exp(x))), summed along the dimension `dim`, more precisely than the
// logarithm of Softmax would. `dim` is as for Softmax.
struct TENON_API LogSoftmax final : Module<LogSoftmax> {
  LogSoftmax(int64_t dim) : dim(dim) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  int64_t dim;
};

}  // namespace tenon::nn
