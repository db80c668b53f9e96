// Messages on stderr, of plugins and of Tenon itself.
#pragma once

#include <string>

#include <tenon/core/api.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

// Writes one line to stderr if `level` is at least TENON_LOG (debug, info, warning, error; default
// warning). `source` is the plugin's name, or "tenon". Never throws.
TENON_API void log_message(tn_log_level level, const std::string& source,
                           const std::string& message) noexcept;

}  // namespace tenon
