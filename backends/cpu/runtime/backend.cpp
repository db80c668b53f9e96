// The cpu backend: host memory, logical devices, plans that run on the caller's thread.
#include <cstdlib>
#include <fstream>
#include <limits>

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <tenon/plugins/sdk/backend.h>

#include "runtime/common.h"
#include "simd/copy.h"

struct tn_device {
  uint32_t index;
};

namespace tenon::cpu {
namespace {

const tn_host* g_host = nullptr;

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kHugePage = uint64_t{2} << 20;
// From here on huge pages save more in page faults than rounding up wastes.
constexpr uint64_t kHugeThreshold = 2 * kHugePage;

constexpr tn_memory_kind kHostMemory{
    sizeof(tn_memory_kind), "host", TN_MEMORY_HOST_VISIBLE | TN_MEMORY_DEVICE_LOCAL, kAlignment, 0};
constexpr const tn_memory_kind* kMemoryKinds[] = {&kHostMemory};

uint64_t ram_bytes() {
  struct sysinfo info {};
  return sysinfo(&info) == 0 ? uint64_t{info.totalram} * info.mem_unit : 0;
}

// "key: value" of a file such as /proc/cpuinfo; empty where there is none.
std::string proc_value(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    auto colon = line.find(':');
    auto begin = colon == line.npos ? line.npos : line.find_first_not_of(" \t", colon + 1);
    if (begin != line.npos) return line.substr(begin);
  }
  return {};
}

tn_error* device_count(tn_backend*, uint32_t* count) {
  *count = 1;
  return nullptr;
}

tn_error* device_open(tn_backend*, uint32_t index, tn_device** device) {
  return sdk::guard([&] { *device = new tn_device{index}; });
}

void device_close(tn_device* device) { delete device; }

tn_error* device_info(tn_device*, tn_device_info* out) {
  return sdk::guard([&] {
    const auto model = proc_value("/proc/cpuinfo", "model name"),
               available = proc_value("/proc/meminfo", "MemAvailable");
    const auto name = sdk::text("{}, {}", model.empty() ? "CPU" : model, TENON_CPU_VARIANT);
    sdk::fill_info(out, {.flags = TN_DEVICE_CALLER_THREAD | TN_DEVICE_LOGICAL,
                         .name = name,
                         .memory_total = ram_bytes(),
                         .memory_free = std::strtoull(available.c_str(), nullptr, 10) * 1024,
                         .threads = thread_count()});
  });
}

tn_error* memory_kinds(tn_device*, const tn_memory_kind* const** kinds, size_t* count) {
  *kinds = kMemoryKinds;
  *count = std::size(kMemoryKinds);
  return nullptr;
}

tn_error* memory_alloc(tn_device*, uint32_t kind, uint64_t bytes, void** memory) {
  return sdk::guard([&] {
    if (kind != 0)
      throw sdk::Error(TN_CODE_INVALID_ARGUMENT, sdk::text("there is no memory kind {}", kind));
    // Linux promises more than it has and kills the process later; what can never fit is refused
    // here.
    uint64_t ram = ram_bytes();
    uint64_t most = ram ? ram : std::numeric_limits<int64_t>::max() / 2;
    void* p = nullptr;
    if (bytes <= most) {
      uint64_t unit = bytes >= kHugeThreshold ? kHugePage : kAlignment;
      uint64_t rounded = (bytes + unit - 1) / unit * unit;
      p = std::aligned_alloc(unit, rounded);
      if (p && unit == kHugePage) madvise(p, rounded, MADV_HUGEPAGE);
    }
    if (!p)
      throw sdk::Error(TN_CODE_OUT_OF_MEMORY, sdk::text("cannot allocate {} bytes", bytes),
                       {{"bytes", std::to_string(bytes)}, {"memory_total", std::to_string(ram)}});
    *memory = p;
  });
}

void memory_free(tn_device*, uint32_t, void* memory, uint64_t) { std::free(memory); }

// Both sides are host memory, whichever logical device they belong to.
tn_error* copy(tn_device*, const tn_copy* c, tn_stream*) {
  constexpr int64_t kCopyGrain = 1 << 20;
  return sdk::guard([&] {
    if (c->bytes == 0 || c->dst == c->src) return;
    parallel_for(static_cast<int64_t>(c->bytes), kCopyGrain,
                 [c](int64_t begin, int64_t end, uint32_t) {
                   copy_row(static_cast<char*>(c->dst) + begin,
                            static_cast<const char*>(c->src) + begin, end - begin);
                 });
  });
}

const void* extension(tn_backend*, const char*, uint32_t) { return nullptr; }

// Plans run on the host's threads, which the host has stopped by then.
tn_error* drain(tn_backend*) { return nullptr; }
void shutdown(tn_backend*) {}

tn_error* init(const tn_host* host, tn_backend_api* api) {
  if (!TN_HAS(tn_host, host, parallel_for))
    return sdk::make_error(TN_CODE_UNSUPPORTED, "the host's services are fewer than ABI 1.0's");
  g_host = host;
  return sdk::fill_table(
      api, {0, nullptr, device_count, device_open, device_close, device_info, memory_kinds,
            memory_alloc, memory_free,
            // Without streams and events: all is done when a call returns.
            nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, copy,
            sdk::supports_by_creating, sdk::plan_of_kernels, extension, drain, shutdown});
}

}  // namespace

const tn_host& host() { return *g_host; }

}  // namespace tenon::cpu

extern "C" TN_EXPORT constexpr tn_plugin_info tn_plugin_entry =
    tenon::sdk::device_plugin("cpu", TENON_CPU_VERSION, tenon::cpu::init);
