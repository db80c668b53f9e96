// Which operators a backend must offer, and which the core can do without.
#pragma once

#include <span>
#include <string_view>

namespace tenon::conformance {

// The version of the set of operators. It goes up when one is added, is at another level, or takes
// more than before. levels_test fails where the table has changed and this number has not.
inline constexpr int kOperatorSet = 7;

enum class Level {
  required,    // a decomposition, or one of the models below, needs it, and nothing can replace it
  decomposes,  // where a backend does not offer it, the core computes it by others
  optional,    // the functions that use it are an UnsupportedError without it
};

// A line of levels.inc, which tests/ops/levels_test.cpp makes by asking: it trains the models on a
// backend that offers simple operators only, and notes what they need there. The first line of the
// file says which version of the set it is, and how many operators that has.
struct OperatorLevel {
  std::string_view op;
  Level level;
  std::string_view parts;   // the operators to which it decomposes, separated by spaces
  std::string_view models;  // of MLP, LeNet, ResNet and transformer those that use it
};

// Sorted by name. Operators of which no backend is asked, such as views, are not in it.
std::span<const OperatorLevel> operator_levels();
// Returns null for an operator that is not in it.
const OperatorLevel* level_of(std::string_view op);
std::string_view name_of(Level level);

}  // namespace tenon::conformance
