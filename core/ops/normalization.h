// Normalisation. An undefined tensor stands for an absent argument.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// (x - mean) / sqrt(var + eps) * weight + bias for each channel (Ioffe and Szegedy,
// arXiv:1502.03167). x (n, c) or (n, c, …), the others (c), all of x's type. Training: by the
// batch's mean and biased variance, and running statistics, where given, become (1 - momentum)
// running + momentum batch (variance unbiased), in place. Otherwise by the running statistics,
// which must be there. ValueError where training sees fewer than two values a channel.
TENON_API Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                            const Tensor& weight, const Tensor& bias, bool training,
                            double momentum = 0.1, double eps = 1e-5);

// The same over the last dimensions, which must be normalized_shape, separately for each position
// before them (Ba et al., arXiv:1607.06450). weight and bias have normalized_shape.
TENON_API Tensor layer_norm(const Tensor& x, const Shape& normalized_shape,
                            const Tensor& weight = Tensor(), const Tensor& bias = Tensor(),
                            double eps = 1e-5);

// ---- along one dimension, which may be negative (IndexError where out of range). Floating types;
// integers become f32. ---- exp(x - max) / sum(exp(x - max)) along dim; x's shape.
TENON_API Tensor softmax(const Tensor& x, int64_t dim);
// The logarithm of softmax, without underflow.
TENON_API Tensor log_softmax(const Tensor& x, int64_t dim);

}  // namespace tenon
