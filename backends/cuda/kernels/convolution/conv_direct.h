// Convolution by its definition, for what no library offers. Correct for every stride, padding,
// dilation and number of groups, and the same bits in every run; not fast.
#pragma once

#include <tenon/plugins/sdk/requests/convolution.h>

#include "runtime/common.h"

namespace tenon::cuda {

// f32, f64, f16 and bf16; all tensors are contiguous.
tn_plan* plan_conv_direct(const sdk::ConvRequest& request);

}  // namespace tenon::cuda
