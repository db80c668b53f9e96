// Convolution by its definition, for what no library offers. Correct for every stride, padding,
// dilation and number of groups, and the same bits in every run; not fast.
#pragma once

#include "runtime/common.h"

namespace tenon::cuda {

// For "conv2d", "conv2d_input_grad" and "conv2d_weight_grad", by the request's name; f32, f64, f16
// and bf16. Throws where shapes do not fit, or tensors are not contiguous.
tn_plan* plan_conv_direct(const Request& request);

}  // namespace tenon::cuda
