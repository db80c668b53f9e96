#include <cstring>
#include <string>

#include <fmt/core.h>

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/differences.h>
#include <tenon/core/autograd/autograd.h>

namespace tenon::conformance {

namespace {

using Tensors = std::vector<Tensor>;

std::vector<double> doubles_of(const Tensor& x) {
  if (x.dtype() != f64) return copied_to(x, Device()).to_vector<double>();
  const auto bytes = bytes_of(x);
  std::vector<double> values(bytes.size() / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The weights of the k-th result: a gradient of each element that no other has.
Tensor weights_of(const Tensor& y, double phase, size_t k) {
  const DeviceGuard guard{Device()};
  const Tensor weights = sample(y.shape(), phase + static_cast<double>(k));
  return copied_to(y.dtype() == f64 ? weights : weights.to(y.dtype()), y.device());
}

bool is_weighed(const Tensors& ys, size_t k) {
  return ys[k].defined() && (k == 0 || ys[k].requires_grad());
}

// The weighted sum of all results.
double weighed(const Tensors& ys, double phase) {
  double total = 0;
  for (size_t k = 0; k < ys.size(); ++k) {
    if (!is_weighed(ys, k)) continue;
    const auto values = doubles_of(ys[k]),
               weights = sample_values(values.size(), phase + static_cast<double>(k));
    for (size_t i = 0; i < values.size(); ++i) total += values[i] * weights[i];
  }
  return total;
}

// The gradients of that sum, undefined where there is none.
Tensors slopes(const Functions& f, const Tensors& xs, double phase, bool again) {
  const Tensors ys = f(xs);
  Tensors sources, seeds;
  for (size_t k = 0; k < ys.size(); ++k) {
    if (!is_weighed(ys, k) || !ys[k].requires_grad()) continue;
    sources.push_back(ys[k]);
    seeds.push_back(weights_of(ys[k], phase, k));
  }
  if (sources.empty()) return Tensors(xs.size());
  return grad(sources, xs, seeds, {.create_graph = again, .allow_unused = true});
}

Tensors leaves(const Tensors& inputs) {
  Tensors result;
  for (auto& x : inputs) result.push_back(x.detach().requires_grad_());
  return result;
}

// d f / d inputs against (f(x + h) - f(x - h)) / 2h.
void compare_with_differences(const Functions& f, const Tensors& inputs, double phase,
                              const std::string& what, double tolerance) {
  const Tensors analytic = slopes(f, leaves(inputs), phase, false);
  const double h = 1e-5;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const auto base = doubles_of(inputs[k]);
    std::vector<double> numeric, found(base.size(), 0.0);
    for (size_t i = 0; i < base.size(); ++i) {
      double side[2];
      for (int s = 0; s < 2; ++s) {
        auto moved = base;
        moved[i] += s ? h : -h;
        auto at = leaves(inputs);
        at[k] = tensor(moved, inputs[k].shape(), {.device = inputs[k].device()}).requires_grad_();
        side[s] = weighed(f(at), phase);
      }
      numeric.push_back((side[1] - side[0]) / (2 * h));
    }
    const std::string which = fmt::format("{}, input {}: ", what, k);
    if (analytic[k].defined()) {
      if (analytic[k].shape() != inputs[k].shape())
        throw Mismatch(fmt::format("{}shape {}, expected {}", which, analytic[k].shape().str(),
                                   inputs[k].shape().str()));
      found = doubles_of(analytic[k]);
    }
    const std::string wrong = difference(found, numeric, inputs[k].shape(), tolerance, tolerance);
    if (!wrong.empty()) throw Mismatch(which + wrong);
  }
}

}  // namespace

void check_gradients(const Functions& f, const Tensors& inputs, double tolerance) {
  compare_with_differences(f, inputs, 0.7, "first order", tolerance);
  const Functions slope = [&](const Tensors& xs) { return slopes(f, xs, 0.7, true); };
  compare_with_differences(slope, inputs, 1.1, "second order", tolerance * 10);
}

void check_gradients(const Function& f, const Tensors& inputs, double tolerance) {
  check_gradients(Functions([&](const Tensors& xs) { return Tensors{f(xs)}; }), inputs, tolerance);
}

}  // namespace tenon::conformance
