// A plugin's manifest, and everything about a plugin that can be decided without loading it.
// Private to the host.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenon/plugins/abi/abi.h>

namespace tenon::plugins {

// Why a plugin is not used; ends up in the load report.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Manifest {
  std::string path;    // canonical
  std::string folder;  // canonical
  std::string name;
  tn_plugin_kind kind = TN_PLUGIN_DEVICE;
  std::string library;  // canonical once checked
  uint32_t abi_major = 0;
  uint32_t abi_minor = 0;
  std::string version;
  std::string variant;
  int32_t preference = 0;
  std::vector<std::string> cpu_features;
  std::vector<std::string> vendor_libraries;
  std::string overlays;
  int32_t priority = 0;
};

// Reads and checks the file at `manifest.path` (canonical). Fills what it can before it throws
// Refused, so that a report can name the plugin.
void read_manifest(Manifest& manifest);

// Refuses what this process cannot load: another ABI major, absent CPU features, a missing,
// foreign, truncated or untrusted library. Makes `library` canonical.
void check_loadable(Manifest& manifest);

}  // namespace tenon::plugins
