// Where tests find what they read: where it was when they were built or, for programs that were
// carried to another machine, where the environment variable of the same name says. Only places.cpp
// is compiled with the paths, so that a compiler cache serves every other file of several
// checkouts.
#pragma once

#include <string>

namespace tenon::test {

// TENON_REFERENCE_DIR, reference results: cases/ and trajectories/.
std::string reference_dir();
// TENON_BUILD_DIR, the build tree with the programs and the plugins that are made for tests.
std::string build_dir();

}  // namespace tenon::test
