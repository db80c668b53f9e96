// Under a sanitizer everything takes several times as long. What it looks for does not come with
// more repetitions, so tests that repeat themselves do so less there.
#pragma once

namespace tenon::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Where memory is gone through without a second thread, the thread sanitizer sees nothing.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif

}  // namespace tenon::test
