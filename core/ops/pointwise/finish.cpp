#include <algorithm>
#include <string>

#include <fmt/core.h>

#include <tenon/core/base/module_path.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise/finish.h>

namespace tenon {

namespace {

// plugins/sdk/requests/activation.h repeats it.
struct KnownActivation {
  std::string_view op;
  uint8_t scalars;
};
constexpr KnownActivation kKnownActivations[] = {
    {"clamp", 2},     {"elu", 3},        {"gelu", 0},       {"gelu_tanh", 0}, {"hardsigmoid", 0},
    {"hardswish", 0}, {"leaky_relu", 1}, {"logsigmoid", 0}, {"mish", 0},      {"relu", 0},
    {"sigmoid", 0},   {"silu", 0},       {"softplus", 2},   {"tanh", 0}};

const KnownActivation* known_activation(std::string_view op) {
  const auto* found = std::find_if(std::begin(kKnownActivations), std::end(kKnownActivations),
                                   [op](const KnownActivation& a) { return a.op == op; });
  return found == std::end(kKnownActivations) ? nullptr : found;
}

// Which operators take an activation and a residual, and how many inputs come before that.
struct Finished {
  std::string_view op;
  size_t inputs;
};
constexpr Finished kFinished[] = {{"batch_norm", 5}, {"conv2d", 3}, {"linear", 3}, {"matmul", 2}};

}  // namespace

bool is_activation(const Op& op) {
  const KnownActivation* activation = known_activation(op.name);
  return activation && op.pointwise && op.scalars == activation->scalars && is_of_library(op);
}

bool takes_activation(const Op& op) { return residual_input(op).has_value(); }

std::optional<size_t> residual_input(const Op& op) {
  for (auto& finished : kFinished)
    if (finished.op == op.name && is_of_library(op)) return finished.inputs;
  return std::nullopt;
}

size_t count_activation_scalars(const Attrs& attrs) {
  if (!attrs.has(kActivation)) return 0;
  const KnownActivation* activation = known_activation(attrs.get_string(kActivation));
  return activation ? activation->scalars : 0;  // the shape rule refuses what is not known
}

size_t count_one_and_activation_scalars(const Attrs& attrs) {
  return 1 + count_activation_scalars(attrs);
}

void require_residual(const Infer& infer) {
  const auto at = residual_input(infer.op);
  if (!at || !infer.attrs.has(kResidual)) return;
  const TensorDesc& residual = infer.in(*at);
  const Infer::Output& result = infer.outputs[0];
  if (residual.dtype != result.dtype || residual.shape != result.shape)
    infer.shape_error(fmt::format("its residual is {} of shape {}, but its result {} of shape {}",
                                  residual.dtype, residual.shape, result.dtype, result.shape));
}

void require_activation(const Infer& infer) {
  if (!infer.attrs.has(kActivation)) return;
  const std::string_view asked = infer.attrs.get_string(kActivation);
  if (known_activation(asked)) return;
  std::string known;
  for (auto& activation : kKnownActivations) (known += known.empty() ? "" : ", ") += activation.op;
  throw ValueError(fmt::format("{}: activation \"{}\" is not known; there are {}{}", infer.op.name,
                               asked, known, path_suffix()));
}

}  // namespace tenon
