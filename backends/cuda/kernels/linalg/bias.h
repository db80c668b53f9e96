// Bias where a vendor's library does not add it itself.
#pragma once

#include <cstdint>

#include <tenon/plugins/abi/abi.h>

namespace tenon::cuda {

enum class BiasMode : int32_t { set, add };

// y[i, c, j] = bias[c], or += bias[c], for y (outer, channels, inner) without gaps: inner is 1
// behind a matrix product and the plane behind a convolution. Any floating dtype.
void apply_bias(tn_stream* stream, BiasMode mode, const void* bias, void* y, int64_t outer,
                int64_t channels, int64_t inner, tn_dtype dtype);

}  // namespace tenon::cuda
