// For tests that can go on for long: a short form belongs to the suite, the long one runs by `./dev fuzz`. A program that honours
// this gets the label `fuzz` in tests/CMakeLists.txt.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace tenon::test {

// TENON_FUZZ=long
inline bool fuzz_long() {
  const char* form = std::getenv("TENON_FUZZ");
  return form && std::string_view(form) == "long";
}

// How long a program may take in the long form: TENON_FUZZ_SECONDS.
inline double fuzz_seconds() {
  const char* seconds = std::getenv("TENON_FUZZ_SECONDS");
  return seconds ? std::strtod(seconds, nullptr) : 300;
}

// Visits 1, 2, 3 … until `visit` returns false: each number in the long form, until the seconds are over; else every so many, such
// that about `most_in_short` of the `expected` ones are visited. Returns how many were.
template <class F>
int64_t each_point(int64_t expected, int64_t most_in_short, double seconds, F&& visit) {
  const bool all = fuzz_long();
  const int64_t stride = all || expected <= most_in_short ? 1 : (expected + most_in_short - 1) / most_in_short;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  int64_t visited = 0;
  for (int64_t n = 1; visit(n); n += stride, ++visited)
    if (all && std::chrono::steady_clock::now() > end) break;
  return visited;
}

}  // namespace tenon::test
