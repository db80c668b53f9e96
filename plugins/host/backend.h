// A loaded plugin: its function table, made safe to read.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <tenon/core/api.h>
#include <tenon/core/base/fork.h>
#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/host/checked_api.h>

namespace tenon::plugins {

// The description that a plugin gives of itself.
struct BackendInfo {
  std::string name;     // "cpu"
  std::string version;  // the version of the plugin, for people
  std::string library;  // canonical path of the library
  tn_plugin_kind kind = TN_PLUGIN_DEVICE;
  uint32_t abi_minor = 0;  // the minor version of the ABI that it was built with
  std::string overlays;    // the name of the backend that an overlay extends
  int32_t priority = 0;
};

// A backend exists as long as the process. Any thread may use it.
class TENON_API Backend {
 public:
  explicit Backend(BackendInfo info);
  // Sets the function table. Call it once, before anything else.
  void start(const tn_backend_api& table) { api_.set_table(table); }
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const BackendInfo& info() const { return info_; }
  const std::string& name() const { return info_.name; }

  // Returns the plugin's functions.
  const CheckedApi& api() const { return api_; }

  // Returns a table of TN_EXT_*, or NULL if the plugin does not offer it. Check fields that were
  // added after its version 1 with TN_HAS.
  const void* extension(const char* name, uint32_t version) const {
    return api_.extension(name, version);
  }
  template <class Table>
  const Table* extension(const char* name, uint32_t version) const {
    return static_cast<const Table*>(extension(name, version));
  }

  // Returns how many devices there are now. Throws a DeviceError with the plugin's reason if it
  // cannot tell.
  uint32_t device_count() const;
  // Opens device `index` on the first call, and returns it. The backend closes it at exit. Throws a
  // DeviceError if it cannot be opened or lacks functions that a device of its kind must have.
  tn_device* open_device(uint32_t index);
  // Returns the description of a device. Fields that the plugin does not know are 0. The flags of
  // an open device are those that it had when it was opened: functions were chosen by them. Throws
  // a DeviceError if the plugin fails.
  tn_device_info device_info(tn_device* device) const;

  // The three steps at exit, which the registry calls for all plugins. Only the first call of each
  // has an effect.
  void drain() noexcept;
  void close_devices() noexcept;
  void shutdown() noexcept;
  bool closed() const;

 private:
  struct Opened {
    tn_device* device;
    tn_device_flags flags;
  };
  tn_device_info ask_device_info(tn_device* device) const;
  void require_usable(uint32_t index, tn_device_flags flags) const;

  const BackendInfo info_;
  CheckedApi api_;
  mutable ForkMutex mutex_{ForkOrder::backends};
  std::map<uint32_t, Opened> devices_;
  bool drained_ = false;
  bool closed_ = false;
  bool shut_down_ = false;
};

// Returns the text of an error object with its details, and destroys the object. It can handle
// objects that are filled incorrectly.
TENON_API std::string take_message(tn_error* error) noexcept;
// Returns the message of an error and, in brackets, those of its details that the message does not
// contain: "there is no driver [driver=none]". It is safe to print.
TENON_API std::string text_of(const tn_error& error);

}  // namespace tenon::plugins
