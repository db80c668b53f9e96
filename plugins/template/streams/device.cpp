// A device with streams and events of its own: work is queued, and the caller goes on.
#include <tenon/plugins/sdk/backend.h>
#include <tenon/plugins/sdk/streams.h>

#include "kernels.h"

struct tn_device {
  uint32_t index;
};

// What the handles of the ABI stand for. With a driver, these hold its queue and its event.
struct tn_stream : tenon::sdk::ThreadStream {};
struct tn_event : tenon::sdk::ThreadEvent {};

namespace accelerator {

namespace {

constexpr uint32_t kDevices = 2;
const tn_host* g_host = nullptr;

tn_error* device_count(tn_backend*, uint32_t* count) {
  *count = kDevices;
  return nullptr;
}

tn_error* device_open(tn_backend*, uint32_t index, tn_device** device) {
  return sdk::guard([&] {
    if (index >= kDevices)
      throw sdk::Error(TN_CODE_UNAVAILABLE, sdk::text("there are {} devices", kDevices));
    *device = new tn_device{index};
  });
}

void device_close(tn_device* device) { delete device; }

tn_error* device_info(tn_device* device, tn_device_info* info) {
  return sdk::guard([&] {
    const auto name = sdk::text("template device {} with streams", device->index);
    sdk::fill_info(info, {.name = name});
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
  sdk::fill_streams(table);
  table.copy = sdk::queue_host_copy<>;
  table.supports = sdk::supports_by_creating;
  table.plan_create = sdk::queued_plan_of_kernels<>;
  return sdk::fill_table(api, table);
}

}  // namespace

const tn_host& host() { return *g_host; }

}  // namespace accelerator

extern "C" TN_EXPORT constexpr tn_plugin_info tn_plugin_entry =
    tenon::sdk::device_plugin("template_streams", "1.0", accelerator::init);
