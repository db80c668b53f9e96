// How the tests of operators compare values and check gradients.
#pragma once

#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/conformance/differences.h>
#include <tenon/core/tensor.h>

#include "support/expect.h"

namespace tenon::test {

using conformance::Function;
using conformance::is_close;
using conformance::positive;
using conformance::sample;
using conformance::weighted_sum;

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

inline void require_close(const std::vector<double>& found, const std::vector<double>& expected,
                          double rtol, double atol, const std::string& what = "") {
  const std::string wrong = conformance::difference(
      found, expected, Shape(static_cast<int64_t>(expected.size())), rtol, atol);
  BOOST_REQUIRE_MESSAGE(wrong.empty(), what << ": " << wrong);
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

// First and second order, against central differences in f64. `f` maps f64 tensors to one tensor
// of any shape.
inline void check_gradients(const conformance::Function& f, const std::vector<Tensor>& inputs,
                            const std::string& what = "", double tolerance = 2e-6) {
  try {
    conformance::check_gradients(f, inputs, tolerance);
  } catch (const conformance::Mismatch& e) {
    BOOST_FAIL(what << ": " << e.what());
  }
}

}  // namespace tenon::test
