// For tests that can go on for long: a short form belongs to the suite, the long one runs by `./dev
// fuzz`. A program that honours this gets the label `fuzz` in tests/CMakeLists.txt.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <boost/test/unit_test.hpp>

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

// When a test case of the long form has to end: all cases of a program get the same part of its
// time.
class Deadline {
 public:
  // Whether there is no time left: then what the case has not tried yet is left out. Never in the
  // short form.
  bool over() const { return fuzz_long() && std::chrono::steady_clock::now() > end_; }

 private:
  static double share() {
    return fuzz_seconds() /
           static_cast<double>(boost::unit_test::framework::master_test_suite().size());
  }
  std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(share()));
};

// Visits 1, 2, 3 … until `visit` returns false: each number in the long form, until the time is
// over; else every so many, such that about `most_in_short` of the `expected` ones are visited.
// Returns how many were.
template <class F>
int64_t each_point(int64_t expected, int64_t most_in_short, const Deadline& deadline, F&& visit) {
  const int64_t stride =
      fuzz_long() || expected <= most_in_short ? 1 : (expected + most_in_short - 1) / most_in_short;
  int64_t visited = 0;
  for (int64_t n = 1; !deadline.over() && visit(n); n += stride) ++visited;
  return visited;
}

}  // namespace tenon::test
