// The cuda backend's table and its entry.
#include <atomic>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "runtime/common.h"
#include "runtime/runtime.h"

namespace tenon::cuda {

namespace {

tn_error* supports(tn_device* device, const tn_op_request* request) {
  return sdk::supports_by_creating(device, request);
}

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
  return nullptr;
}

std::atomic<bool> process_ends{false};

// The host has waited for every stream, and nothing runs without one.
tn_error* drain(tn_backend*) {
  process_ends = true;
  return nullptr;
}
void shutdown(tn_backend*) {}

const tn_host* host = nullptr;

tn_error* init(const tn_host* given, tn_backend_api* api) {
  host = given;
  if (api->struct_size < TN_BACKEND_API_SIZE_1_0)
    return sdk::make_error(TN_CODE_UNSUPPORTED,
                           "cuda: the host's table is smaller than that of ABI 1.0");
  tn_backend_api table{};
  table.struct_size = std::min(api->struct_size, sizeof(table));
  table.device_count = device_count;
  table.device_open = device_open;
  table.device_close = device_close;
  table.device_info = device_info;
  table.memory_kinds = memory_kinds;
  table.memory_alloc = memory_alloc;
  table.memory_free = memory_free;
  table.stream_create = stream_create;
  table.stream_destroy = stream_destroy;
  table.event_create = event_create;
  table.event_destroy = event_destroy;
  table.event_record = event_record;
  table.stream_wait = stream_wait;
  table.event_query = event_query;
  table.event_wait = event_wait;
  table.copy = copy;
  table.supports = supports;
  table.plan_create = plan_create;
  table.extension = extension;
  table.drain = drain;
  table.shutdown = shutdown;
  std::memcpy(static_cast<void*>(api), &table, table.struct_size);
  return nullptr;
}

}  // namespace

bool ending() { return process_ends; }

void write_log(tn_log_level level, const std::string& message) {
  host->log(host->context, level, message.c_str());
}

}  // namespace tenon::cuda

extern "C" TN_EXPORT const tn_plugin_info tn_plugin_entry;
const tn_plugin_info tn_plugin_entry = {sizeof(tn_plugin_info), TN_PLUGIN_MAGIC, TN_ABI_MAJOR,
                                        TN_ABI_MINOR,           "cuda",          TENON_CUDA_VERSION,
                                        TN_PLUGIN_DEVICE,       nullptr,         0,
                                        tenon::cuda::init};
