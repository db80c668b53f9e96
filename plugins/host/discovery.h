// Searches for plugins.
#pragma once

#include <string>
#include <vector>

#include <tenon/plugins/host/load_report.h>
#include <tenon/plugins/host/manifest.h>

namespace tenon::plugins {

class Backend;

// A manifest that was found, whether or not it can be used.
struct Candidate {
  Manifest manifest;
  Status status = Status::available;
  std::string reason;
  size_t place = 0;  // rank of the place where it was found
  Backend* backend = nullptr;
};

// Returns the folders of TENON_PLUGIN_PATH as they are written there, in order. Programs that run
// with raised privileges ignore the variable.
std::vector<std::string> environment_places();

// Variables that hold names of plugins, separated by commas: those that are not used, and overlays
// that are preferred.
inline constexpr const char* kDisableVariable = "TENON_DISABLE";
inline constexpr const char* kPreferVariable = "TENON_PREFER";
// Returns the names in such a variable. Programs that run with raised privileges ignore it.
std::vector<std::string> names_in(const char* variable);

// Returns the folder `tenon/plugins` next to libtenon, wherever that was loaded from.
const std::string& install_place();

// Appends the manifests at `place`, which is a folder or a manifest, to `found`. A manifest that is
// in the list already keeps the better rank. A place that cannot be searched becomes a refused
// candidate; the reason is returned, which is empty otherwise.
std::string scan(const std::string& place, size_t rank, std::vector<Candidate>& found);

// The order in which plugins of one name are tried: by place, then by preference, then by path.
bool goes_before(const Candidate& a, const Candidate& b);

}  // namespace tenon::plugins
