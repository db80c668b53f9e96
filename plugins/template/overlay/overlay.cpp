// An overlay over `cpu` that takes one operator: relu of large contiguous tensors of f32. It has no
// memory and no streams: pointers are those of `cpu`.
#include <tenon/plugins/sdk/backend.h>
#include <tenon/plugins/sdk/dispatch.h>

namespace {

namespace sdk = tenon::sdk;

const tn_host* host = nullptr;

// Below this many elements `cpu` does it as well, so such requests are left to it.
constexpr int64_t kMinElements = 4096, kGrain = 16384;

tn_plan* make_relu(tn_device*, const sdk::Request& request) {
  auto &x = request.input(0), &y = request.output(0);
  if (x.dtype != TN_F32) sdk::refuse_dtype(x.dtype);
  sdk::require_contiguous(x);
  sdk::require_contiguous(y);
  const int64_t n = sdk::numel(y);
  if (n < kMinElements) sdk::unsupported("{} elements are left to the backend below", n);
  return sdk::make_plan(
      [n](const tn_run& run) {
        const auto* from = static_cast<const float*>(run.inputs[0]);
        auto* to = static_cast<float*>(run.outputs[0]);
        sdk::parallel_for(*host, n, kGrain, [&](int64_t begin, int64_t end, uint32_t) {
          // The place to call your library: see tenon/plugins/sdk/threads.h if it has threads.
          for (int64_t i = begin; i < end; ++i) to[i] = from[i] < 0 ? 0 : from[i];  // keeps NaN
        });
      },
      {.workspace_bytes = 0, .cost_ns = static_cast<uint64_t>(n / 8)});
}

const sdk::Kernel relu({"relu"}, make_relu);

tn_error* init(const tn_host* services, tn_backend_api* api) {
  host = services;
  return sdk::fill_overlay(api);
}

}  // namespace

extern "C" TN_EXPORT constexpr tn_plugin_info tn_plugin_entry =
    tenon::sdk::overlay_plugin("template_overlay", "1.0", "cpu", 1, init);
