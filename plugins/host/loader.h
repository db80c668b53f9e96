// From a manifest to a running plugin. Private to the host.
#pragma once

#include <tenon/plugins/host/backend.h>
#include <tenon/plugins/host/manifest.h>

namespace tenon::plugins {

// Opens the library, checks what it says of itself against the manifest, and initialises it, once
// in a process however many registries ask. Throws Refused. The backend lives as long as the
// process.
Backend& load_plugin(const Manifest& manifest);

}  // namespace tenon::plugins
