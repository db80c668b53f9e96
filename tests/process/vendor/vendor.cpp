// "vendor": the sim plugin behind a runtime that ends in exit handlers of its own, one registered
// whenever a device is opened and one by a library that the first plan opens, and that reports
// every call which comes after.
#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>

#include <tenon/plugins/sdk/sdk.h>

namespace {

tn_backend_api sim;
bool runtime_ended = false;
const int* library_ended = nullptr;

void note(const char* call) {
  if (runtime_ended) std::printf("%s after the runtime had ended\n", call);
  if (library_ended && *library_ended) std::printf("%s after the library had ended\n", call);
  std::fflush(stdout);
}

tn_error* device_open(tn_backend* backend, uint32_t index, tn_device** device) {
  tn_error* error = sim.device_open(backend, index, device);
  std::atexit([] { runtime_ended = true; });
  return error;
}
void device_close(tn_device* device) {
  note("device_close");
  sim.device_close(device);
}
void stream_destroy(tn_stream* stream) {
  note("stream_destroy");
  sim.stream_destroy(stream);
}
void event_destroy(tn_event* event) {
  note("event_destroy");
  sim.event_destroy(event);
}
tn_error* event_wait(tn_event* event) {
  note("event_wait");
  return sim.event_wait(event);
}
void memory_free(tn_device* device, uint32_t kind, void* memory, uint64_t bytes) {
  note("memory_free");
  sim.memory_free(device, kind, memory, bytes);
}
tn_error* plan_create(tn_device* device, const tn_op_request* request, tn_plan** plan) {
  note("plan_create");
  if (!library_ended && request->op == std::string("matmul"))
    if (void* library = dlopen(TENON_VENDOR_LIBRARY, RTLD_NOW | RTLD_LOCAL))
      library_ended = static_cast<const int*>(dlsym(library, "vendor_library_ended"));
  return sim.plan_create(device, request, plan);
}
tn_error* drain(tn_backend*) {
  note("drain");
  std::printf("drain\n");
  return nullptr;
}
void shut_down(tn_backend*) {
  note("shutdown");
  std::printf("shutdown\n");
  std::fflush(stdout);
}

tn_error* init(const tn_host* host, tn_backend_api* api) {
  void* library = dlopen(TENON_VENDOR_SIM, RTLD_NOW | RTLD_LOCAL);
  if (!library) return tenon::sdk::make_error(TN_CODE_UNAVAILABLE, "the sim plugin is not there");
  auto* entry = static_cast<const tn_plugin_info*>(dlsym(library, TN_PLUGIN_ENTRY_NAME));
  if (tn_error* error = entry->init(host, api)) return error;
  sim = *api;
  api->device_open = device_open;
  api->device_close = device_close;
  api->stream_destroy = stream_destroy;
  api->event_destroy = event_destroy;
  api->event_wait = event_wait;
  api->memory_free = memory_free;
  api->plan_create = plan_create;
  api->drain = drain;
  api->shutdown = shut_down;
  return nullptr;
}

}  // namespace

extern "C" TN_EXPORT const tn_plugin_info tn_plugin_entry = {sizeof(tn_plugin_info),
                                                             TN_PLUGIN_MAGIC,
                                                             TN_ABI_MAJOR,
                                                             TN_ABI_MINOR,
                                                             "vendor",
                                                             "1.0",
                                                             TN_PLUGIN_DEVICE,
                                                             nullptr,
                                                             0,
                                                             init};
