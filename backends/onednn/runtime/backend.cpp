// The onednn overlay: faster plans for the devices of the cpu backend.
#include <tenon/plugins/sdk/backend.h>

#include "runtime/common.h"
#include "runtime/exit_handlers.h"

struct tn_device {
  uint32_t index;
};

namespace tenon::onednn {
namespace {

const tn_host* g_host = nullptr;

tn_error* device_open(tn_backend*, uint32_t index, tn_device** device) {
  return sdk::guard([&] { *device = new tn_device{index}; });
}
void device_close(tn_device* device) { delete device; }

tn_error* init(const tn_host* host, tn_backend_api* api) {
  if (!TN_HAS(tn_host, host, parallel_for))
    return sdk::make_error(TN_CODE_UNSUPPORTED, "the host's services are fewer than ABI 1.0's");
  if (const char* reason = reason_not_to_start(); *reason)
    return sdk::make_error(TN_CODE_UNAVAILABLE, reason);
  if (!keep_static_objects_of(reinterpret_cast<const void*>(dnnl_version)))
    return sdk::make_error(TN_CODE_UNAVAILABLE,
                           "oneDNN cannot be kept from freeing at exit what running work uses");
  g_host = host;
  tn_backend_api table{};
  table.device_open = device_open;
  table.device_close = device_close;
  table.supports = sdk::supports_by_creating;
  table.plan_create = sdk::plan_of_kernels;
  return sdk::fill_table(api, table);
}

}  // namespace

const tn_host& host() { return *g_host; }

int64_t vector_lanes() {
  const auto isa = dnnl_get_effective_cpu_isa();
  const auto has = [isa](dnnl_cpu_isa_t level) { return (isa & level) == level; };
  return has(dnnl_cpu_isa_avx512_core) ? 16 : has(dnnl_cpu_isa_avx2) ? 8 : 4;
}

bool is_intel() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

dnnl_data_type_t compute_type(tn_dtype dtype) {
  switch (dtype) {
    case TN_F32:
      return dnnl_f32;
    case TN_BF16:
      if (vector_lanes() < 16) unsupported("bf16 needs a CPU with AVX-512");
      return dnnl_bf16;
    default:
      refuse_dtype(dtype);
  }
}

tn_plan* make_empty_sum(const Request& request, bool bias, int64_t inner, bool relu) {
  const int64_t numel = sdk::numel(request.output(0)),
                channels = bias ? request.input(2).shape[0] : 1;
  return sdk::make_plan([=](const tn_run& run) {
    auto* y = static_cast<uint16_t*>(run.outputs[0]);
    const auto* added = bias ? static_cast<const uint16_t*>(run.inputs[2]) : nullptr;
    for (int64_t i = 0; i < numel; ++i) {
      const uint16_t sum = added ? added[i / inner % channels] : 0;
      y[i] = relu ? rectified(sum) : sum;
    }
  });
}

}  // namespace tenon::onednn

extern "C" TN_EXPORT constexpr tn_plugin_info tn_plugin_entry =
    tenon::sdk::overlay_plugin("onednn", TENON_ONEDNN_VERSION, "cpu", 10, tenon::onednn::init);
