// NVRTC, NVIDIA's compiler as a library: the functions that the plugin calls. They are declared
// here, because the toolkit's nvrtc.h is not among the headers that the build asks for.
#pragma once

#include <cstddef>

namespace tenon::cuda {

struct NvrtcProgramObject;
using NvrtcProgram = NvrtcProgramObject*;
using NvrtcResult = int;  // 0 is success

struct Nvrtc {
  NvrtcResult (*nvrtcVersion)(int* major, int* minor);
  const char* (*nvrtcGetErrorString)(NvrtcResult result);
  NvrtcResult (*nvrtcCreateProgram)(NvrtcProgram* program, const char* source, const char* name,
                                    int num_headers, const char* const* headers,
                                    const char* const* header_names);
  NvrtcResult (*nvrtcDestroyProgram)(NvrtcProgram* program);
  NvrtcResult (*nvrtcCompileProgram)(NvrtcProgram program, int num_options,
                                     const char* const* options);
  NvrtcResult (*nvrtcGetProgramLogSize)(NvrtcProgram program, size_t* bytes);
  NvrtcResult (*nvrtcGetProgramLog)(NvrtcProgram program, char* log);
  NvrtcResult (*nvrtcGetCUBINSize)(NvrtcProgram program, size_t* bytes);
  NvrtcResult (*nvrtcGetCUBIN)(NvrtcProgram program, char* cubin);
};

#define TENON_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion)                \
  X(nvrtcGetErrorString)         \
  X(nvrtcCreateProgram)          \
  X(nvrtcDestroyProgram)         \
  X(nvrtcCompileProgram)         \
  X(nvrtcGetProgramLogSize)      \
  X(nvrtcGetProgramLog)          \
  X(nvrtcGetCUBINSize)           \
  X(nvrtcGetCUBIN)

// The table, opened by the first call from the places of vendor/library.h. Throws sdk::Error
// (TN_CODE_UNAVAILABLE) that names each place and what was wrong there.
const Nvrtc& nvrtc();

}  // namespace tenon::cuda
