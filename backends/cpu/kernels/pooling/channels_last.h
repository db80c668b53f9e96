// Pooling of tensors that lie in the order n, h, w, c: vectors run over the channels of a pixel,
// and windows over pixels.
#pragma once

#include <string>

#include "runtime/common.h"

namespace tenon::cpu {

// Refuses an index of max_pool2d_backward that is outside a plane of `size` elements.
inline void require_inside(int64_t index, int64_t size) {
  if (index >= 0 && index < size) return;
  throw sdk::Error(TN_CODE_OUT_OF_RANGE, sdk::text("index {} outside a plane of {}", index, size),
                   {{"index", std::to_string(index)}, {"size", std::to_string(size)}});
}

// The sums of windows with more elements, and of those of adaptive pooling, are kept in f64.
inline constexpr int64_t kMaxSummedAsTheyAre = 256;

// Whether all tensors of a pooling operator are in that order, and not all row-major as well.
bool pools_channels_last(const Request& request);

tn_plan* make_max_channels_last(const Request& request);
tn_plan* make_max_backward_channels_last(const Request& request);
// avg_pool2d and adaptive_avg_pool2d, and their gradients.
tn_plan* make_average_channels_last(const Request& request, bool adaptive, bool backward);

}  // namespace tenon::cpu
