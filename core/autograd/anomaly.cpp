#include <algorithm>
#include <utility>

#include <tenon/core/autograd/anomaly.h>
#include <tenon/core/autograd/find_nan.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/reduction.h>

namespace tenon {

namespace {

bool has_nan(const Tensor& t) {
  return t.defined() && is_floating_point(t.dtype()) && any(isnan(t)).item<bool>();
}

// "mul(f32 (2, 3), f32 (3,))", as it was called.
std::string call_of(const Node& node) {
  std::string inputs;
  for (size_t i = 0; i < node.input_shapes.size(); ++i)
    inputs += fmt::format("{}{} {}", i ? ", " : "", node.input_dtypes[i], node.input_shapes[i]);
  return fmt::format("{}({})", node.name(), inputs);
}

}  // namespace

DetectAnomaly::DetectAnomaly(bool enabled)
    : before_(std::exchange(grad_settings().detects_anomaly, enabled)) {}
DetectAnomaly::~DetectAnomaly() { grad_settings().detects_anomaly = before_; }
bool detects_anomaly() { return grad_settings().detects_anomaly; }

void require_no_nan(const Node& node, std::span<const Tensor> given,
                    std::span<const Tensor> computed) {
  const NoGrad guard;
  const auto found = std::find_if(computed.begin(), computed.end(), has_nan);
  if (found == computed.end()) return;
  const bool before = std::any_of(given.begin(), given.end(), has_nan);
  throw AutogradError(fmt::format(
      "detect_anomaly: the gradient of {} for its input {} has a NaN{}; the forward call was {}{}",
      node.name(), found - computed.begin(),
      before ? ", and the gradient that it got has one already" : "", call_of(node),
      path_suffix()));
}

}  // namespace tenon
