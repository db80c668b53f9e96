// The headers that sources for NVRTC may include: texts of this plugin's files, put into it by the
// build (cmake/embed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace tenon::cuda {

struct RtcHeader {
  const char* name;
  const char* text;
};

// Headers of the standard library and of the toolkit are empty: rtc/prelude.h stands for them.
std::span<const RtcHeader> rtc_headers();

}  // namespace tenon::cuda
