// Writes messages of plugins and of Tenon itself to stderr.
#pragma once

#include <string>

#include <tenon/core/api.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

// Writes one line to stderr if `level` is at least TENON_LOG (debug, info, warning or error; the
// default is warning). `source` is the name of the plugin, or "tenon". Never throws.
TENON_API void log_message(tn_log_level level, const std::string& source,
                           const std::string& message) noexcept;

}  // namespace tenon
