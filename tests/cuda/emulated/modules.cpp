// Kernels that are loaded while the program runs: shared objects that the emulated NVRTC has made.
// With TENON_EMULATED_REFUSE_KERNELS=library, or function, there is no memory for loading them.
#include "modules.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include "calls.h"
#include "counters.h"

extern "C" {
extern tenon::emulated::CudaCounters tenon_emulated_cuda_counters;
}

using namespace tenon::emulated;

namespace {

constexpr size_t kMaxBytes = 4096;

struct Module {
  void (*run)(const void* arguments);
  size_t argument_bytes;
  std::string_view name;
};

// A thread of a launch, with a copy of the kernel's one parameter.
struct Thread {
  void (*run)(const void* arguments);
  alignas(16) unsigned char arguments[kMaxBytes];
  void operator()() const { run(arguments); }
};

uint16_t bits_of(auto x) {
  uint16_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
template <class T>
T of_bits(uint16_t bits) {
  T x;
  std::memcpy(static_cast<void*>(&x), &bits, sizeof x);
  return x;
}

constexpr DeviceOfModule kDevice = {
    &threadIdx,
    &blockIdx,
    &blockDim,
    &gridDim,
    [](uint16_t bits) { return __half2float(of_bits<__half>(bits)); },
    [](float x) { return bits_of(__float2half_rn(x)); },
    [](uint16_t bits) { return __bfloat162float(of_bits<__nv_bfloat16>(bits)); },
    [](float x) { return bits_of(__float2bfloat16_rn(x)); },
    block_barrier,
    warp_barrier,
    exchange,
    lane,
    [] { ++tenon_emulated_cuda_counters.wide_accesses; },
};

bool refuses(std::string_view what) {
  const char* refused = std::getenv("TENON_EMULATED_REFUSE_KERNELS");
  return refused && what == refused;
}

// The bytes begin with an ELF header, which says where the object ends: behind its table of
// sections.
size_t size_of(const void* code) {
  const auto* bytes = static_cast<const unsigned char*>(code);
  if (std::memcmp(bytes, "\177ELF", 4) != 0) return 0;
  uint64_t sections;
  uint16_t each, count;
  std::memcpy(&sections, bytes + 40, sizeof sections);
  std::memcpy(&each, bytes + 58, sizeof each);
  std::memcpy(&count, bytes + 60, sizeof count);
  return sections + uint64_t{each} * count;
}

// By a name of its own, as the dynamic linker takes two files of one name for one.
void* open_object(const void* code, size_t bytes) {
  std::string path = (std::filesystem::temp_directory_path() / "tenon-kernel-XXXXXX").string();
  const int fd = mkstemp(path.data());
  if (fd < 0) return nullptr;
  void* object = nullptr;
  if (write(fd, code, bytes) == static_cast<ssize_t>(bytes))
    object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  close(fd);
  unlink(path.c_str());
  return object;
}

}  // namespace

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**,
                                unsigned, cudaLibraryOption*, void**, unsigned) {
  if (refuses("library")) return answer(cudaErrorMemoryAllocation);
  const size_t bytes = size_of(code);
  void* object = bytes ? open_object(code, bytes) : nullptr;
  if (!object) return answer(cudaErrorInvalidKernelImage);
  reinterpret_cast<void (*)(const DeviceOfModule*)>(dlsym(object, kBindSymbol))(&kDevice);
  *library = static_cast<cudaLibrary_t>(object);
  return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  const auto* found = static_cast<const char*>(dlsym(library, kNameSymbol));
  if (!found || std::string_view(found) != name) return answer(cudaErrorSymbolNotFound);
  auto* module = new Module;
  module->run = reinterpret_cast<void (*)(const void*)>(dlsym(library, kRunSymbol));
  module->argument_bytes = *static_cast<const size_t*>(dlsym(library, kBytesSymbol));
  module->name = found;
  *kernel = reinterpret_cast<cudaKernel_t>(module);
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  if (refuses("function")) return answer(cudaErrorMemoryAllocation);
  return *attributes = {}, cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel,
                                void** arguments) {
  const auto* module = static_cast<const Module*>(kernel);
  if (config->numAttrs != 0) return answer(cudaErrorNotSupported);
  if (module->argument_bytes > kMaxBytes) return answer(cudaErrorInvalidValue);
  Thread thread{module->run, {}};
  std::memcpy(thread.arguments, arguments[0], module->argument_bytes);
  return launch(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream, kernel,
                thread);
}

}  // extern "C"
