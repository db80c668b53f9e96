// Under a sanitizer everything takes several times as long. What it looks for does not come with
// more repetitions, so tests that repeat themselves do so less there. Asked when the program runs,
// as the same objects are linked to a library with a sanitizer and to one without.
#pragma once

extern "C" {
__attribute__((weak)) void __asan_init();
__attribute__((weak)) void __tsan_init();
}

namespace tenon::test {

// Where memory is gone through without a second thread, the thread sanitizer sees nothing.
inline const bool kThreadSanitized = __tsan_init != nullptr;
inline const bool kSanitized = __asan_init != nullptr || kThreadSanitized;

}  // namespace tenon::test
