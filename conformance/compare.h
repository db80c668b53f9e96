// How values are compared: the worst element says what is wrong. Header only and without {fmt},
// because the tests of all rooms compare this way and are not linked to it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon::conformance {

// A check that found something wrong. The text says what.
struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Within atol + rtol |expected|; NaN is close to NaN only, and an infinity to itself.
inline bool is_close(double found, double expected, double rtol, double atol) {
  if (!std::isfinite(expected))
    return found == expected || (std::isnan(found) && std::isnan(expected));
  return std::abs(found - expected) <= atol + rtol * std::abs(expected);
}

inline std::string text_of(double value, const char* format = "%.9g") {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// "[1, 3]" for element 7 of shape [2, 4].
inline std::string place_of(size_t element, const Shape& shape) {
  Shape place = shape;
  auto rest = static_cast<int64_t>(element);
  for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) place[d] = rest % shape[d];
  return place.str();
}

inline std::string how_many_differ(size_t wrong, size_t all) {
  return std::to_string(wrong) + " of " + std::to_string(all) +
         (wrong == 1 ? " elements differs" : " elements differ");
}

// What is wrong with values of `shape`, "" if they are close. Names the element that is farthest
// from what is allowed; one that is no number where one is expected is the farthest.
inline std::string difference(const std::vector<double>& found, const std::vector<double>& expected,
                              const Shape& shape, double rtol, double atol) {
  if (found.size() != expected.size())
    return std::to_string(found.size()) + " values, expected " + std::to_string(expected.size());
  const auto allowed = [&](size_t i) { return atol + rtol * std::abs(expected[i]); };
  size_t worst = 0, wrong = 0;
  double most = -1;
  for (size_t i = 0; i < found.size(); ++i) {
    if (is_close(found[i], expected[i], rtol, atol)) continue;
    ++wrong;
    const double excess = std::abs(found[i] - expected[i]) / (allowed(i) + 1e-300);
    const double far = std::isfinite(excess) ? excess : std::numeric_limits<double>::infinity();
    if (far > most) most = far, worst = i;
  }
  if (wrong == 0) return "";
  const double e = expected[worst], f = found[worst];
  std::string text =
      "element " + place_of(worst, shape) + " is " + text_of(f) + ", expected " + text_of(e);
  if (std::isfinite(e) && std::isfinite(f))
    text += " (off by " + text_of(std::abs(f - e), "%.3g") + ", allowed " +
            text_of(allowed(worst), "%.3g") + ")";
  return text + "; " + how_many_differ(wrong, found.size());
}

// The same of whole numbers, which a double may not hold. Names the first that is another one.
inline std::string difference_of_whole(const std::vector<int64_t>& found,
                                       const std::vector<int64_t>& expected, const Shape& shape) {
  size_t first = 0, wrong = 0;
  for (size_t i = found.size(); i-- > 0;)
    if (found[i] != expected[i]) first = i, ++wrong;
  if (wrong == 0) return "";
  return "element " + place_of(first, shape) + " is " + std::to_string(found[first]) +
         ", expected " + std::to_string(expected[first]) + "; " +
         how_many_differ(wrong, found.size());
}

// Throws a Mismatch "<what>: …" unless the shape is the same and the values are close.
inline void require_close(const Tensor& found, const Tensor& expected, double rtol, double atol,
                          const std::string& what) {
  const auto require = [&](bool ok, const std::string& wrong) {
    if (!ok) throw Mismatch(what + ": " + wrong);
  };
  require(found.shape() == expected.shape(),
          "shape " + found.shape().str() + ", expected " + expected.shape().str());
  if (expected.dtype() == i64 && found.dtype() == i64) {
    const std::string wrong = difference_of_whole(found.to_vector<int64_t>(),
                                                  expected.to_vector<int64_t>(), found.shape());
    return require(wrong.empty(), wrong);
  }
  const std::string wrong = difference(found.to_vector<double>(), expected.to_vector<double>(),
                                       found.shape(), rtol, atol);
  require(wrong.empty(), wrong);
}
inline void require_dtype(const Tensor& found, DType expected, const std::string& what) {
  if (found.dtype() != expected)
    throw Mismatch(what + ": dtype " + std::string(name_of(found.dtype())) + ", expected " +
                   std::string(name_of(expected)));
}
// Dtype, shape and values are the same. `scale`: how large values are with which an absolute error
// is compared.
inline void require_same(const Tensor& found, const Tensor& expected, double allowed,
                         const std::string& what, double scale = 1) {
  require_dtype(found, expected.dtype(), what);
  require_close(found, expected, allowed, allowed * scale, what);
}

}  // namespace tenon::conformance
