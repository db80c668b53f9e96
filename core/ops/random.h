// Operators that draw random numbers. tenon::manual_seed sets the process's generator; the numbers
// are the same on every backend.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Returns x with each element set to 0 with probability p, independently, and the others multiplied
// by 1 / (1 - p) (Srivastava et al., JMLR 15, 2014): a tensor of its shape and dtype, or x itself
// if `training` is false or p is 0. p = 1 gives zeros. Throws a ValueError unless 0 <= p <= 1 and
// for an undefined tensor, and a DTypeError for a tensor that is not floating.
TENON_API Tensor dropout(const Tensor& x, double p = 0.5, bool training = true);

// Returns a tensor of the shape and dtype of x with 1 at each place with the probability that x has
// there, and 0 otherwise. Probabilities below 0 count as 0, those above 1 as 1, and NaN as 0. The
// result has no gradient. Throws a DTypeError for a tensor that is not floating, and a ValueError
// for an undefined one.
TENON_API Tensor bernoulli(const Tensor& x);

// Returns classes that are drawn with probabilities proportional to the weights x (classes), or in
// each row of x (rows, classes): i64 of shape (num_samples) or (rows, num_samples). Without
// `replacement` no class is drawn twice, and one of weight 0 only when no other is left. Weights
// that are negative or not finite, and rows of zeros, give any classes: they are not looked at,
// because that would have to wait. Throws a ShapeError for another shape, a DTypeError unless x is
// floating, and a ValueError for an undefined tensor, or unless num_samples is positive and,
// without replacement, at most the number of classes.
TENON_API Tensor multinomial(const Tensor& x, int64_t num_samples, bool replacement = false);

}  // namespace tenon
