// How the tests of operators compare values and check gradients.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/tensor.h>

#include "support/expect.h"

namespace tenon::test {

inline Tensor doubles(const std::vector<double>& values, const Shape& shape) {
  return tensor(values, shape);
}
inline Tensor floats(const std::vector<float>& values, const Shape& shape) {
  return tensor(values, shape);
}
inline Tensor ints(const std::vector<int64_t>& values, const Shape& shape) {
  return tensor(values, shape);
}
inline Tensor bools(const std::vector<int64_t>& values, const Shape& shape) {
  return ints(values, shape).to(boolean);
}

// Values that repeat nowhere, change sign and stay away from 0 and from whole numbers: kinks are
// not between two samples.
inline Tensor sample(const Shape& shape, double phase = 0.3) {
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    double v = std::sin(1.7 * static_cast<double>(i) + phase) * 1.4;
    values[i] = v + (v < 0 ? -0.11 : 0.11);
  }
  return doubles(values, shape);
}
inline Tensor positive(const Shape& shape, double phase = 0.3) {
  return abs(sample(shape, phase)) + 0.2;
}

// Within atol + rtol |expected|; NaN is close to NaN only, and an infinity to itself.
inline bool is_close(double found, double expected, double rtol, double atol) {
  if (!std::isfinite(expected))
    return found == expected || (std::isnan(found) && std::isnan(expected));
  return std::abs(found - expected) <= atol + rtol * std::abs(expected);
}
inline void require_close(const std::vector<double>& found, const std::vector<double>& expected,
                          double rtol, double atol, const std::string& what = "") {
  BOOST_REQUIRE_MESSAGE(found.size() == expected.size(),
                        what << ": " << found.size() << " values, expected " << expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    BOOST_REQUIRE_MESSAGE(
        is_close(found[i], expected[i], rtol, atol),
        what << ": element " << i << " is " << found[i] << ", expected " << expected[i]);
}
inline void require_values(const Tensor& found, const Shape& shape,
                           const std::vector<double>& expected, double tolerance = 1e-6) {
  BOOST_REQUIRE_EQUAL(found.shape().str(), shape.str());
  require_close(found.to_vector<double>(), expected, tolerance, tolerance);
}
inline void require_equal(const Tensor& found, const Tensor& expected, double tolerance = 0) {
  BOOST_REQUIRE_EQUAL(found.shape().str(), expected.shape().str());
  require_close(found.to_vector<double>(), expected.to_vector<double>(), tolerance, tolerance);
}

// ---- gradients against central differences, in f64 ----

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

// d f / d inputs, f with one result, against (f(x + h) - f(x - h)) / 2h.
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
        at[k] = doubles(moved, inputs[k].shape());
        at[k].requires_grad_();
        side[s] = f(at).item();
      }
      numeric.push_back((side[1] - side[0]) / (2 * h));
    }
    Tensor found = or_zeros(analytic[k], xs[k]);
    BOOST_REQUIRE_EQUAL(found.shape().str(), xs[k].shape().str());
    require_close(found.to_vector<double>(), numeric, tolerance, tolerance,
                  what + ", input " + std::to_string(k));
  }
}

// First and second order. `f` maps f64 tensors to one tensor of any shape.
inline void check_gradients(const Function& f, const std::vector<Tensor>& inputs,
                            const std::string& what = "", double tolerance = 2e-6) {
  Function objective = [&](const std::vector<Tensor>& xs) { return weighted_sum(f(xs), 0.7); };
  compare_with_differences(objective, inputs, what + ": first order", tolerance);
  Function slope = [&](const std::vector<Tensor>& xs) {
    Tensor y = objective(xs);
    auto gradients = grad(std::span(&y, 1), xs, {}, {.create_graph = true, .allow_unused = true});
    Tensor total = scalar(0, {.dtype = f64});
    for (size_t i = 0; i < gradients.size(); ++i)
      if (gradients[i].defined())
        total = total + weighted_sum(gradients[i], 1.1 + static_cast<double>(i));
    return total;
  };
  compare_with_differences(slope, inputs, what + ": second order", tolerance * 10);
}

}  // namespace tenon::test
