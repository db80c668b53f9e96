// Functions that are compiled with each pass alone, with all and with none: they give the same
// bits, and explain() says how many operators are left.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"

namespace tenon::test {

constexpr CompilePasses kNoPasses{.dead_code = false,
                                  .common_subexpressions = false,
                                  .copies = false,
                                  .constants = false,
                                  .residuals = false,
                                  .activations = false,
                                  .pointwise = false};

inline CompilePasses only(bool CompilePasses::*pass) {
  CompilePasses passes = kNoPasses;
  passes.*pass = true;
  return passes;
}

// Calls a function and its compiled form on new arguments each time. Returns what explain() says.
using FunctionOfOne = std::function<std::vector<Tensor>(const Tensor&)>;
inline std::string explained(const FunctionOfOne& f, const CompilePasses& passes,
                             const std::function<Tensor()>& argument) {
  auto compiled = compile([&](const Tensor& x) { return f(x); }, CompileOptions{.passes = passes});
  for (int i = 0; i < 6; ++i) {
    const Tensor x = argument();
    const auto expected = f(x.clone());
    BOOST_TEST(same_bits(compiled(x), expected));
  }
  return compiled.explain();
}

inline std::string operators_of(size_t operators, size_t recorded) {
  return "a program of " + std::to_string(operators) + " operators, replayed 4 times, made of " +
         std::to_string(recorded) + " ";
}

inline void require_operators(
    const FunctionOfOne& f, bool CompilePasses::*pass, size_t before, size_t after,
    const std::function<Tensor()>& argument = [] {
      return randn({60, 500});
    }) {
  for (auto& [passes, operators] : {std::pair(kNoPasses, before), std::pair(only(pass), after),
                                    std::pair(CompilePasses(), after)}) {
    const std::string text = explained(f, passes, argument);
    BOOST_TEST(text.find(operators_of(operators, before)) != text.npos, text);
  }
}

}  // namespace tenon::test
