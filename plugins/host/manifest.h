// The manifest of a plugin, and all checks of a plugin that are possible without loading it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenon/plugins/abi/abi.h>

namespace tenon::plugins {

// Why a plugin is not used. The text is shown in the load report.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// A plugin with which nothing is wrong, but which is made for another machine.
class Unsuitable : public Refused {
 public:
  using Refused::Refused;
};

struct Manifest {
  std::string path;    // the canonical path of the manifest
  std::string folder;  // the canonical path of its folder
  std::string name;
  tn_plugin_kind kind = TN_PLUGIN_DEVICE;
  std::string library;  // a file name; check_loadable makes it a canonical path
  uint32_t abi_major = 0;
  uint32_t abi_minor = 0;
  std::string version;
  std::string variant;
  int32_t preference = 0;
  std::vector<std::string> cpu_features;
  std::vector<std::string> vendor_libraries;
  std::string overlays;
  int32_t priority = 0;
  // What an author should know although the plugin can be used: keys that nobody reads.
  std::vector<std::string> remarks;
};

// Reads and checks the file at `manifest.path`. Throws Refused; the fields that were read before
// are set then, so that a report can name the plugin.
void read_manifest(Manifest& manifest);

// Throws Refused for a plugin that this process cannot load: one with another major version of the
// ABI, with CPU features that are missing, or whose library is missing, for another machine,
// truncated or untrusted. Makes `library` a canonical path.
void check_loadable(Manifest& manifest);

// Two parts of it: the ABI and the CPU; and the library, whose folder has to be trusted.
void require_loadable_here(const Manifest& manifest);
void find_library(Manifest& manifest);

}  // namespace tenon::plugins
