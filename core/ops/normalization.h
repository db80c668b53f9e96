// Normalisation. Every function throws a ValueError if x is undefined.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Returns (x - mean) / sqrt(variance + eps) * weight + bias for each channel (Ioffe and Szegedy,
// arXiv:1502.03167). x is floating and of shape (n, c) or (n, c, …); the other tensors have shape
// (c) and the dtype of x, and each may be undefined, which leaves it out. In training, mean and
// biased variance are those of the batch, and running statistics, if given, are changed in place to
// (1 - momentum) * running + momentum * batch, with the unbiased variance. Otherwise the running
// statistics are used and must be given. Throws a ShapeError or DTypeError for a tensor that does
// not fit, and a ValueError if training sees fewer than two values for each channel, if just one
// running statistic is given, if eps is negative or not finite, or if momentum is outside [0, 1].
TENON_API Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                            const Tensor& weight, const Tensor& bias, bool training,
                            double momentum = 0.1, double eps = 1e-5);

// Returns (x - mean) / sqrt(variance + eps) * weight + bias, with mean and biased variance over the
// last dimensions, separately for each position before them (Ba et al., arXiv:1607.06450). The last
// dimensions of the floating x must be `normalized_shape`, of at least one dimension. Weight and
// bias have shape normalized_shape and the dtype of x; an undefined one is left out. Throws a
// ShapeError, DTypeError or ValueError for arguments that do not fit.
TENON_API Tensor layer_norm(const Tensor& x, const Shape& normalized_shape,
                            const Tensor& weight = Tensor(), const Tensor& bias = Tensor(),
                            double eps = 1e-5);

// Returns exp(x) / sum(exp(x)) along `dim`, computed without overflow, in the shape of x; integers
// and bool become f32. `dim` may be negative. Throws an IndexError if x has no such dimension.
TENON_API Tensor softmax(const Tensor& x, int64_t dim);

// Returns the logarithm of softmax, computed without underflow. Shapes, dtypes and errors are those
// of softmax.
TENON_API Tensor log_softmax(const Tensor& x, int64_t dim);

}  // namespace tenon
