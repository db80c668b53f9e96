// A fused program as the source of a CUDA kernel.
#pragma once

#include <string>
#include <vector>

#include "kernels/pointwise/fused_layout.h"

namespace tenon::cuda {

// The name of the kernel, whose one parameter is a structure: pointers to the inputs and to the
// outputs that are wanted, the run's numbers, and how elements are found. FusedArguments
// (fused.cpp) puts it together in the same order.
inline constexpr const char* kFusedKernel = "fused_kernel";

// The source begins with the program, with one member on each line. It is the same for all shapes
// of one layout, and includes only what rtc/headers.h names. Throws sdk::Error
// (TN_CODE_UNSUPPORTED) for a member that no kernel of the plugin computes.
std::string fused_source(const sdk::FusedRequest& program, const std::vector<bool>& wanted,
                         const FusedLayout& layout);

}  // namespace tenon::cuda
