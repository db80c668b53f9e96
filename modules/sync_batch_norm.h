// How a batch normalization computes with all parts of a batch.
#pragma once

#include <tenon/modules/lockstep.h>
#include <tenon/modules/norm.h>

namespace tenon::nn::detail {

// Normalizes this part's x by mean and variance of what all parts have given, and brings the
// running statistics up to date.
Tensor normalize_together(Lockstep& all, const BatchNormState& layer, const Tensor& x,
                          double momentum);

}  // namespace tenon::nn::detail
