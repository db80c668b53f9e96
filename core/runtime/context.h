// Everything the runtime holds for one device: its plugin, stream, memory and plans.
#pragma once

#include <memory>
#include <vector>

#include <tenon/core/device.h>
#include <tenon/core/runtime/allocator.h>
#include <tenon/core/runtime/stream.h>
#include <tenon/plugins/host/backend.h>

namespace tenon {

// What can make plans for the device: overlays by priority, then the plugin itself.
struct Planner {
  const plugins::Backend* backend;
  tn_device* device;
};

class Recording;

class DeviceContext {
 public:
  DeviceContext(Device device, plugins::Backend& backend,
                const std::vector<plugins::Backend*>& overlays);
  ~DeviceContext();

  const Device device;
  const plugins::Backend& backend;
  tn_device* handle = nullptr;
  tn_device_info info;
  bool host_visible = false;  // where tensors live
  bool caller_thread = false;
  std::vector<Planner> planners;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Allocator> memory;
  std::unique_ptr<Allocator> pinned;  // null where the device offers none
  std::unique_ptr<PlanStore> plans;   // a PlanCache of core/dispatch

  // What a single allocation in the device's memory may have; more is never there, and sizes up to
  // it can be rounded up.
  static constexpr uint64_t kMaxAddressable = uint64_t{1} << 62;
  uint64_t most_bytes() const { return most_bytes_; }
  // OutOfMemoryError "<what>cannot allocate <bytes> bytes on cpu:0 (…)".
  [[noreturn]] void refuse_allocation(uint64_t bytes, const std::string& what = {}) const;

  // Recordings that live; they are closed before the stream is.
  void add_recording(Recording* recording);
  void remove_recording(Recording* recording);
  void close_recordings();

 private:
  uint64_t most_bytes_ = kMaxAddressable;
  ForkMutex mutex_{ForkOrder::devices};
  std::vector<Recording*> recordings_;
};

// The context of a device, opened on the first call. PluginError or DeviceError where that fails.
DeviceContext& context_of(Device device);
// Those opened so far, in order.
std::vector<DeviceContext*> open_contexts();
// To be called after a plugin with streams was asked for what may have loaded libraries of its own:
// see context.cpp.
void close_before_new_libraries();

// For people: `tenon devices`.
struct DeviceDescription {
  Device device;
  std::string name;
  uint64_t memory_total;
  uint64_t memory_free;
  uint32_t threads;
  bool logical;
  std::string architecture, driver;  // empty where the plugin does not say
};
// Devices of a backend; opens them.
TENON_API std::vector<DeviceDescription> describe_devices(std::string_view type);

}  // namespace tenon
