// "faulty": an overlay that makes a GPU fail, to show what becomes of the rest. erf of a (13, 37)
// tensor writes where there is nothing.
#include <cstring>

#include <cuda_runtime.h>

#include <tenon/plugins/sdk/sdk.h>

struct tn_device {
  int ordinal;
};

namespace {

__global__ void write_nowhere(volatile int* nowhere) { *nowhere = 1; }

bool is_meant(const tn_op_request& r) {
  return std::strcmp(r.op, "erf") == 0 && r.inputs[0]->rank == 2 && r.inputs[0]->shape[0] == 13 &&
         r.inputs[0]->shape[1] == 37;
}

tn_error* supports(tn_device*, const tn_op_request* request) {
  return is_meant(*request)
             ? nullptr
             : tenon::sdk::make_error(TN_CODE_UNSUPPORTED, "faulty offers one mistake only");
}

tn_error* plan_create(tn_device* device, const tn_op_request* request, tn_plan** plan) {
  if (tn_error* no = supports(device, request)) return no;
  return tenon::sdk::guard([&] {
    // Any stream of the device's context does: what fails there fails everywhere in it. Nothing
    // orders this one before the stream that the host waits for, so that the failure is awaited
    // here; it is left to the host to find it.
    *plan = tenon::sdk::make_plan([ordinal = device->ordinal](const tn_run&) {
      cudaSetDevice(ordinal);
      write_nowhere<<<1, 1>>>(reinterpret_cast<volatile int*>(16));
      cudaDeviceSynchronize();
    });
  });
}

tn_error* init(const tn_host*, tn_backend_api* api) {
  api->struct_size = sizeof(tn_backend_api);
  api->device_open = [](tn_backend*, uint32_t index, tn_device** device) -> tn_error* {
    *device = new tn_device{static_cast<int>(index)};
    return nullptr;
  };
  api->device_close = [](tn_device* device) { delete device; };
  api->supports = supports;
  api->plan_create = plan_create;
  return nullptr;
}

}  // namespace

extern "C" TN_EXPORT const tn_plugin_info tn_plugin_entry;
const tn_plugin_info tn_plugin_entry = {
    sizeof(tn_plugin_info), TN_PLUGIN_MAGIC, TN_ABI_MAJOR, TN_ABI_MINOR, "faulty", "1.0",
    TN_PLUGIN_OVERLAY,      "cuda",          100,          init};
