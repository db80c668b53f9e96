#include "kernels/pointwise/finish.h"

#include <tenon/plugins/sdk/requests/activation.h>

namespace tenon::onednn {
namespace {

// Other activations are for the base, whose functions have other bits than oneDNN's.
bool ends_with_relu(const Request& request) {
  const auto activation = sdk::ActivationRequest::from(request);
  if (activation && activation.op != "relu")
    unsupported("of activations it computes relu alone, not {}", activation.op);
  return activation || request.op() == "linear_relu";
}

void add(const float* from, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] += from[i];
}

// As the base's relu: NaN stays, and so does -0.
void rectify(float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = y[i] < 0 ? 0 : y[i];
}
void rectify(uint16_t* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = rectified(y[i]);
}

}  // namespace

Finish Finish::of(const Request& request, dnnl_data_type_t type, uint32_t inputs) {
  Finish finish{type, ends_with_relu(request), sdk::ResidualRequest::from(request, inputs)};
  if (finish.residual && type != dnnl_f32) unsupported("residuals are added in f32 alone");
  return finish;
}

void Finish::operator()(void* y, const void* added, int64_t count) const {
  if (added) add(static_cast<const float*>(added), static_cast<float*>(y), count);
  if (!relu) return;
  if (type == dnnl_f32)
    rectify(static_cast<float*>(y), count);
  else
    rectify(static_cast<uint16_t*>(y), count);
}

}  // namespace tenon::onednn
