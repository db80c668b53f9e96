// Gradients as values. core/grad_mode.h has the switches for recording.
#pragma once

#include <span>
#include <vector>

#include <tenon/core/grad_mode.h>
#include <tenon/core/tensor.h>

namespace tenon {

struct GradOptions {
  std::optional<bool> retain_graph = std::nullopt;  // default: create_graph
  bool create_graph = false;  // record the gradients themselves, for higher orders
  bool allow_unused =
      false;  // an undefined tensor instead of an error for an input that was not used
};

// d(sum of outputs)/d(inputs), weighted by grad_outputs (empty: ones for single-element outputs).
// Touches nobody's .grad.
TENON_API std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                                   std::span<const Tensor> grad_outputs = {},
                                   GradOptions options = {});
inline Tensor grad(const Tensor& output, const Tensor& input, GradOptions options = {}) {
  return grad(std::span(&output, 1), std::span(&input, 1), {}, options)[0];
}

}  // namespace tenon
