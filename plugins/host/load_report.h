// Reports for every plugin that was found whether it is used: the answer to "why is my backend
// missing?".
#pragma once

#include <string>
#include <vector>

#include <tenon/core/api.h>

namespace tenon::plugins {

enum class Status {
  available,   // can be loaded, and will be when a device of that name is first used
  loaded,      // runs
  refused,     // cannot be used; `reason` says why
  superseded,  // can be loaded, but a better one of that name is used
  unsuitable,  // made for another machine; `reason` says what this one lacks
  disabled,    // switched off by TENON_DISABLE
  unused,      // an overlay over a backend that cannot be used
};

// Returns the name of a status, such as "loaded".
TENON_API const char* to_string(Status status);

struct LoadReport {
  struct Entry {
    std::string path;     // canonical path of the manifest, or the place that could not be searched
    std::string name;     // "cpu"; empty if the manifest could not be read so far
    std::string kind;     // "device" or "overlay"
    std::string variant;  // "x86-64-v3"; may be empty
    std::string version;  // the version of the plugin
    std::string overlays;  // the name of the backend that an overlay extends
    Status status = Status::refused;
    std::string reason;                // why it is neither available nor loaded
    std::vector<std::string> remarks;  // mistakes that do not prevent its use
  };

  std::vector<std::string> searched;  // folders and manifests, in order of precedence
  std::vector<Entry> entries;         // in order of precedence

  // Returns a table for people, which ends in a newline.
  TENON_API std::string to_string() const;
};

}  // namespace tenon::plugins
