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

}  // namespace tenon::plugins
