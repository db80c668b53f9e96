// What the host does for plugins: the logger and the shared threads.
#pragma once

#include <string>

#include <tenon/core/api.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon::plugins {

// Writes one line to stderr if `level` is at least TENON_LOG (debug, info, warning, error; default
// warning). `source` is the plugin's name, or "tenon". Never throws.
TENON_API void log(tn_log_level level, const std::string& source,
                   const std::string& message) noexcept;

// The services table for one plugin; lives as long as the process, as the ABI promises.
const tn_host* make_host_services(const std::string& name, const std::string& library);

}  // namespace tenon::plugins
