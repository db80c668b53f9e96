// How a thread rounds.
#pragma once

#include <cfenv>

namespace tenon {

// Returns whether this thread rounds to nearest and keeps subnormal numbers, as a new thread does.
// Returns false on processors where checking takes longer than setting both.
inline bool computes_by_default() {
#if defined(__x86_64__)
  constexpr unsigned kDefault = 0x1f80, kFlags = 0x3f;  // exceptions that have been raised
  return (__builtin_ia32_stmxcsr() & ~kFlags) == kDefault;
#else
  return false;
#endif
}

// While it lives, the thread computes as a new one does. Then it computes as before, whatever was
// set in between. It is for work that runs on a thread of the user, so that the results do not
// depend on the thread, and the thread not on what a plugin leaves behind.
class DefaultArithmetic {
 public:
  DefaultArithmetic() : changes_(!computes_by_default()) {
    if (!changes_) [[likely]]
      return;
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() {
    if (changes_) [[unlikely]]
      std::fesetenv(&before_);
    else if (!computes_by_default()) [[unlikely]]
      std::fesetenv(FE_DFL_ENV);
  }
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

 private:
  const bool changes_;
  std::fenv_t before_;
};

}  // namespace tenon
