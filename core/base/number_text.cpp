#include <cmath>

#include <fmt/core.h>

#include <tenon/core/base/number_text.h>
#include <tenon/core/error.h>

namespace tenon {

std::string number_text(double value) { return fmt::format("{:.6g}", value); }

void require_not_negative(const char* op, const char* what, double value) {
  if (value >= 0 && std::isfinite(value)) return;
  throw ValueError(
      fmt::format("{}: {} must be finite and at least 0, found {}", op, what, number_text(value)));
}

}  // namespace tenon
