// Looks at a plugin without running any of it: `tenon plugin check`.
#pragma once

#include <string>
#include <vector>

#include <tenon/core/api.h>

namespace tenon::plugins {

struct Finding {
  enum Kind { good, remark, fault } kind;
  std::string what;  // one sentence; what is wrong and what to do
};

// Looks at the plugin whose manifest (*.tenon.json) or library is `path`: the manifest and its
// keys, who may write the files and the folders up to the root, the symbols of the library and what
// its tn_plugin_entry says, the libraries that it needs and the symbols that it lacks. The plugin
// can be loaded on this machine if nothing found is a fault; what `init` does then is not known.
TENON_API std::vector<Finding> check_plugin(const std::string& path);

// What the manifest of a plugin says of it.
struct PluginFile {
  std::string manifest;  // its canonical path
  std::string device;    // the name of its devices, or of those that it is an overlay of
  std::string overlay;   // its name if it is one; else empty
};

// Reads the manifest that `path` is, or the one beside the library `path` that names it. Throws a
// PluginError if there is none, or if the manifest cannot be read or says
// what the host refuses. The library itself is not looked at.
TENON_API PluginFile read_plugin_file(const std::string& path);

}  // namespace tenon::plugins
