// Activations: layers without parameters, each of the operator of the same name.
#pragma once

#include <tenon/modules/module.h>

namespace tenon::nn {

struct TENON_API ReLU final : Module<ReLU> {  // max(x, 0)
  Tensor forward(const Tensor& x) const;
};
struct TENON_API Sigmoid final : Module<Sigmoid> {  // 1 / (1 + exp(-x))
  Tensor forward(const Tensor& x) const;
};
struct TENON_API Tanh final : Module<Tanh> {
  Tensor forward(const Tensor& x) const;
};
struct TENON_API SiLU final : Module<SiLU> {  // x sigmoid(x)
  Tensor forward(const Tensor& x) const;
};
// x Phi(x), Phi the normal distribution (Hendrycks and Gimpel, arXiv:1606.08415).
struct TENON_API GELU final : Module<GELU> {
  GELU(std::string approximate =
           "none");  // or "tanh", a formula that is faster to compute; ValueError for others
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  std::string approximate;
};
// exp(x) / sum(exp(x)) along `dim`.
struct TENON_API Softmax final : Module<Softmax> {
  Softmax(int64_t dim) : dim(dim) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  int64_t dim;
};
struct TENON_API LogSoftmax final : Module<LogSoftmax> {
  LogSoftmax(int64_t dim) : dim(dim) {}
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;
  int64_t dim;
};

}  // namespace tenon::nn
