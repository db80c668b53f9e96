// Everything that the runtime has for one device: its plugin, stream, memory and plans.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include <tenon/core/device.h>
#include <tenon/core/runtime/allocator.h>
#include <tenon/core/runtime/stream.h>
#include <tenon/plugins/host/backend.h>

namespace tenon {

// A plugin that can make plans for the device: an overlay, or the plugin of the device. Overlays
// come first, ordered by preference and priority.
struct Planner {
  const plugins::Backend* backend;
  tn_device* device;
  bool preferred;  // an overlay whose plans are used whatever they cost
};

// The index of the logical device whose stream works beside those of the others
// (core/dispatch/beside.h). It is the largest there can be, and no program sees it.
constexpr uint32_t kBesideIndex = UINT16_MAX;
// "cpu:1", or "cpu (beside)".
std::string lane_of(Device device);

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
  bool host_visible = false;  // the host can access the memory of tensors
  bool caller_thread = false;
  std::vector<Planner> planners;
  std::unique_ptr<Stream> stream;
  // The stream of large copies that come to a device that computes on threads of the host, beside
  // its other work (core/runtime/arrival.h). The first call makes it.
  Stream& copies();
  std::unique_ptr<Allocator> memory;
  std::unique_ptr<Allocator> pinned;  // null if the device offers none
  std::unique_ptr<PlanStore> plans;   // a PlanCache of core/dispatch

  // The largest possible size of one allocation in the memory of the device. Sizes up to it can be
  // rounded up without overflow.
  static constexpr uint64_t kMaxAddressable = uint64_t{1} << 62;
  uint64_t max_bytes() const { return max_bytes_; }
  // Throws the OutOfMemoryError "<what>cannot allocate <bytes> bytes on cpu:0 (…)".
  [[noreturn]] void refuse_allocation(uint64_t bytes, const std::string& what = {}) const;

  // Its streams that exist.
  std::vector<Stream*> streams() const;

  // The recordings that exist. They are closed before the stream is.
  void add_recording(Recording* recording);
  void remove_recording(Recording* recording);
  void close_recordings();

 private:
  uint64_t max_bytes_ = kMaxAddressable;
  ForkMutex mutex_{ForkOrder::devices};
  std::vector<Recording*> recordings_;
  std::unique_ptr<Stream> own_copies_;
  std::atomic<Stream*> copies_{nullptr};  // null until there is one
};

// Returns the context of a device, which the first call opens. Throws a PluginError or DeviceError
// if that fails.
DeviceContext& context_of(Device device);
// Returns the contexts that were opened so far, in order.
std::vector<DeviceContext*> open_contexts();
// Call this after a plugin with streams did something that may have loaded further libraries; see
// context.cpp.
void close_before_new_libraries();

// The description of a device for users, as the command `tenon devices` prints it.
struct DeviceDescription {
  Device device;
  std::string name;
  uint64_t memory_total;
  uint64_t memory_free;
  uint32_t threads;
  bool logical;
  std::string architecture, driver;  // empty if the plugin does not say
};
// Opens the devices of a backend and returns their descriptions.
TENON_API std::vector<DeviceDescription> describe_devices(std::string_view type);

}  // namespace tenon
