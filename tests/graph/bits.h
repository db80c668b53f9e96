// Comparisons of tensors bit for bit, and calls of a function beside its compiled form.
#pragma once

#include <cstring>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

namespace tenon::test {

inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (!is_floating_point(a.dtype())) return a.to_vector<int64_t>() == b.to_vector<int64_t>();
  const auto x = a.detach().to_vector<double>(), y = b.detach().to_vector<double>();
  return std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
}

inline bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!same_bits(a[i], b[i])) return false;
  return true;
}

// Whether explain() has the text.
template <class Compiled>
bool says(const Compiled& compiled, const std::string& text) {
  const std::string all = compiled.explain();
  if (all.find(text) != all.npos) return true;
  BOOST_TEST_MESSAGE(all);
  return false;
}

}  // namespace tenon::test
