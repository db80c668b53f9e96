// Everything that the runtime has for one stream of a device: plugin, queue, memory and plans.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <tenon/core/device.h>
#include <tenon/core/device_scope.h>
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

class Recording;

// What a device has streams for, besides the one that runs what programs call. A stream for each is
// made when it is first needed.
enum class Extra : uint32_t {
  copies = 1,  // large copies to a device that computes on threads of the host
  sums = 2,    // of gradients, while the backward pass runs (core/dispatch/beside.h)
};

// A device has one `main` context, which is what context_of() returns, and one for each further
// stream: the two above, and those of users (core/runtime/stream_guard.h). All have the plugin's
// device and one log of failures in common. Queue, memory and plans are each context's own, because
// memory is reused in the order of one queue, and runs of one plan never overlap. Which context the
// memory of a tensor is from is no more than that: any stream may read and change it, if it waits
// as core/runtime/order.h says.
class DeviceContext {
 public:
  DeviceContext(Device device, plugins::Backend& backend,
                const std::vector<plugins::Backend*>& overlays);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  const Device device;
  const std::string name;  // "cpu:1", or "cpu:1 copies"
  const plugins::Backend& backend;
  DeviceContext& main;
  const uint32_t number;  // of the stream in the device; 0 for `main`
  tn_device* handle = nullptr;
  tn_device_info info;
  bool host_visible = false;  // the host can access the memory of tensors
  bool caller_thread = false;
  std::vector<Planner> planners;
  std::unique_ptr<DeviceStream> stream;
  std::unique_ptr<Allocator> memory;
  std::unique_ptr<Allocator> pinned;  // of `main` alone, and null if the device offers none
  std::unique_ptr<PlanStore> plans;   // a PlanCache of core/dispatch

  // The largest possible size of one allocation in the memory of the device. Sizes up to it can be
  // rounded up without overflow.
  static constexpr uint64_t kMaxAddressable = uint64_t{1} << 62;
  uint64_t max_bytes() const { return max_bytes_; }
  // Throws the OutOfMemoryError "<what>cannot allocate <bytes> bytes on cpu:0 (…)".
  [[noreturn]] void refuse_allocation(uint64_t bytes, const std::string& what = {}) const;

  // The context of the device for such work. The first call makes it.
  DeviceContext& extra(Extra work);
  // Returns a context of the device that no other stream of a user has. Throws a DeviceError if
  // kMaxStreams are in use. `release_stream` takes it back, and the next one is queued behind it.
  DeviceContext& take_stream();
  void release_stream(DeviceContext& context) noexcept;
  static constexpr uint32_t kMaxStreams = 64;
  // The stream of this device that gave out the ticket.
  DeviceStream& stream_of(uint64_t ticket) const {
    return *numbered(DeviceStream::number_of(ticket)).stream;
  }

  // The context of the device with this number, which exists.
  DeviceContext& numbered(uint32_t n) const {
    return n ? *main.extras_[n].load(std::memory_order_acquire) : main;
  }
  // All contexts of the device that exist, `main` first, and their streams.
  std::vector<DeviceContext*> contexts() const;
  std::vector<DeviceStream*> streams() const;
  // Waits for all that is queued on these streams, whatever becomes of it.
  void wait_for_streams() const;

  // The recordings that exist. They are closed before the stream is.
  void add_recording(Recording* recording);
  void remove_recording(Recording* recording);
  void close_recordings();

 private:
  DeviceContext(DeviceContext& main, uint32_t number, std::string name);
  DeviceContext& make_extra(uint32_t number, std::string name);

  uint64_t max_bytes_ = kMaxAddressable;
  ForkMutex mutex_{ForkOrder::devices};
  std::vector<Recording*> recordings_;
  // The further contexts of `main`, by number; null where there is none. They are never destroyed
  // before it.
  static constexpr uint32_t kFirstOfUsers = 3;
  std::array<std::atomic<DeviceContext*>, kFirstOfUsers + kMaxStreams> extras_{};
  std::array<bool, kMaxStreams> taken_{};
};

// Returns the context of a device, which the first call opens. Throws a PluginError or DeviceError
// if that fails.
DeviceContext& context_of(Device device);
// Returns the context in which this thread works on the device: that of its innermost StreamGuard
// for the device, or else `main`. What a stream graph captures, and what a compiled function is
// made of, is in order, whatever guards say.
DeviceContext& scoped_context(Device device);
inline DeviceContext& working_context(Device device) {
  if (innermost_scope && innermost_scope->streams) [[unlikely]]
    return scoped_context(device);
  return context_of(device);
}
// While it lives, this thread works on the device in this context.
class ContextScope {
 public:
  explicit ContextScope(DeviceContext& context) : scope_{context.device, &context} {
    enter_scope(scope_);
  }
  ~ContextScope() { leave_scope(scope_); }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  detail::DeviceScope scope_;
};

// While it lives, this thread works on the first stream of each device, whatever StreamGuards say.
class FirstStreams {
 public:
  FirstStreams() {
    enter_scope(scope_);
    scope_.guard = scope_.before ? scope_.before->guard : nullptr;
    scope_.streams = nullptr;
  }
  ~FirstStreams() { leave_scope(scope_); }
  FirstStreams(const FirstStreams&) = delete;
  FirstStreams& operator=(const FirstStreams&) = delete;

 private:
  detail::DeviceScope scope_;
};

// Returns the contexts that were opened so far, in order, without those of further streams.
std::vector<DeviceContext*> open_contexts();
// Call this after a plugin with streams did something that may have loaded further libraries; see
// context.cpp.
void close_before_new_libraries();

// Call this before a plugin is loaded: one that ends the process while it is loaded is named.
void name_who_ends_the_process();

// The description of a device for users, as the command `tenon devices` prints it.
struct DeviceDescription {
  Device device;
  std::string name;
  uint64_t memory_total;
  uint64_t memory_free;
  uint32_t threads;
  bool logical;
  std::string architecture, driver;  // empty if the plugin does not say
  std::string error = {};            // why it does not open: then no more is known of it
};
// Opens the devices of a backend and returns their descriptions.
TENON_API std::vector<DeviceDescription> describe_devices(std::string_view type);

}  // namespace tenon
