// A loaded plugin: its function table, made safe to read.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <tenon/core/api.h>
#include <tenon/core/base/fork.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon::plugins {

// What the plugin says of itself.
struct BackendInfo {
  std::string name;     // "cpu"
  std::string version;  // the plugin's own, for people
  std::string library;  // canonical path
  tn_plugin_kind kind = TN_PLUGIN_DEVICE;
  uint32_t abi_minor = 0;  // that it was built with
  std::string overlays;    // of an overlay: what it lies over
  int32_t priority = 0;
};

// Lives as long as the process; safe from any thread.
class TENON_API Backend {
 public:
  explicit Backend(BackendInfo info);
  void start(const tn_backend_api& api) { api_ = api; }  // once, before anything else is asked
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const BackendInfo& info() const { return info_; }
  const std::string& name() const { return info_.name; }

  // The table at its full size of today. Functions that the plugin does not know are NULL, like
  // those that it does not offer, so no reader needs to look at sizes.
  const tn_backend_api& api() const { return api_; }

  // A table of TN_EXT_*, or NULL where the plugin does not offer it. Test fields added after
  // version 1 of it with TN_HAS.
  const void* extension(const char* name, uint32_t version) const;
  template <class Table>
  const Table* extension(const char* name, uint32_t version) const {
    return static_cast<const Table*>(extension(name, version));
  }

  // How many devices there are now. Throws DeviceError with the plugin's reason where it can offer
  // none.
  uint32_t device_count() const;
  // Opens device `index` on the first call; the backend closes it at exit. Throws DeviceError where
  // it cannot be opened, or lacks functions that a device of its kind must have.
  tn_device* open_device(uint32_t index);
  // Fields that the plugin does not know are 0. Throws DeviceError.
  tn_device_info device_info(tn_device* device) const;

  // The three steps at exit, each done once however often it is called. The registry calls them,
  // for all plugins in turn.
  void drain() noexcept;
  void close_devices() noexcept;
  void shutdown() noexcept;
  bool closed() const;

 private:
  void require_streams(uint32_t index, tn_device* device) const;

  const BackendInfo info_;
  tn_backend_api api_{};
  mutable ForkMutex mutex_{ForkOrder::backends};
  std::map<uint32_t, tn_device*> devices_;
  bool drained_ = false;
  bool closed_ = false;
  bool shut_down_ = false;
};

// Text of an error object with its details, and the end of the object. Survives objects that are
// badly filled.
TENON_API std::string take_message(tn_error* error) noexcept;

}  // namespace tenon::plugins
