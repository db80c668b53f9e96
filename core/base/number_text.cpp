#include <cmath>
#include <cstdio>

#include <tenon/core/base/number_text.h>
#include <tenon/core/error.h>

namespace tenon {

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

void require_not_negative(const char* op, const char* what, double value) {
  if (value >= 0 && std::isfinite(value)) return;
  throw ValueError(std::string(op) + ": " + what + " must be finite and at least 0, found " +
                   number_text(value));
}

}  // namespace tenon
