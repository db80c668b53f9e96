// NVRTC at work: CUDA C++ to machine code.
#pragma once

#include <string>

namespace tenon::cuda {

// What machine code depends on besides its source: the version of NVRTC, its options, the headers
// and the architecture. Throws as compile() does.
std::string compiler_key(int capability);

// Machine code (a cubin) for the compute capability, 90 for 9.0. The source may include what
// rtc/headers.h names. Throws sdk::Error (TN_CODE_UNSUPPORTED) with what is missing where NVRTC is
// not there, or with the beginning of its log.
std::string compile(const std::string& source, int capability);

}  // namespace tenon::cuda
