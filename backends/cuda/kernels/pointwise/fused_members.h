// The members of fused programs as expressions of CUDA C++, by the functions that the plugin's
// other pointwise kernels compute them with.
#pragma once

#include <string>

#include <tenon/plugins/sdk/requests/fused.h>

namespace tenon::cuda {

// The type of an element, in kernels and in the code of members.
const char* type_of(tn_dtype dtype);

// The expression that computes the step's result from its operands x0, t1, … and from the numbers
// of the run, a.numbers. Throws sdk::Error for a member that the plugin does not compute.
std::string member_expression(const sdk::FusedRequest& program, const sdk::FusedStep& step);

// The program as a comment with one step on each line, and what follows it in every source.
std::string program_comment(const sdk::FusedRequest& program);
inline constexpr const char* kFusedIncludes =
    "#include \"rtc/prelude.h\"\n#include \"kernels/pointwise/fused_kit.h\"\n\n"
    "using namespace tenon;\nusing namespace tenon::cuda;\nusing namespace tenon::cuda::fused;\n\n";

}  // namespace tenon::cuda
