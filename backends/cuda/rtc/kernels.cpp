#include "rtc/kernels.h"

#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "rtc/compiler.h"
#include "rtc/disk_cache.h"
#include "runtime/check.h"
#include "runtime/device.h"

namespace tenon::cuda {
namespace {

// A kernel stays loaded, because work that is queued may need it after its plan is gone.
constexpr size_t kMaxKernels = 4096;

struct LoadedKernel {
  std::mutex mutex;
  const void* kernel = nullptr;
  std::set<int> devices;  // that the driver has loaded it for
  std::string why_not;    // it was refused
};

class Kernels {
 public:
  std::shared_ptr<LoadedKernel> entry(const std::string& key) {
    std::lock_guard guard(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) return found->second;
    if (entries_.size() == kMaxKernels)
      sdk::unsupported("a process keeps at most {} kernels that were compiled in it", kMaxKernels);
    return entries_[key] = std::make_shared<LoadedKernel>();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<LoadedKernel>> entries_;
};

// What was compiled for another driver, or is no machine code, is a reason to do without it for
// good. A lost device is not, nor a device that has no memory for it now.
void check_load(cudaError_t code, const char* what) {
  try {
    check(code, what);
  } catch (const sdk::Error& e) {
    if (e.code() == TN_CODE_DEVICE_LOST || e.code() == TN_CODE_OUT_OF_MEMORY) throw;
    sdk::unsupported(std::string(e.what()));
  }
}

#if CUDART_VERSION >= 12080
const void* load(const std::string& code, const char* name) {
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  check_load(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
             "cudaLibraryLoadData");
  check_load(cudaLibraryGetKernel(&kernel, library, name), "cudaLibraryGetKernel");
  return reinterpret_cast<const void*>(kernel);
}
#else
const void* load(const std::string&, const char*) {
  sdk::unsupported("this plugin was built with a toolkit before 12.8, which loads no kernels");
}
#endif

const void* compiled(const std::string& key, const std::string& source, const char* name,
                     int capability) {
  const DiskCache files(DiskCache::default_folder());
  if (const auto kept = files.find(key)) try {
      return load(*kept, name);
    } catch (const sdk::Error& e) {
      if (e.code() != TN_CODE_UNSUPPORTED) throw;
    }
  const std::string code = compile(source, capability);
  const void* kernel = load(code, name);
  files.store(key, code);
  return kernel;
}

}  // namespace

const void* kernel_of(const tn_device* device, const std::string& source, const char* name) {
  static auto& kernels = *new Kernels;  // never destroyed: the driver may be gone before
  const std::string key = compiler_key(device->capability) + source;
  const auto loaded = kernels.entry(key);
  std::lock_guard guard(loaded->mutex);
  if (!loaded->why_not.empty()) sdk::unsupported(loaded->why_not);
  try {
    if (!loaded->kernel) loaded->kernel = compiled(key, source, name, device->capability);
    // The driver loads it for the device now, and not at its first launch, which may be captured.
    if (!loaded->devices.contains(device->ordinal)) {
      cudaFuncAttributes attributes;
      check_load(cudaFuncGetAttributes(&attributes, loaded->kernel), "cudaFuncGetAttributes");
      loaded->devices.insert(device->ordinal);
    }
    return loaded->kernel;
  } catch (const sdk::Error& e) {
    if (e.code() == TN_CODE_UNSUPPORTED) loaded->why_not = e.what();
    throw;
  }
}

}  // namespace tenon::cuda
