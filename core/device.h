// Devices, which are named by texts such as "cpu", "cpu:1" and "cuda:0".
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/api.h>

namespace tenon {

// The name of a backend and an index: "cuda:1", or "cuda" for index 0. Making one only parses the
// text: it throws a DeviceError if the text is malformed or the index is above 65535, and the
// plugin is loaded when the device is first used.
class TENON_API Device {
 public:
  // Makes cpu:0.
  constexpr Device() = default;
  // Make the device of a text such as "cuda:1".
  Device(std::string_view text);
  Device(const char* text) : Device(std::string_view(text)) {}
  Device(const std::string& text) : Device(std::string_view(text)) {}
  // Makes the device with this index of the backend `type`.
  Device(std::string_view type, uint32_t index);

  // Returns the name of the backend, "cpu".
  std::string_view type() const;
  // Returns the number after the colon.
  uint32_t index() const { return index_; }
  // Returns the position of the type in the table of names seen so far; cpu is 0.
  uint32_t type_id() const { return type_; }
  // Returns "cpu:0".
  std::string str() const;

  // Returns whether both have the same type and index.
  friend bool operator==(const Device&, const Device&) = default;
  // Prints str(). It is a hidden friend, so that types which convert to a Device are not printed by
  // it.
  friend TENON_API std::ostream& operator<<(std::ostream& out, const Device& device);

 private:
  uint16_t type_ = 0;
  uint16_t index_ = 0;
};

// Returns the devices of a list such as "cpu:0,cpu:1" or "cuda:0": one or more, with commas and
// without blanks between them. Throws a DeviceError that names the entry which is none.
TENON_API std::vector<Device> parse_devices(std::string_view list);
// Returns how many devices of a type can be used: as many as its plugin counts; for logical devices
// (cpu), which are opened on demand, those opened so far, at least 1, or TENON_CPU_DEVICES if that
// is more. Loads the plugin. Returns 0 if there is no such plugin, or if it has no devices here, as
// cuda without a driver; using such a device throws the PluginError that tells why. Throws a
// ValueError if TENON_CPU_DEVICES is not a number.
TENON_API uint32_t device_count(std::string_view type);

class DeviceContext;
namespace detail {
// The scopes of a thread that say where it works, the innermost first; they live on its stack.
struct DeviceScope {
  Device device;
  DeviceContext* stream = nullptr;  // of a StreamGuard; null for a DeviceGuard
  const DeviceScope *before = nullptr, *guard = nullptr, *streams = nullptr;  // the last of a kind
};
}  // namespace detail

// Returns the device on which factories (`zeros`, `randn`, …) make tensors if none is given: that
// of this thread's innermost DeviceGuard, otherwise cpu:0.
TENON_API Device default_device();
// Makes factories of this thread use its device while it lives. Guards may be nested, and have to
// end on the thread that made them.
class TENON_API DeviceGuard {
 public:
  // Begins the scope. The device is not opened.
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  detail::DeviceScope scope_;
};
// Returns whether a DeviceGuard is active on this thread: parameters with replicas are then read on
// that device.
TENON_API bool device_guard_active();

// Waits for all queued work of a device. Throws the first error of that work that was
// not reported yet, and a DeviceError if there is no such device or it was lost.
TENON_API void synchronize(Device device);
// Waits for all queued work of all devices. Throws the first error of it that was not reported
// yet.
TENON_API void synchronize();

// Holds what the allocator of a device has counted: bytes, and events since the program started.
struct MemoryStats {
  // Count the bytes in live tensors: those of now, and the most that there ever were; of a device
  // with several streams, the sum of what was the most on each.
  uint64_t allocated = 0;
  uint64_t peak_allocated = 0;
  // Counts the bytes that were obtained from the system, with the blocks that are cached.
  uint64_t reserved = 0;
  // Count the requests for memory that were served, and those that went to the backend.
  uint64_t allocations = 0;
  uint64_t system_allocations = 0;
  // Counts how often memory was given back to the backend.
  uint64_t system_frees = 0;
};
// Returns the statistics of a device, and opens it if need be. Throws a DeviceError if there is no
// such device.
TENON_API MemoryStats memory_stats(Device device);
// Returns cached blocks to the system. Waits for the device first. Throws a DeviceError if there is
// no such device.
TENON_API void empty_cache(Device device);

}  // namespace tenon
