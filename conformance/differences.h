// Gradients against central differences, in f64.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tenon/conformance/compare.h>
#include <tenon/conformance/values.h>
#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>

namespace tenon::conformance {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// A number that depends on every element of `y` in its own way.
inline Tensor weighted_sum(const Tensor& y, double phase) {
  return sum(y * sample(y.shape(), phase));
}

inline std::vector<Tensor> leaves(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> result;
  for (auto& x : inputs) {
    result.push_back(x.detach().clone());
    result.back().requires_grad_();
  }
  return result;
}

inline Tensor or_zeros(const Tensor& gradient, const Tensor& like) {
  return gradient.defined() ? gradient : zeros_like(like);
}

// d f / d inputs, f with one result, against (f(x + h) - f(x - h)) / 2h. Throws a Mismatch.
inline void compare_with_differences(const Function& f, const std::vector<Tensor>& inputs,
                                     const std::string& what, double tolerance) {
  auto xs = leaves(inputs);
  Tensor y = f(xs);
  std::vector<Tensor> analytic(xs.size());
  if (y.requires_grad()) analytic = grad(std::span(&y, 1), xs, {}, {.allow_unused = true});
  const double h = 1e-5;
  for (size_t k = 0; k < xs.size(); ++k) {
    auto base = inputs[k].to_vector<double>();
    std::vector<double> numeric;
    for (size_t i = 0; i < base.size(); ++i) {
      double side[2];
      for (int s = 0; s < 2; ++s) {
        auto moved = base;
        moved[i] += s ? h : -h;
        auto at = leaves(inputs);
        at[k] = tensor(moved, inputs[k].shape());
        at[k].requires_grad_();
        side[s] = f(at).item();
      }
      numeric.push_back((side[1] - side[0]) / (2 * h));
    }
    require_close(or_zeros(analytic[k], xs[k]), tensor(numeric, xs[k].shape()), tolerance,
                  tolerance, what + ", input " + std::to_string(k));
  }
}

// First and second order. `f` maps f64 tensors to one tensor of any shape. Throws a Mismatch.
inline void check_gradients(const Function& f, const std::vector<Tensor>& inputs,
                            double tolerance = 2e-6) {
  Function objective = [&](const std::vector<Tensor>& xs) { return weighted_sum(f(xs), 0.7); };
  compare_with_differences(objective, inputs, "first order", tolerance);
  Function slope = [&](const std::vector<Tensor>& xs) {
    Tensor y = objective(xs);
    auto gradients = grad(std::span(&y, 1), xs, {}, {.create_graph = true, .allow_unused = true});
    Tensor total = scalar(0, {.dtype = f64});
    for (size_t i = 0; i < gradients.size(); ++i)
      if (gradients[i].defined())
        total = total + weighted_sum(gradients[i], 1.1 + static_cast<double>(i));
    return total;
  };
  compare_with_differences(slope, inputs, "second order", tolerance * 10);
}

}  // namespace tenon::conformance
