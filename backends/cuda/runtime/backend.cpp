// The cuda backend's table and its entry.
#include <atomic>
#include <mutex>
#include <string_view>
#include <vector>

#include <tenon/plugins/sdk/backend.h>

#include "runtime/common.h"
#include "runtime/runtime.h"

namespace tenon::cuda {

namespace {

tn_error* plan_create(tn_device* device, const tn_op_request* request, tn_plan** plan) {
  return sdk::guard([&] {
    CurrentDevice current(device);
    *plan = sdk::create_plan(device, *request);
  });
}

const void* extension(tn_backend*, const char* name, uint32_t version) {
  if (version != 1) return nullptr;
  if (name == std::string_view(TN_EXT_STREAM_CAPTURE)) return &stream_capture;
  if (name == std::string_view(TN_EXT_COLLECTIVES)) return &collectives;
  if (name == std::string_view(TN_EXT_PROFILING)) return keep_times(), &profiling;
  return nullptr;
}

std::atomic<bool> process_ends{false};

tn_error* drain(tn_backend*) {
  process_ends = true;
  return sdk::guard([] { wait_for_streams(); });
}
void shutdown(tn_backend*) {}

const tn_host* host = nullptr;

tn_error* init(const tn_host* given, tn_backend_api* api) {
  host = given;
  return sdk::fill_table(api, {0,
                               nullptr,
                               device_count,
                               device_open,
                               device_close,
                               device_info,
                               memory_kinds,
                               memory_alloc,
                               memory_free,
                               stream_create,
                               stream_destroy,
                               event_create,
                               event_destroy,
                               event_record,
                               stream_wait,
                               event_query,
                               event_wait,
                               copy,
                               sdk::supports_by_creating,
                               plan_create,
                               extension,
                               drain,
                               shutdown});
}

}  // namespace

bool ending() { return process_ends; }

void write_log(tn_log_level level, const std::string& message) {
  host->log(host->context, level, message.c_str());
}

}  // namespace tenon::cuda

extern "C" TN_EXPORT constexpr tn_plugin_info tn_plugin_entry =
    tenon::sdk::device_plugin("cuda", TENON_CUDA_VERSION, tenon::cuda::init);
