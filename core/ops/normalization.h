// Normalization. Every function throws a ValueError if x is undefined. The result has the shape and
// dtype of x. Half types are computed in f32 and rounded. Weights, biases and running statistics
// have the dtype of x or, where this is a half type, all of them may be f32.
#pragma once

#include <optional>

#include <tenon/core/tensor.h>

namespace tenon {

// Returns (x - mean) / sqrt(variance + eps) * weight + bias for each channel (Ioffe and Szegedy,
// arXiv:1502.03167). x is floating and of shape (n, c) or (n, c, …); the other tensors have shape
// (c), and each may be undefined, which leaves it out. In training, mean and
// biased variance are those of the batch, and running statistics, if given, are changed in place to
// (1 - momentum) * running + momentum * batch, with the unbiased variance. Otherwise the running
// statistics are used and must be given. Throws a ShapeError or DTypeError for a tensor that does
// not fit, a ValueError if training sees fewer than two values for each channel, if just one
// running statistic is given, if eps is negative or not finite, or if momentum is outside [0, 1],
// and an AutogradError for a running statistic that requires a gradient.
TENON_API Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                            const Tensor& weight, const Tensor& bias, bool training,
                            double momentum = 0.1, double eps = 1e-5);

// Returns (x - mean) / sqrt(variance + eps) * weight + bias, with mean and biased variance over the
// last dimensions, separately for each position before them (Ba et al., arXiv:1607.06450). The last
// dimensions of the floating x must be `normalized_shape`, of at least one dimension. Weight and
// bias have shape normalized_shape; an undefined one is left out. Throws a ShapeError or DTypeError
// for tensors that do not fit, and a ValueError for an empty normalized_shape or an eps that is
// negative or not finite.
TENON_API Tensor layer_norm(const Tensor& x, const Shape& normalized_shape,
                            const Tensor& weight = Tensor(), const Tensor& bias = Tensor(),
                            double eps = 1e-5);

// Returns x normalized over each of `num_groups` groups of channels of each image, by mean and
// biased variance, then times weight plus bias of each channel (Wu and He, arXiv:1803.08494). x is
// floating and of shape (n, c) or (n, c, …); weight and bias have shape (c), and an undefined one
// is left out. Throws a ValueError unless the groups divide c or if eps is negative or not finite,
// and a ShapeError or DTypeError for a tensor that does not fit.
TENON_API Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight = Tensor(),
                            const Tensor& bias = Tensor(), double eps = 1e-5);

// Returns x normalized over each channel of each image, then times weight plus bias of each channel
// (Ulyanov et al., arXiv:1607.08022). x is floating and of shape (n, c, …) with at least three
// dimensions; the other tensors have shape (c), and each may be undefined, which leaves it out.
// Running statistics, if given, are changed in place as in batch_norm, to those of the images on
// average; with use_input_stats = false they are used instead of those of the images. Throws a
// ShapeError or DTypeError for tensors that do not fit, and a ValueError for images of one element,
// and as batch_norm for the other arguments.
TENON_API Tensor instance_norm(const Tensor& x, const Tensor& running_mean = Tensor(),
                               const Tensor& running_var = Tensor(),
                               const Tensor& weight = Tensor(), const Tensor& bias = Tensor(),
                               bool use_input_stats = true, double momentum = 0.1,
                               double eps = 1e-5);

// Returns x / sqrt(mean(x²) + eps) * weight, with the mean over the last dimensions of the floating
// x, which must be `normalized_shape`, of at least one dimension (Zhang and Sennrich,
// arXiv:1910.07467). The weight has that shape, or is undefined, which leaves it out. By default
// `eps` is the distance from 1 to the next number of the dtype in which it computes, f32 for half
// types. Throws a ShapeError or DTypeError for tensors that do not fit, and a ValueError for an eps
// that is negative or not finite.
TENON_API Tensor rms_norm(const Tensor& x, const Shape& normalized_shape,
                          const Tensor& weight = Tensor(),
                          std::optional<double> eps = std::nullopt);

// Returns x / (k + alpha * mean of x² over `size` neighboring channels)^beta, where channels
// outside count as zeros (Krizhevsky et al., 2012). Throws a ShapeError unless x has shape (n, c,
// …) with at least three dimensions, a DTypeError unless it is floating, and a ValueError for a
// size below 1.
TENON_API Tensor local_response_norm(const Tensor& x, int64_t size, double alpha = 1e-4,
                                     double beta = 0.75, double k = 1);

// Returns v scaled so that its slices along `dim` have the lengths g: v * g / norm(v), with the
// norm over all other dimensions, or over all for -1 (Salimans and Kingma, arXiv:1602.07868). g has
// the shape of v with size 1 in all dimensions but `dim`; for -1 it has no dimensions. Throws a
// ShapeError for another shape, an IndexError if v has no such dimension.
TENON_API Tensor weight_norm(const Tensor& v, const Tensor& g, int64_t dim = 0);

// Returns exp(x) / sum(exp(x)) along `dim`, computed without overflow; integers and bool become
// f32. `dim` may be negative. Throws an IndexError if x has no such dimension.
TENON_API Tensor softmax(const Tensor& x, int64_t dim);

// Returns the logarithm of softmax(x, dim), computed without underflow. Shapes, dtypes and errors
// are those of softmax.
TENON_API Tensor log_softmax(const Tensor& x, int64_t dim);

}  // namespace tenon
