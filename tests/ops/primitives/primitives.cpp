// "primitives": the cpu plugin without the operators that the core can make of simpler ones, as a
// small backend of somebody else's would be. What a model needs must still work.
#include <set>
#include <string>

#include <dlfcn.h>

#include <tenon/plugins/sdk/sdk.h>

using tenon::sdk::Error;
using tenon::sdk::guard;

namespace {

tn_backend_api cpu;  // the cpu plugin's table

const std::set<std::string> absent = {"linear",
                                      "softmax",
                                      "log_softmax",
                                      "softmax_backward",
                                      "log_softmax_backward",
                                      "cross_entropy",
                                      "cross_entropy_backward",
                                      "batch_norm",
                                      "layer_norm",
                                      "embedding",
                                      "batch_norm_backward",
                                      "layer_norm_backward",
                                      "embedding_backward",
                                      "mean",
                                      "var",
                                      "square",
                                      "reciprocal",
                                      "rsqrt",
                                      "sigmoid",
                                      "relu",
                                      "gelu",
                                      "silu",
                                      "cat",
                                      "slice_backward",
                                      "sigmoid_backward",
                                      "tanh_backward",
                                      "relu_backward",
                                      "gelu_backward",
                                      "silu_backward",
                                      "sgd_step",
                                      "dropout_backward",
                                      "adam_step",
                                      "normal"};

tn_error* refusal(const tn_op_request* request) {
  const bool whole_power =
      std::string_view(request->op) == "pow" && request->inputs[0]->dtype >= TN_I64;
  if (whole_power)
    return tenon::sdk::make_error(TN_CODE_UNSUPPORTED, "primitives has no pow of integers");
  if (!absent.count(request->op)) return nullptr;
  return tenon::sdk::make_error(TN_CODE_UNSUPPORTED,
                                std::string("primitives has no ") + request->op);
}

tn_error* supports(tn_device* device, const tn_op_request* request) {
  tn_error* no = refusal(request);
  return no ? no : cpu.supports(device, request);
}

tn_error* plan_create(tn_device* device, const tn_op_request* request, tn_plan** plan) {
  tn_error* no = refusal(request);
  return no ? no : cpu.plan_create(device, request, plan);
}

tn_error* init(const tn_host* host, tn_backend_api* api) {
  return guard([&] {
    void* library = dlopen(TENON_CPU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw Error(TN_CODE_UNAVAILABLE, dlerror());
    auto* entry = static_cast<const tn_plugin_info*>(dlsym(library, TN_PLUGIN_ENTRY_NAME));
    cpu.struct_size = sizeof cpu;
    if (auto* e = entry->init(host, &cpu)) {
      e->destroy(e);
      throw Error(TN_CODE_UNAVAILABLE, "the cpu plugin does not start");
    }
    *api = cpu;
    api->supports = supports;
    api->plan_create = plan_create;
  });
}

}  // namespace

extern "C" TN_EXPORT const tn_plugin_info tn_plugin_entry = {sizeof(tn_plugin_info),
                                                             TN_PLUGIN_MAGIC,
                                                             TN_ABI_MAJOR,
                                                             TN_ABI_MINOR,
                                                             "primitives",
                                                             "1.0",
                                                             TN_PLUGIN_DEVICE,
                                                             nullptr,
                                                             0,
                                                             init};
