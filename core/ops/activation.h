// Activations beside those of core/ops/pointwise.h (relu, sigmoid, tanh, silu, gelu). Each computes
// every element on its own and returns a tensor of x's shape and dtype, except that integers and
// bool become f32, unless it says otherwise. An undefined tensor is a ValueError.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Returns x above 0 and alpha (exp(x) - 1) below (Clevert et al., arXiv:1511.07289).
TENON_API Tensor elu(const Tensor& x, double alpha = 1.0);
// Returns scale elu(x, alpha) with the constants of Klambauer et al., arXiv:1706.02515.
TENON_API Tensor selu(const Tensor& x);
// Returns x above 0 and alpha (exp(x / alpha) - 1) below (Barron, arXiv:1704.07483). Throws a
// ValueError if alpha is 0.
TENON_API Tensor celu(const Tensor& x, double alpha = 1.0);
// Returns x above 0 and negative_slope x elsewhere. The gradient at 0 is negative_slope.
TENON_API Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
// Returns x above 0 and weight x elsewhere (He et al., arXiv:1502.01852). The weight has one
// element, or is a vector of one for each of x's channels, which are dimension 1. Throws a
// ShapeError for another shape, and a DTypeError unless both have one dtype; integers stay
// integers.
TENON_API Tensor prelu(const Tensor& x, const Tensor& weight);
// Returns log(1 + exp(beta x)) / beta, precise for every x, and x itself where beta x is above the
// threshold.
TENON_API Tensor softplus(const Tensor& x, double beta = 1.0, double threshold = 20.0);
// Returns log(sigmoid(x)), precise for every x.
TENON_API Tensor logsigmoid(const Tensor& x);
// Returns x tanh(softplus(x)) (Misra, arXiv:1908.08681).
TENON_API Tensor mish(const Tensor& x);
// Returns (x + 3) / 6, but 0 where x is below -3 and 1 where it is above 3.
TENON_API Tensor hardsigmoid(const Tensor& x);
// Returns x hardsigmoid(x) (Howard et al., arXiv:1905.02244).
TENON_API Tensor hardswish(const Tensor& x);
// Returns x with elements below min_val replaced by min_val and those above max_val by max_val. The
// gradient is that of x strictly between the bounds and 0 elsewhere. Where the bounds are whole,
// integers stay integers, and bool is a DTypeError. Throws a ValueError if min_val is above
// max_val.
TENON_API Tensor hardtanh(const Tensor& x, double min_val = -1.0, double max_val = 1.0);
// Returns hardtanh(x, 0, 6). Integers stay integers. Throws a DTypeError for bool.
TENON_API Tensor relu6(const Tensor& x);
// Returns 0 where |x| is at most lambd, and x elsewhere.
TENON_API Tensor hardshrink(const Tensor& x, double lambd = 0.5);
// Returns x moved towards 0 by lambd, and 0 where |x| is at most lambd. Throws a ValueError if
// lambd is negative.
TENON_API Tensor softshrink(const Tensor& x, double lambd = 0.5);
// Returns x where it is above `threshold`, and `value` elsewhere.
TENON_API Tensor threshold(const Tensor& x, double threshold, double value);
// Returns x - tanh(x).
TENON_API Tensor tanhshrink(const Tensor& x);
// Returns x / (1 + |x|).
TENON_API Tensor softsign(const Tensor& x);
// Returns a sigmoid(b), where a and b are the halves of x along `dim`, in which the result has half
// the size (Dauphin et al., arXiv:1612.08083). Throws a ShapeError if that dimension has an odd
// size, and an IndexError if x does not have it.
TENON_API Tensor glu(const Tensor& x, int64_t dim = -1);
// Returns softmax(-x, dim). Throws an IndexError if x has no such dimension, and a DTypeError for
// bool.
TENON_API Tensor softmin(const Tensor& x, int64_t dim);

}  // namespace tenon
