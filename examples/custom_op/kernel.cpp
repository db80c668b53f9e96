// The kernel of mylib::swish2 for the devices of `cpu`: an overlay, which makes the plans of this
// one operator.
#include <cmath>

#include <tenon/plugins/sdk/backend.h>
#include <tenon/plugins/sdk/dispatch.h>

namespace {

namespace sdk = tenon::sdk;

const tn_host* host = nullptr;

template <class T>
tn_plan* plan_of(int64_t n, double beta) {
  return sdk::make_plan(
      [n, beta](const tn_run& run) {
        const auto* x = static_cast<const T*>(run.inputs[0]);
        auto* y = static_cast<T*>(run.outputs[0]);
        sdk::parallel_for(*host, n, 16384, [&](int64_t begin, int64_t end, uint32_t) {
          for (int64_t i = begin; i < end; ++i)
            y[i] = x[i] / (1 + std::exp(static_cast<T>(-beta) * x[i]));
        });
      },
      {.workspace_bytes = 0, .cost_ns = static_cast<uint64_t>(4 * n)});
}

// What is refused here is computed by the decomposition: f16, for example.
tn_plan* make_swish2(tn_device*, const sdk::Request& request) {
  auto &x = request.input(0), &y = request.output(0);
  sdk::require_contiguous(x);
  sdk::require_contiguous(y);
  const double beta = request.get_float("beta");
  const int64_t n = sdk::numel(y);
  switch (x.dtype) {
    case TN_F32:
      return plan_of<float>(n, beta);
    case TN_F64:
      return plan_of<double>(n, beta);
    default:
      sdk::refuse_dtype(x.dtype);
  }
}

const sdk::Kernel swish2({"mylib::swish2"}, make_swish2);

tn_error* init(const tn_host* services, tn_backend_api* api) {
  host = services;
  return sdk::fill_overlay(api);
}

}  // namespace

extern "C" TN_EXPORT constexpr tn_plugin_info tn_plugin_entry =
    tenon::sdk::overlay_plugin("mylib", "1.0", "cpu", 1, init);
