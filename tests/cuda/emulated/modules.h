// What the emulated NVRTC puts into the shared object that it makes of a kernel's source, for the
// emulated runtime.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::emulated {

// What kernels have of the device: nvrtc_builtins.h has a declaration of the same layout.
struct DeviceOfModule {
  const void *thread_index, *block_index, *block_size, *grid_size;  // of three unsigned each
  float (*half_to_float)(uint16_t bits);
  uint16_t (*float_to_half)(float x);
  float (*bfloat_to_float)(uint16_t bits);
  uint16_t (*float_to_bfloat)(float x);
  void (*block_barrier)();
  void (*warp_barrier)();
  void (*exchange)(void* value, size_t bytes, int source);
  int (*lane)();
  void (*count_wide_access)();
};

inline constexpr const char *kBindSymbol = "tenon_bind",  // void(const DeviceOfModule*)
    *kRunSymbol = "tenon_run",                            // void(const void* arguments): one thread
        *kBytesSymbol = "tenon_argument_bytes",           // const size_t
            *kNameSymbol = "tenon_kernel_name";           // const char[]

}  // namespace tenon::emulated
