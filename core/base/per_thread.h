// Data of a single thread. Static thread-local storage is scarce in a process that opens libtenon
// while it runs (a few hundred bytes for all libraries together), so only pointers and flags are
// stored there.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <optional>

#include <pthread.h>

// The fast access model: the default model calls a function for each access, which would cost as
// much as the data saves. tests/process checks how many bytes it takes in total.
#define TENON_FAST_TLS __attribute__((tls_model("initial-exec")))

namespace tenon {

// A key that is made at its first use. If a thread has set it to a non-null value, `end` runs when
// that thread ends. In contrast to the destructor of a thread_local, a key can be requested without
// ending the process if memory is short, and objects that are destroyed later in that thread may
// set it again. For the main thread, `end` does not run at exit, because static objects may still
// need the data. Not a static variable of a function, for the reason in never_destroyed.h.
class ThreadExitKey {
 public:
  // Returns nothing if the process has no keys left; the next call tries again.
  std::optional<pthread_key_t> get(void (*end)(void*)) noexcept {
    if (const uint64_t made = made_.load(std::memory_order_acquire)) return key_of(made);
    pthread_key_t fresh;
    if (pthread_key_create(&fresh, end) != 0) return std::nullopt;
    uint64_t first = 0;
    if (made_.compare_exchange_strong(first, uint64_t{fresh} + 1)) return fresh;
    pthread_key_delete(fresh);  // another thread was faster
    return key_of(first);
  }

 private:
  static pthread_key_t key_of(uint64_t made) { return static_cast<pthread_key_t>(made - 1); }
  std::atomic<uint64_t> made_{0};  // the key and one
};

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
    static constinit ThreadExitKey kept;
    const auto key = kept.get([](void* ended) {
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
