// Data of a single thread. Static thread-local storage is scarce in a process that opens libtenon
// while it runs (a few hundred bytes for all libraries together), so only pointers and flags are
// stored there.
#pragma once

#include <new>
#include <optional>

#include <pthread.h>

// The fast access model: the default model calls a function for each access, which would cost as
// much as the data saves. tests/process checks how many bytes it takes in total.
#define TENON_FAST_TLS __attribute__((tls_model("initial-exec")))

namespace tenon {

// Returns a key. If a thread has set it to a non-null value, `end` runs when that thread ends. In
// contrast to the destructor of a thread_local, a key can be requested without ending the process
// if memory is short, and objects that are destroyed later in that thread may set it again. Returns
// nothing if the process has no keys left. For the main thread, `end` does not run at exit, because
// static objects may still need the data.
inline std::optional<pthread_key_t> make_thread_exit_key(void (*end)(void*)) noexcept {
  pthread_key_t key;
  return pthread_key_create(&key, end) == 0 ? std::optional(key) : std::nullopt;
}

// One T for each thread. The first call creates it, and it is destroyed when the thread ends.
template <class T>
class PerThread {
 public:
  // Returns null if there is no memory for it; the next call tries again.
  static T* get() noexcept {
    if (here_) [[likely]]
      return here_;
    return make();
  }

 private:
  [[gnu::noinline]] static T* make() noexcept {
    static const auto key = make_thread_exit_key([](void* ended) {
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
