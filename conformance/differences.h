// Gradients against central differences, in f64.
#pragma once

#include <functional>
#include <vector>

#include <tenon/conformance/compare.h>
#include <tenon/conformance/values.h>
#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>

namespace tenon::conformance {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;
// Results that depend on no input, or on none that has a gradient, may be undefined.
using Functions = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// A number that depends on every element of `y` in its own way.
inline Tensor weighted_sum(const Tensor& y, double phase) {
  return sum(y * sample(y.shape(), phase));
}

// First and second order. `f` maps f64 tensors to tensors of any shape on their device; only what
// `f` and its gradients need runs there, sums and differences are the host's. Throws a Mismatch.
void check_gradients(const Functions& f, const std::vector<Tensor>& inputs,
                     double tolerance = 2e-6);
// The same of one result.
void check_gradients(const Function& f, const std::vector<Tensor>& inputs, double tolerance = 2e-6);

}  // namespace tenon::conformance
