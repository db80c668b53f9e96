#include <tenon/core/number_text.h>

#include <cstdio>

namespace tenon {

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace tenon
