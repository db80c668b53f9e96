// Kernels that are compiled while a process runs.
#pragma once

#include <string>

struct tn_device;

namespace tenon::cuda {

// The kernel of this name in the source, for cudaLaunchKernelExC; the device is current. It is
// compiled once for all devices of one architecture, or read from the folder of rtc/disk_cache.h,
// and stays loaded. Any thread; those that ask for one kernel wait for the first of them. Throws
// sdk::Error (TN_CODE_UNSUPPORTED) where NVRTC is missing, does not compile it, or the driver does
// not load what it made; a source that was refused is not compiled again.
const void* kernel_of(const tn_device* device, const std::string& source, const char* name);

}  // namespace tenon::cuda
