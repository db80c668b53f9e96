// Which version of the ABI this host speaks.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/core/api.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon::plugins {

// What a plugin is told of the host when it is loaded.
struct HostVersion {
  uint32_t abi_minor = TN_ABI_MINOR;
  size_t host_bytes = sizeof(tn_host);          // tn_host.struct_size
  size_t table_bytes = sizeof(tn_backend_api);  // the room that init has for its table
  size_t run_bytes = sizeof(tn_run);            // tn_run.struct_size, where tools make runs

  static constexpr size_t kMaxFuture = 256;  // bytes beyond what this host knows
  static constexpr HostVersion v1_0() {
    return {0, sizeof(tn_host), TN_BACKEND_API_SIZE_1_0, offsetof(tn_run, num_inputs)};
  }
  static constexpr HostVersion v1_1() {
    return {1, sizeof(tn_host), sizeof(tn_backend_api), offsetof(tn_run, num_inputs)};
  }
  static constexpr HostVersion v1_2() {
    return {2, sizeof(tn_host), sizeof(tn_backend_api), sizeof(tn_run)};
  }
  // A minor version to come, with longer structs.
  static constexpr HostVersion newer() {
    return {TN_ABI_MINOR + 5, sizeof(tn_host) + kMaxFuture, sizeof(tn_backend_api) + kMaxFuture,
            sizeof(tn_run) + 64};
  }
};

// Plugins that are loaded from now on see this version. It is for tools that check whether a plugin
// works under older and newer hosts, before any plugin is loaded.
TENON_API void pretend_host_version(const HostVersion& version);
TENON_API const HostVersion& host_version();

}  // namespace tenon::plugins
