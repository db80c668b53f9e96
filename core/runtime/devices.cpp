// What users ask of a device as a whole.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/device.h>
#include <tenon/core/error.h>
#include <tenon/core/runtime/check/work.h>
#include <tenon/core/runtime/context.h>
#include <tenon/plugins/host/registry.h>

namespace tenon {

namespace {

// Plugins may be loaded here before a device is opened.
uint32_t counted_by_plugin(std::string_view type) {
  if (check_settings().on) checked::start_watching();
  name_who_ends_the_process();
  return plugins::registry().load(type).device_count();
}

// How many devices there are, `counted` of them by the plugin.
uint32_t with_logical_devices(std::string_view type, uint32_t counted) {
  if (type == "cpu")
    counted = std::max(counted, count_from_environment("TENON_CPU_DEVICES").value_or(0));
  for (auto* c : open_contexts())
    if (c->device.type() == type && (c->info.flags & TN_DEVICE_LOGICAL))
      counted = std::max(counted, c->device.index() + 1);
  return counted;
}

DeviceDescription described(Device device) {
  auto& c = context_of(device);
  c.stream->require_open();
  auto now = c.backend.device_info(c.handle);
  return {c.device,
          printable(now.name),
          now.memory_total,
          now.memory_free,
          now.threads,
          (now.flags & TN_DEVICE_LOGICAL) != 0,
          printable(now.architecture),
          printable(now.driver)};
}

}  // namespace

uint32_t device_count(std::string_view type) {
  uint32_t counted = 0;
  try {
    counted = counted_by_plugin(type);
  } catch (const OutOfMemoryError&) {  // there may be devices
    throw;
  } catch (const DeviceError&) {  // no plugin, no driver or no card: no devices
  }
  return with_logical_devices(type, counted);
}

std::vector<DeviceDescription> describe_devices(std::string_view type) {
  std::vector<DeviceDescription> all;
  const uint32_t counted = counted_by_plugin(type);
  for (uint32_t i = 0, n = with_logical_devices(type, counted); i < n; ++i) {
    const Device device(type, i);
    try {
      all.push_back(described(device));
    } catch (const Error& e) {
      all.push_back({device, "", 0, 0, 0, false, "", "", e.what()});
    }
  }
  return all;
}

void synchronize(Device device) {
  auto& c = context_of(device);
  c.wait_for_streams();
  for (auto* s : c.streams()) s->wait_for_all();
  c.stream->require_device();
}

void synchronize() {
  auto all = open_contexts();
  for (auto* c : all) c->wait_for_streams();
  for (auto* c : all)
    for (auto* s : c->streams()) s->wait_for_all();
}

MemoryStats memory_stats(Device device) {
  MemoryStats sum;
  for (auto* context : context_of(device).contexts()) {
    const MemoryStats s = context->memory->stats();
    sum.allocated += s.allocated;
    sum.peak_allocated += s.peak_allocated;
    sum.reserved += s.reserved;
    sum.allocations += s.allocations;
    sum.system_allocations += s.system_allocations;
    sum.system_frees += s.system_frees;
  }
  return sum;
}

void empty_cache(Device device) {
  auto& c = context_of(device);
  c.wait_for_streams();
  for (auto* context : c.contexts()) context->memory->empty_cache();
  if (c.pinned) c.pinned->empty_cache();
}

}  // namespace tenon
