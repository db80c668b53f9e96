// The device: it computes on the thread that calls it, in the host's memory. Replace these
// functions by those of your hardware.
#include <tenon/plugins/sdk/backend.h>

#include "kernels.h"

struct tn_device {
  uint32_t index;
};

namespace accelerator {

namespace {

const tn_host* g_host = nullptr;

tn_error* device_count(tn_backend*, uint32_t* count) {
  *count = 1;
  return nullptr;
}

tn_error* device_open(tn_backend*, uint32_t index, tn_device** device) {
  return sdk::guard([&] { *device = new tn_device{index}; });
}

void device_close(tn_device* device) { delete device; }

tn_error* device_info(tn_device* device, tn_device_info* info) {
  return sdk::guard([&] {
    const auto name = sdk::text("C++ template device {}", device->index);
    sdk::fill_info(info, {.flags = TN_DEVICE_CALLER_THREAD | TN_DEVICE_LOGICAL,
                          .name = name,
                          .threads = host().thread_count(host().context)});
  });
}

tn_error* init(const tn_host* services, tn_backend_api* api) {
  g_host = services;
  tn_backend_api table{};
  table.device_count = device_count;
  table.device_open = device_open;
  table.device_close = device_close;
  table.device_info = device_info;
  table.memory_kinds = sdk::host_memory_kinds;
  table.memory_alloc = sdk::host_memory_alloc;
  table.memory_free = sdk::host_memory_free;
  table.copy = sdk::host_copy;
  table.supports = sdk::supports_by_creating;
  table.plan_create = sdk::plan_of_kernels;
  return sdk::fill_table(api, table);
}

}  // namespace

const tn_host& host() { return *g_host; }

}  // namespace accelerator

extern "C" TN_EXPORT constexpr tn_plugin_info tn_plugin_entry =
    tenon::sdk::device_plugin("template_cpp", "1.0", accelerator::init);
