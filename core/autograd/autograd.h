// Gradients as values. core/grad_mode.h has the switches that turn recording on and off.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include <tenon/core/grad_mode.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Says what grad() does with the graph and with inputs that were not used.
struct GradOptions {
  // Keeps the recorded graph for another backward pass; by default if create_graph is true.
  std::optional<bool> retain_graph = std::nullopt;
  // Records the backward pass itself, for gradients of higher order.
  bool create_graph = false;
  // Returns an undefined tensor, and not an error, for an input that the outputs do not depend on.
  bool allow_unused = false;
};

// Returns the gradients of the outputs with respect to each input, of the shapes and dtypes of the
// inputs: the sum over outputs of the product of grad_outputs[i] and d(outputs[i])/d(input).
// `grad_outputs` has a tensor of the output's shape for each output, or is empty if all outputs
// have one element, which means ones. No tensor's grad() changes. Throws an AutogradError for an
// output or an input that does not require a gradient, for an input that was not used, and for a
// graph that an earlier backward pass freed; a ValueError, ShapeError, DTypeError or DeviceError
// for grad_outputs that do not fit.
TENON_API std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                                   std::span<const Tensor> grad_outputs = {},
                                   GradOptions options = {});
// Returns the gradient of one output, which has one element, with respect to one input.
inline Tensor grad(const Tensor& output, const Tensor& input, GradOptions options = {}) {
  return grad(std::span(&output, 1), std::span(&input, 1), {}, options)[0];
}
// Return the gradients for lists in braces, as in PyTorch: grad({loss}, {w, b}), or of all
// parameters of a model, grad({loss}, net.parameters()).
inline std::vector<Tensor> grad(std::initializer_list<Tensor> outputs,
                                std::span<const Tensor> inputs,
                                std::initializer_list<Tensor> grad_outputs = {},
                                GradOptions options = {}) {
  return grad(std::span(outputs.begin(), outputs.size()), inputs,
              std::span(grad_outputs.begin(), grad_outputs.size()), options);
}
inline std::vector<Tensor> grad(std::initializer_list<Tensor> outputs,
                                std::initializer_list<Tensor> inputs,
                                std::initializer_list<Tensor> grad_outputs = {},
                                GradOptions options = {}) {
  return grad(outputs, std::span(inputs.begin(), inputs.size()), grad_outputs, options);
}

namespace autograd {
// The same functions by the name of PyTorch's module, torch.autograd.grad.
using tenon::grad;
}  // namespace autograd

}  // namespace tenon
