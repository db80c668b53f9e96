// Loads the plugin of a manifest.
#pragma once

#include <tenon/plugins/host/backend.h>
#include <tenon/plugins/host/manifest.h>

namespace tenon::plugins {

// Opens the library, compares its description with the manifest, and initialises it, once in a
// process even if several registries load it. Throws Refused. The backend exists as long as the
// process.
Backend& load_plugin(const Manifest& manifest);

}  // namespace tenon::plugins
