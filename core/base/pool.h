// Small objects that are created and destroyed with every operator. A thread keeps the memory that
// it freed for its next object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include <tenon/core/base/per_thread.h>

namespace tenon {

// Provides operator new and delete for T, with one free list for each thread. An object may be
// freed by another thread than the one that created it.
template <class T>
struct Pooled {
  static void* operator new(size_t bytes) {
    auto& first = here_;
    const Item* item = first;
    if (!item->next || bytes != sizeof(T)) return ::operator new(bytes);
    first = item->next;
    return const_cast<Item*>(item);
  }
  static void operator delete(void* p, size_t bytes) {
    auto& first = here_;
    if (bytes != sizeof(T) || (first->kept >= kMaxKept && !open())) return ::operator delete(p);
    first = new (p) Item{first, first->kept + 1};
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr uint32_t kMaxKept = 0;  // the sanitizer has to see every deallocation
#else
  static constexpr uint32_t kMaxKept = 256;
#endif
  // What is freed, with the number of such items from it on. The last of a list is none of them,
  // and leads nowhere: kEmpty, or, before the list may keep any, kClosed, which counts as full.
  struct Item {
    const Item* next;
    uint32_t kept;
  };
  static constexpr Item kEmpty{nullptr, 0}, kClosed{nullptr, kMaxKept};

  // Called for the first deallocation in a thread, and while the list is full. If the list could
  // not be freed at the end of the thread, nothing is kept.
  [[gnu::noinline]] static bool open() noexcept {
    static constinit ThreadExitKey kept;
    if (kMaxKept == 0 || here_ != &kClosed) return false;
    const auto key = kept.get([](void*) { end(); });
    if (!key || pthread_setspecific(*key, &here_) != 0) return false;
    here_ = &kEmpty;
    return true;
  }
  // Objects that are destroyed later in this thread may open the list again.
  static void end() noexcept {
    const Item* item = here_;
    here_ = &kClosed;
    while (item->next) {
      const Item* next = item->next;
      ::operator delete(const_cast<Item*>(item));
      item = next;
    }
  }

  // A pointer alone, as static thread-local storage is scarce.
  static inline constinit thread_local const Item* here_ TENON_FAST_TLS = &kClosed;
};

}  // namespace tenon
