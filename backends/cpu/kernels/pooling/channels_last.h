// Pooling of tensors that lie in the order n, h, w, c: vectors run over the channels of a pixel,
// and windows over pixels.
#pragma once

#include "runtime/common.h"

namespace tenon::cpu {

// Of windows with more elements, and of those of adaptive pooling, the sums are kept in f64.
inline constexpr int64_t kMostSummedAsTheyAre = 256;

// Whether all tensors of a pooling operator are in that order, and not all row-major as well.
bool pools_channels_last(const Request& request);

tn_plan* make_max_channels_last(const Request& request);
tn_plan* make_max_backward_channels_last(const Request& request);
// avg_pool2d and adaptive_avg_pool2d, and their gradients.
tn_plan* make_average_channels_last(const Request& request, bool adaptive, bool backward);

}  // namespace tenon::cpu
