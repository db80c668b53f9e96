#include <algorithm>

#include <tenon/conformance/levels.h>

namespace tenon::conformance {

namespace {
constexpr OperatorLevel kLevels[] = {
#include "levels.inc"
};
}  // namespace

std::span<const OperatorLevel> operator_levels() { return kLevels; }

const OperatorLevel* level_of(std::string_view op) {
  const auto* found = std::lower_bound(std::begin(kLevels), std::end(kLevels), op,
                                       [](auto& l, std::string_view name) { return l.op < name; });
  return found != std::end(kLevels) && found->op == op ? found : nullptr;
}

std::string_view name_of(Level level) {
  constexpr std::string_view names[] = {"required", "decomposes", "optional"};
  return names[static_cast<size_t>(level)];
}

}  // namespace tenon::conformance
