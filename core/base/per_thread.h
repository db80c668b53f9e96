// What a thread keeps for itself. Static thread-local storage is scarce in a process that opens
// libtenon when it already runs (a few hundred bytes for all libraries together), so only pointers
// and flags stand there. Not installed.
#pragma once

#include <new>
#include <optional>

#include <pthread.h>

// The fast model: a call per access would cost as much as the access saves. tests/process checks
// what it takes in all.
#define TENON_FAST_TLS __attribute__((tls_model("initial-exec")))

namespace tenon {

// A key whose `end` runs when a thread ends that has set it to anything but null. Unlike the
// destructor of a thread_local it can be asked for without ending the process where memory is
// short, and what ends later in that thread may set it anew. Nothing where the process has no keys
// left. At exit the main thread's are not ended: static objects may still need them.
inline std::optional<pthread_key_t> make_thread_end(void (*end)(void*)) noexcept {
  pthread_key_t key;
  return pthread_key_create(&key, end) == 0 ? std::optional(key) : std::nullopt;
}

// One T a thread, made by the first call and ended with the thread.
template <class T>
class PerThread {
 public:
  // Null where there is no memory for it; the next call tries again.
  static T* get() noexcept {
    if (here_) [[likely]]
      return here_;
    return make();
  }

 private:
  [[gnu::noinline]] static T* make() noexcept {
    static const auto key = make_thread_end([](void* ended) {
      here_ = nullptr;
      delete static_cast<T*>(ended);
    });
    if (!key) return nullptr;
    auto* made = new (std::nothrow) T{};
    if (!made || pthread_setspecific(*key, made) != 0) {
      delete made;
      return nullptr;
    }
    return here_ = made;
  }

  static inline constinit thread_local T* here_ TENON_FAST_TLS = nullptr;
};

}  // namespace tenon
