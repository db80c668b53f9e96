// Devices, which are named by texts such as "cpu", "cpu:1" and "cuda:0".
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/api.h>

namespace tenon {

// The name of a backend and an index. The constructor only parses the text (DeviceError if it is
// malformed); the plugin is loaded when the device is first used.
class TENON_API Device {
 public:
  constexpr Device() = default;  // cpu:0
  Device(std::string_view text);
  Device(const char* text) : Device(std::string_view(text)) {}
  Device(const std::string& text) : Device(std::string_view(text)) {}
  Device(std::string_view type, uint32_t index);

  std::string_view type() const;
  uint32_t index() const { return index_; }
  // The position of the type in the table of all names seen so far; cpu is 0.
  uint32_t type_id() const { return type_; }
  std::string str() const;  // "cpu:0"

  friend bool operator==(const Device&, const Device&) = default;
  // Prints str(). It is a hidden friend, so that types which convert to a Device are not printed by
  // it.
  friend TENON_API std::ostream& operator<<(std::ostream& out, const Device& device);

 private:
  uint16_t type_ = 0;
  uint16_t index_ = 0;
};

// Parses a list of one or more devices without blanks, such as "cpu:0,cpu:1". The DeviceError names
// the entry that is not a device.
TENON_API std::vector<Device> parse_devices(std::string_view list);
// Returns the number of devices of a type, as the plugin counts them. For logical devices (cpu) it
// is the number opened so far, at least 1, or TENON_CPU_DEVICES if that is more. Loads the plugin.
TENON_API uint32_t device_count(std::string_view type);

// The device on which factories (`zeros`, `randn`, …) create tensors if no device is given: cpu:0
// unless a DeviceGuard is active on this thread.
TENON_API Device default_device();
class TENON_API DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  Device before_;
  bool active_before_;
};
// Returns true while a DeviceGuard is active on this thread. Parameters with replicas are then read
// on that device.
TENON_API bool device_guard_active();

// Waits for all queued work of one device, or of all devices. Throws the first error of that work
// that was not reported yet.
TENON_API void synchronize(Device device);
TENON_API void synchronize();

// Allocator statistics of a device: bytes, and counts since the program started.
struct MemoryStats {
  uint64_t allocated = 0;  // in live tensors
  uint64_t peak_allocated = 0;
  uint64_t reserved = 0;            // obtained from the system, including cached blocks
  uint64_t allocations = 0;         // requests served
  uint64_t system_allocations = 0;  // requests to the backend
  uint64_t system_frees = 0;
};
TENON_API MemoryStats memory_stats(Device device);
// Returns cached blocks to the system. Waits for the device first.
TENON_API void empty_cache(Device device);

}  // namespace tenon
