// What a product or a convolution does at last to its result, while that is in the cache: it adds
// its residual and computes relu. oneDNN could do both in its own code, but with other bits: its
// relu makes 0 of NaN, and some of its kernels begin their sums with what is added.
#pragma once

#include <cstdint>

#include <tenon/plugins/sdk/requests/residual.h>

#include "runtime/common.h"

namespace tenon::onednn {

struct Finish {
  dnnl_data_type_t type = dnnl_f32;
  bool relu = false;
  sdk::ResidualRequest residual;  // of f32 alone

  // What a request asks for. The operator has so many inputs of its own. Refuses what has other
  // bits here than on the base.
  static Finish of(const Request& request, dnnl_data_type_t type, uint32_t inputs);

  explicit operator bool() const { return relu || residual; }
  const void* residual_of(const tn_run& run) const {
    return residual ? run.inputs[residual.input] : nullptr;
  }
  // The time of an element on one core: what the two operators take on `cpu`.
  double ns() const { return (relu ? 0.2 : 0) + (residual ? 0.1 : 0); }
  // Changes `count` elements at y; `added` are those of the residual, or null.
  void operator()(void* y, const void* added, int64_t count) const;
};

}  // namespace tenon::onednn
