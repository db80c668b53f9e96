// Windows that slide over padded planes, which convolution and pooling share.
#pragma once

#include <tenon/core/dispatch/op.h>

namespace tenon {

// Throws a ValueError unless all of the one to three numbers are from `least` to 2^31 - 1, with
// which plugins can compute sizes and offsets in a plane without overflow.
void check_sizes(const char* op, const char* name, const Shape& sizes, int64_t least);

// Returns whether one of the `positions` of a window (tn_window_positions) has all of its elements
// on the padding, where there is no value to take.
bool a_window_misses(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                     int64_t dilation, int64_t positions);

// Throws a ShapeError if x (n, c, h, w) has more elements than can be addressed when it is padded,
// because plugins may make a padded copy.
void require_addressable_padded(Infer& infer, const Shape& x, const Shape& padding);

}  // namespace tenon
