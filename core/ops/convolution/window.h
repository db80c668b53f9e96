// Windows that slide over padded planes: what convolution and pooling share. Not installed.
#pragma once

#include <tenon/core/dispatch/op.h>

namespace tenon {

// ValueError unless `pair` is two numbers from `least` to 2^31 - 1: so plugins compute with them,
// and with what they make of a plane, without overflow.
void check_pair(const char* op, const char* name, const Shape& pair, int64_t least);

// Positions of a window along one axis, as PyTorch's pooling_output_shape; 0 where it is larger
// than the padded input.
int64_t window_positions(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                         int64_t dilation, bool ceil_mode = false);

// Whether the taps of one of `positions` such windows all lie on the padding, where there is
// nothing to take.
bool a_window_misses(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                     int64_t dilation, int64_t positions);

// ShapeError where x (n, c, h, w) has more elements than can be addressed once it is padded:
// plugins lay such planes out.
void require_addressable_padded(Infer& infer, const Shape& x, const Shape& padding);

}  // namespace tenon
