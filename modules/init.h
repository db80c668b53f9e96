// Initializers: functions that fill a floating tensor of any shape in place, without recording for
// autograd, and return it. Names, defaults and formulas are PyTorch's. Those that draw samples use
// the generator that tenon::manual_seed sets.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::nn::init {

// Fills the tensor with samples of the uniform distribution over [low, high). Throws a ValueError
// unless low <= high and both are finite.
TENON_API Tensor uniform_(const Tensor& tensor, double low = 0, double high = 1);
// Fills the tensor with samples of the normal distribution of this mean and standard deviation.
// Throws a ValueError unless `mean` is finite and `std` is finite and at least 0.
TENON_API Tensor normal_(const Tensor& tensor, double mean = 0, double std = 1);
// Sets every element to `value`.
TENON_API Tensor constant_(const Tensor& tensor, double value);
// Sets every element to 0.
TENON_API Tensor zeros_(const Tensor& tensor);
// Sets every element to 1.
TENON_API Tensor ones_(const Tensor& tensor);

// The nonlinearities for which calculate_gain knows a factor.
enum class Nonlinearity { linear, conv, sigmoid, tanh, relu, leaky_relu, selu };
// Returns the factor by which the weights in front of a nonlinearity are scaled so that the
// variance is kept: sqrt(2) for relu, 5/3 for tanh, sqrt(2 / (1 + slope^2)) for leaky_relu, 3/4 for
// selu, otherwise 1.
TENON_API double calculate_gain(Nonlinearity nonlinearity, double slope = 0.01);

// The fans of a layer: the number of inputs that contribute to each output, and the number of
// outputs to which each input contributes.
struct Fans {
  int64_t in, out;
};
// Returns the fans of a weight of shape (out, in, kernel…). Throws a ShapeError for a weight of
// fewer than two dimensions.
TENON_API Fans calculate_fans(const Tensor& weight);

// Fills a weight with samples of U(-b, b), where b = gain sqrt(6 / (fan_in + fan_out)), so that
// layers with symmetric activations keep the variance (Glorot and Bengio 2010). Throws a ValueError
// unless `gain` is finite and at least 0, and a ShapeError as calculate_fans does.
TENON_API Tensor xavier_uniform_(const Tensor& weight, double gain = 1);
// Fills a weight with samples of the normal distribution of mean 0 and standard deviation
// gain sqrt(2 / (fan_in + fan_out)); errors are as for xavier_uniform_.
TENON_API Tensor xavier_normal_(const Tensor& weight, double gain = 1);

// One of the two fans.
enum class Fan { in, out };
struct KaimingOptions {
  double a = 0;        // the slope of the leaky_relu that follows; 0 means relu
  Fan mode = Fan::in;  // keeps the variance of the forward pass (in) or of the backward pass (out)
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;  // the activation that follows
};
// Fills a weight with samples of U(-b, b), where b = gain sqrt(3 / fan), with the fan of
// options.mode and the gain of the nonlinearity, so that layers with rectifiers keep the variance
// (He et al., arXiv:1502.01852). Throws a ValueError for an `a` that is not finite, and a
// ShapeError as calculate_fans does.
TENON_API Tensor kaiming_uniform_(const Tensor& weight, KaimingOptions options = {});
// Fills a weight with samples of the normal distribution of mean 0 and standard deviation gain /
// sqrt(fan); errors are as for kaiming_uniform_.
TENON_API Tensor kaiming_normal_(const Tensor& weight, KaimingOptions options = {});

}  // namespace tenon::nn::init
