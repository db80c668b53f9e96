// Initialisers: fill a tensor in place, outside autograd, and return it. Names, defaults and
// formulas are PyTorch's.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::nn::init {

TENON_API Tensor uniform_(const Tensor& tensor, double low = 0, double high = 1);
TENON_API Tensor normal_(const Tensor& tensor, double mean = 0, double std = 1);
TENON_API Tensor constant_(const Tensor& tensor, double value);
TENON_API Tensor zeros_(const Tensor& tensor);
TENON_API Tensor ones_(const Tensor& tensor);

enum class Nonlinearity { linear, conv, sigmoid, tanh, relu, leaky_relu, selu };
// The factor by which a nonlinearity wants its weights larger; `slope` is leaky_relu's.
TENON_API double calculate_gain(Nonlinearity nonlinearity, double slope = 0.01);

// How many inputs and outputs a weight of shape (out, in, kernel…) connects. ShapeError for fewer
// than two dimensions.
struct Fans {
  int64_t in, out;
};
TENON_API Fans calculate_fans(const Tensor& weight);

// Keeps the variance through layers with symmetric activations (Glorot and Bengio 2010).
TENON_API Tensor xavier_uniform_(const Tensor& weight, double gain = 1);
TENON_API Tensor xavier_normal_(const Tensor& weight, double gain = 1);

enum class Fan { in, out };
struct KaimingOptions {
  double a = 0;        // slope of the leaky_relu that follows; 0 is relu
  Fan mode = Fan::in;  // keep the variance forward (in) or backward (out)
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
};
// Keeps the variance through layers with rectifiers (He et al., arXiv:1502.01852).
TENON_API Tensor kaiming_uniform_(const Tensor& weight, KaimingOptions options = {});
TENON_API Tensor kaiming_normal_(const Tensor& weight, KaimingOptions options = {});

}  // namespace tenon::nn::init
