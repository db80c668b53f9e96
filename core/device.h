// A device by name: "cpu", "cpu:1", "cuda:0".
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/api.h>

namespace tenon {

// Backend name and index. Making one parses the text only (DeviceError where it is malformed); the
// plugin is loaded when the device is first used.
class TENON_API Device {
 public:
  constexpr Device() = default;  // cpu:0
  Device(std::string_view text);
  Device(const char* text) : Device(std::string_view(text)) {}
  Device(const std::string& text) : Device(std::string_view(text)) {}
  Device(std::string_view type, uint32_t index);

  std::string_view type() const;
  uint32_t index() const { return index_; }
  // Position of the type in the table of names seen so far; cpu is 0.
  uint32_t type_id() const { return type_; }
  std::string str() const;  // "cpu:0"

  friend bool operator==(const Device&, const Device&) = default;
  // As str(). Found for a Device alone, not for whatever could become one.
  friend TENON_API std::ostream& operator<<(std::ostream& out, const Device& device);

 private:
  uint16_t type_ = 0;
  uint16_t index_ = 0;
};

// "cpu:0,cpu:1" or "cuda:0": one or more, without blanks. DeviceError says which entry is none.
TENON_API std::vector<Device> parse_devices(std::string_view list);
// How many devices of a type there are: what the plugin counts; for logical devices (cpu) those
// opened so far, at least 1, or TENON_CPU_DEVICES. Loads the plugin.
TENON_API uint32_t device_count(std::string_view type);

// Where factories (`zeros`, `randn`, …) put tensors when no device is given; cpu:0 unless a guard
// is active on this thread.
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
// True while a DeviceGuard is active on this thread: parameters with replicas are then read on that
// device.
TENON_API bool device_guard_active();

// Waits for all queued work of a device, or of all. Throws the first error of that work that nobody
// has seen yet.
TENON_API void synchronize(Device device);
TENON_API void synchronize();

// Allocator statistics of a device, in bytes and counts since the program began.
struct MemoryStats {
  uint64_t allocated = 0;  // in live tensors
  uint64_t peak_allocated = 0;
  uint64_t reserved = 0;            // got from the system, cached blocks included
  uint64_t allocations = 0;         // requests served
  uint64_t system_allocations = 0;  // of these, asked of the backend
  uint64_t system_frees = 0;
};
TENON_API MemoryStats memory_stats(Device device);
// Gives cached blocks back to the system. Waits for the device.
TENON_API void empty_cache(Device device);

}  // namespace tenon
