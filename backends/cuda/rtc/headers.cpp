#include "rtc/headers.h"

namespace tenon::cuda {
namespace {

constexpr RtcHeader kHeaders[] = {
    {"cassert", ""},     {"cmath", ""},       {"cstdint", ""},        {"cstring", ""},
    {"cuda_bf16.h", ""}, {"cuda_fp16.h", ""}, {"cuda_runtime.h", ""}, {"limits", ""},
    {"stddef.h", ""},    {"stdint.h", ""},    {"type_traits", ""},
#include "rtc_headers.inc"
};

}  // namespace

std::span<const RtcHeader> rtc_headers() { return kHeaders; }

}  // namespace tenon::cuda
