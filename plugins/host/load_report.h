// What became of every plugin that was found: the answer to "why is my backend not there?".
#pragma once

#include <string>
#include <vector>

#include <tenon/core/api.h>

namespace tenon::plugins {

enum class Status {
  available,   // fit to load; will be loaded when a device of that name is first asked for
  loaded,      // running
  refused,     // cannot be used; `reason` says why
  superseded,  // fit to load, but a better one of that name goes first
};

TENON_API const char* to_string(Status status);

struct LoadReport {
  struct Entry {
    std::string path;     // canonical path of the manifest, or the place that could not be searched
    std::string name;     // "cpu"; empty where the manifest did not get as far
    std::string kind;     // "device" or "overlay"
    std::string variant;  // "x86-64-v3"; may be empty
    std::string version;  // the plugin's own
    std::string overlays;  // of an overlay: what it lies over
    Status status = Status::refused;
    std::string reason;  // of refused and superseded
  };

  std::vector<std::string> searched;  // folders and manifests, in order of precedence
  std::vector<Entry> entries;         // in order of precedence

  // A table for people, ending in a newline.
  TENON_API std::string to_string() const;
};

}  // namespace tenon::plugins
