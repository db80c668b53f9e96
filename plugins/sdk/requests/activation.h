// The attribute "activation" of products, convolutions and batch norms, read and checked once for
// every plugin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// Says what is computed of each element of output 0 at last: the pointwise operator of this name,
// with the numbers of a run as its scalars, which come after those of the operator itself. A plan
// gives the bits that the device gives for the two operators one by one; a plugin that cannot
// promise that refuses.
//
// Only a kernel that computes activations reads the attribute. In the request of any other it stays
// unread, and create_plan refuses it.
struct ActivationRequest {
  // The name of the operator, which lives as long as the plugin; empty if there is none.
  std::string_view op;
  // Counts the scalars of a run that belong to it.
  size_t scalars = 0;

  // Returns whether there is an activation.
  explicit operator bool() const { return !op.empty(); }

  // Reads the attribute. Throws TN_CODE_INVALID_ARGUMENT if it is no text or scalars are missing,
  // and TN_CODE_UNSUPPORTED for an activation that is not known: a newer core may have more.
  static ActivationRequest from(const Request& request) { return after(request, 0); }
  // Reads it for an operator that has `own` scalars itself.
  static ActivationRequest after(const Request& request, size_t own);
};

inline ActivationRequest ActivationRequest::after(const Request& request, size_t own) {
  // core/ops/pointwise/finish.cpp repeats it.
  static constexpr struct {
    std::string_view op;
    size_t scalars;
  } known[] = {{"clamp", 2},       {"elu", 3},       {"gelu", 0},       {"gelu_tanh", 0},
               {"hardsigmoid", 0}, {"hardswish", 0}, {"leaky_relu", 1}, {"logsigmoid", 0},
               {"mish", 0},        {"relu", 0},      {"sigmoid", 0},    {"silu", 0},
               {"softplus", 2},    {"tanh", 0}};
  if (!request.find("activation")) return {};
  const std::string_view asked = request.get_string("activation");
  const auto* found = std::find_if(std::begin(known), std::end(known),
                                   [&](auto& activation) { return activation.op == asked; });
  if (found == std::end(known)) unsupported("activation \"{}\" is not known to this plugin", asked);
  require_scalars(request, own + found->scalars);
  return {found->op, found->scalars};
}

}  // namespace tenon::sdk
