// The attribute "residual" of products, convolutions and batch norms, read and checked once for
// every plugin.
#pragma once

#include <cstdint>

#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// Says what is added to each element of output 0, before the activation: a tensor that lies as that
// output does. A plan gives the bits that the device gives for the operator and `add` one by one; a
// plugin that cannot promise that refuses.
//
// Only a kernel that adds residuals reads the attribute. In the request of any other it stays
// unread, and create_plan refuses it.
struct ResidualRequest {
  // Say whether there is a residual, and which input it is.
  bool there = false;
  uint32_t input = 0;

  // Returns whether there is a residual.
  explicit operator bool() const { return there; }

  // Reads the attribute. `inputs` is how many inputs the operator has of its own, absent ones
  // included: the residual comes after them. Throws TN_CODE_INVALID_ARGUMENT if it has not the
  // result's shape and dtype, and TN_CODE_UNSUPPORTED if its strides differ.
  static ResidualRequest from(const Request& request, uint32_t inputs);
};

inline ResidualRequest ResidualRequest::from(const Request& request, uint32_t inputs) {
  if (!request.get_bool("residual", false)) return {};
  const tn_tensor_desc &residual = request.input(inputs), &y = request.output(0);
  if (!same_shape(residual, y) || residual.dtype != y.dtype)
    invalid("the residual has the shape and dtype of the result; found {} and {}",
            shape_text(residual), shape_text(y));
  for (uint32_t d = 0; d < y.rank; ++d)
    if (y.shape[d] > 1 && residual.strides[d] != y.strides[d])
      unsupported("the residual does not lie as the result does");
  return {true, inputs};
}

}  // namespace tenon::sdk
