// Where plugins are looked for, and what is found there. Private to the host.
#pragma once

#include <string>
#include <vector>

#include <tenon/plugins/host/load_report.h>
#include <tenon/plugins/host/manifest.h>

namespace tenon::plugins {

class Backend;

// A manifest that was found, fit or not.
struct Candidate {
  Manifest manifest;
  Status status = Status::available;
  std::string reason;
  size_t place = 0;  // rank of the place it was found in
  Backend* backend = nullptr;
};

// Folders of TENON_PLUGIN_PATH as they are written there, in order. Ignored in programs that run
// with raised privileges.
std::vector<std::string> environment_places();

// `tenon/plugins` beside libtenon itself, wherever that was loaded from.
const std::string& install_place();

// What is at `place`, a folder or a manifest: appends to `found`; a manifest that is in it already
// keeps the better rank. A place that cannot be searched becomes a refused candidate.
void scan(const std::string& place, size_t rank, std::vector<Candidate>& found);

// The order in which plugins of one name are considered: place, then preference, then path.
bool goes_before(const Candidate& a, const Candidate& b);

}  // namespace tenon::plugins
