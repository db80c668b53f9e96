// Finds backend plugins and loads them when they are first used.
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

// Where a registry searches, in this order. Places are absolute paths of folders or manifests
// (`*.tenon.json`); the working directory is never searched. Of several plugins with one name it
// takes one from the first place that has one which can be loaded, and there the one with the
// highest preference.
struct SearchOptions {
  std::vector<std::string> paths;  // before all others
  bool environment = true;     // the folders in TENON_PLUGIN_PATH, which are separated by colons
  bool install_folder = true;  // the folder tenon/plugins next to libtenon
  // Overlays that are preferred, besides those that TENON_PREFER names in the environment: they are
  // asked before all others, their plans are used whatever they cost, and where one of them fails
  // otherwise than by TN_CODE_UNSUPPORTED, that ends the call. For who checks or measures an
  // overlay, whose plans may never be the cheapest.
  std::vector<std::string> preferred = {};
};

// Any thread may use a registry. It searches the places once, when it is first used.
class TENON_API Registry {
 public:
  explicit Registry(SearchOptions options = {});
  // Neither unloads nor closes plugins, which exist as long as the process.
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Adds a place, which comes after the explicit paths that were given before. A backend that was
  // loaded already stays in use.
  void add_path(const std::string& path);

  // Returns a report of all plugins that were found. Loads nothing.
  LoadReport report();

  // Returns the device plugin of that name ("cpu"), which the first call loads. If the best variant
  // cannot be loaded, it logs a warning and tries the next. Throws a PluginError with the load
  // report in its text if there is none.
  Backend& load(std::string_view name);

  // Returns the overlays for the devices of `name`, those that are preferred first, and of these
  // and of the others the one with the highest priority. The first call loads them. Overlays that
  // cannot be loaded are listed in the report and left out.
  std::vector<Backend*> overlays(std::string_view name);

  // Returns whether this overlay is preferred, by the options or by TENON_PREFER.
  bool prefers(const Backend& overlay) const;

  // Returns all plugins in the order in which they were loaded.
  std::vector<Backend*> loaded();

  // The two steps at exit: `drain` waits for the work of all plugins, overlays first; `close`
  // closes their devices and then shuts the plugins down. Both leave out the plugins in `used`,
  // which are the only ones that `load` returns from then on. Both may be called again.
  void drain(std::span<const Backend* const> used = {}) noexcept;
  void close(std::span<const Backend* const> used = {}) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns the registry that the runtime uses. The default registry exists as long as the process.
TENON_API Registry& registry();
// Replaces that registry and returns the one before. It is for tests, before any device is used.
// NULL restores the default registry.
TENON_API Registry* replace_registry(Registry* other);

}  // namespace tenon::plugins
