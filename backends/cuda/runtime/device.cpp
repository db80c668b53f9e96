// Discovery: which devices there are, what they are like, or why there are none.
#include "runtime/device.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include <dlfcn.h>

#include <tenon/plugins/sdk/backend.h>
#include <tenon/plugins/sdk/vendor_library.h>

#include "runtime/check.h"
#include "runtime/runtime.h"

#ifndef TENON_CUDA_OLDEST
#define TENON_CUDA_OLDEST 80
#endif

namespace tenon::cuda {

namespace {

// The device that this thread was left with because it had none of its own.
thread_local int left_behind = -1;

// Whether the calling thread has started a device or chosen one. CUDA's runtime counts 0 as current
// where it has not; only the driver knows the difference.
bool thread_has_device() {
#if defined(TENON_CUDA_EMULATED)
  return emulated::thread_has_context();
#else
  using Query = int (*)(void**);
  static const Query query = [] {
    std::string why_not;
    void* driver = sdk::open_library("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL, why_not);
    return driver ? reinterpret_cast<Query>(dlsym(driver, "cuCtxGetCurrent")) : nullptr;
  }();
  void* context = nullptr;
  return query && query(&context) == 0 && context;
#endif
}

}  // namespace

CurrentDevice::CurrentDevice(const tn_device* device) {
  int now = -1;
  check(cudaGetDevice(&now), "cudaGetDevice");
  if (now == device->ordinal) return;
  const bool chosen = thread_has_device() && now != left_behind;
  check(cudaSetDevice(device->ordinal), "cudaSetDevice");
  if (chosen) before_ = now;
  left_behind = chosen ? -1 : device->ordinal;
}

CurrentDevice::~CurrentDevice() {
  if (before_ >= 0) cudaSetDevice(before_);
}

namespace {

std::string version_text(int v) { return sdk::text("{}.{}", v / 1000, v % 1000 / 10); }

// The version of CUDA that the driver knows; 0 and a reason where there is no driver.
int driver_version(std::string& why_not) {
  void* driver = sdk::open_library("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL, why_not);
  if (!driver) return 0;
  int version = 0;
  if (auto* query = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion")))
    query(&version);
  return version;
}

// CUDA gives one code for a driver that is missing and for one that is too old.
[[noreturn]] void no_devices(cudaError_t code) {
  cudaGetLastError();
  std::string why_no_driver, why;
  const int driver = driver_version(why_no_driver);
  if (!why_no_driver.empty()) {
    why = "no NVIDIA driver is installed (" + why_no_driver + ")";
  } else if (driver < CUDART_VERSION / 1000 * 1000) {
    why = "the NVIDIA driver is too old: it knows CUDA " + version_text(driver) +
          ", this plugin was built with CUDA " + version_text(CUDART_VERSION) +
          "; install a newer driver";
  } else if (code == cudaErrorNoDevice || code == cudaSuccess) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    why = "the NVIDIA driver finds no device";
    if (visible) why += " (CUDA_VISIBLE_DEVICES is \"" + std::string(visible) + "\")";
  } else {
    why = std::string("the NVIDIA driver does not start: ") + cudaGetErrorString(code) + " (" +
          cudaGetErrorName(code) + ")";
  }
  throw sdk::Error(TN_CODE_UNAVAILABLE, why);
}

int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, ordinal), "cudaDeviceGetAttribute");
  return value;
}

uint32_t count_devices() {
  int count = 0;
  cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0) no_devices(code);
  return static_cast<uint32_t>(count);
}

constexpr int kOldest = TENON_CUDA_OLDEST;  // the oldest architecture of the kernels

void fill_facts(tn_device& d) {
  d.multiprocessors = attribute(cudaDevAttrMultiProcessorCount, d.ordinal);
  d.threads_per_multiprocessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor, d.ordinal);
  d.l2_bytes = static_cast<uint64_t>(attribute(cudaDevAttrL2CacheSize, d.ordinal));
  d.capability = attribute(cudaDevAttrComputeCapabilityMajor, d.ordinal) * 10 +
                 attribute(cudaDevAttrComputeCapabilityMinor, d.ordinal);
  if (d.capability < kOldest)
    throw sdk::Error(
        TN_CODE_UNAVAILABLE,
        sdk::text("device {} has compute capability {}.{}; this plugin was built "
                  "for {}.{} and newer",
                  d.ordinal, d.capability / 10, d.capability % 10, kOldest / 10, kOldest % 10));
}

}  // namespace

tn_error* device_count(tn_backend*, uint32_t* count) {
  return sdk::guard([&] { *count = count_devices(); });
}

tn_error* device_open(tn_backend*, uint32_t index, tn_device** out) {
  return sdk::guard([&] {
    uint32_t count = count_devices();
    if (index >= count)
      throw sdk::Error(TN_CODE_UNAVAILABLE,
                       sdk::text("there are {} devices, index {} was asked for", count, index));
    auto device = std::make_unique<tn_device>();
    device->ordinal = static_cast<int>(index);
    fill_facts(*device);
    *out = device.release();
  });
}

void device_close(tn_device* device) { delete device; }

tn_error* device_info(tn_device* device, tn_device_info* out) {
  return sdk::guard([&] {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device->ordinal), "cudaGetDeviceProperties");
    int driver = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    // Asking how much is free would start the device, which takes time and memory of its own: only
    // where it has started.
    size_t free = 0, total = 0;
    if (device->started) {
      CurrentDevice current(device);
      check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    }
    const auto architecture = sdk::text("sm_{}{}", properties.major, properties.minor),
               runs = "driver for CUDA " + version_text(driver);
    sdk::fill_info(out, {.name = properties.name,
                         .memory_total = properties.totalGlobalMem,
                         .memory_free = free,
                         .architecture = architecture,
                         .driver = runs});
  });
}

}  // namespace tenon::cuda
