#include "places.h"

#include <cstdlib>

namespace tenon::test {

namespace {

std::string place(const char* variable, const char* built) {
  const char* value = std::getenv(variable);
  return value && *value ? value : built;
}

}  // namespace

std::string reference_dir() { return place("TENON_REFERENCE_DIR", TENON_REFERENCE_DIR); }
std::string build_dir() { return place("TENON_BUILD_DIR", TENON_BUILD_DIR); }

}  // namespace tenon::test
