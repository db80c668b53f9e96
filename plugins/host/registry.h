// Finds backend plugins and loads them when they are first asked for.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/api.h>
#include <tenon/plugins/host/backend.h>
#include <tenon/plugins/host/load_report.h>

namespace tenon::plugins {

// Where a registry looks, in this order. Places are folders or manifests (`*.tenon.json`),
// absolute; the working directory is never searched. Of several plugins of one name the first place
// that has one fit to load wins, and there the highest preference.
struct SearchOptions {
  std::vector<std::string> paths;  // before all others
  bool environment = true;         // TENON_PLUGIN_PATH, folders separated by colons
  bool install_folder = true;      // tenon/plugins beside libtenon
};

// Safe from any thread. Places are read at the first question, and once.
class TENON_API Registry {
 public:
  explicit Registry(SearchOptions options = {});
  // Neither unloads nor closes anything: plugins live as long as the process.
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // One more place, searched after the explicit paths given before. A backend that is loaded
  // already stays.
  void add_path(const std::string& path);

  // Everything found, and what became of it. Loads nothing.
  LoadReport report();

  // The device plugin of that name ("cpu"), loaded on the first call. Where the best variant fails
  // to load the next is tried, with a warning. Throws PluginError, with the load report in its
  // text, where none is left.
  Backend& load(std::string_view name);

  // The overlays for the devices of `name`, loaded on the first call, highest priority first. Those
  // that fail to load stand in the report and are left out.
  std::vector<Backend*> overlays(std::string_view name);

  // In the order in which they were loaded.
  std::vector<Backend*> loaded();

  // At exit, in two steps: `drain` waits for the work of all plugins, overlays first; `close`
  // closes their devices, then shuts the plugins down. Those of `used` are left out of both. From
  // then on `load` knows those alone. Both may be called again.
  void drain(std::span<const Backend* const> used = {}) noexcept;
  void close(std::span<const Backend* const> used = {}) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The one that the runtime uses. The default one lives as long as the process.
TENON_API Registry& registry();
// Puts another in its place and returns the one before; for tests, before any device is used. NULL
// brings the default back.
TENON_API Registry* replace_registry(Registry* other);

}  // namespace tenon::plugins
