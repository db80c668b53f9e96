// Where tests find what they read: where it was when they were built or, for programs that were carried to another machine, where
// the environment says.
#pragma once

#include <cstdlib>
#include <string>

namespace tenon::test {

inline std::string place(const char* variable, const char* built) {
  const char* value = std::getenv(variable);
  return value && *value ? value : built;
}

// Reference results: cases/ and trajectories/.
inline std::string reference_dir() { return place("TENON_REFERENCE_DIR", TENON_REFERENCE_DIR); }
// The build tree with the plugins that are made for tests.
inline std::string build_dir() { return place("TENON_BUILD_DIR", TENON_BUILD_DIR); }

}  // namespace tenon::test
