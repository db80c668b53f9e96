// From scores to weights, for all kinds of attention.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Returns (l, s), true where column j is at most row i.
Tensor causal_mask(int64_t l, int64_t s, Device device);
// Adds a floating mask to the scores. Of a boolean mask, the pairs that take part keep their
// scores, and the others get -inf.
Tensor masked_scores(const Tensor& scores, const Tensor& mask, bool true_takes_part);
// Returns the softmax along the last dimension; rows of -inf alone become 0.
Tensor attention_weights(const Tensor& scores);

}  // namespace tenon
