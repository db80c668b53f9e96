// How a thread rounds.
#pragma once

#include <cfenv>

namespace tenon {

// While it lives, the thread computes as a new one does: it rounds to nearest and keeps subnormal
// numbers. Then it computes as before, whatever was set in between. It is for work that runs on a
// thread of the user, so that the results do not depend on the thread, and the thread not on what a
// plugin leaves behind.
class DefaultArithmetic {
 public:
  DefaultArithmetic() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&before_); }
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

 private:
  std::fenv_t before_;
};

}  // namespace tenon
