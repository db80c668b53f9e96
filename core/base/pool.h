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
    auto& list = here_;
    if (!list.head || bytes != sizeof(T)) return ::operator new(bytes);
    auto* item = list.head;
    list.head = item->next;
    ++list.room;
    return item;
  }
  static void operator delete(void* p, size_t bytes) {
    auto& list = here_;
    if (bytes != sizeof(T) || (!list.room && !open(list))) return ::operator delete(p);
    auto* item = static_cast<Item*>(p);
    item->next = list.head;
    list.head = item;
    --list.room;
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr uint32_t kMaxKept = 0;  // the sanitizer has to see every deallocation
#else
  static constexpr uint32_t kMaxKept = 256;
#endif
  struct Item {
    Item* next;
  };
  struct List {
    Item* head = nullptr;
    uint32_t room = 0;  // how many more objects the list may keep
    bool open = false;  // it will be freed when its thread ends
  };

  // Called for the first deallocation in a thread. If the list could not be freed at the end of the
  // thread, nothing is kept.
  [[gnu::noinline]] static bool open(List& list) noexcept {
    static constinit ThreadExitKey kept;
    const auto key = kept.get([](void*) { end(); });
    if (list.open || kMaxKept == 0 || !key || pthread_setspecific(*key, &list) != 0) return false;
    list.open = true;
    list.room = kMaxKept;
    return true;
  }
  // Objects that are destroyed later in this thread may open the list again.
  static void end() noexcept {
    auto* item = here_.head;
    here_ = {};
    while (item) {
      auto* next = item->next;
      ::operator delete(item);
      item = next;
    }
  }

  static inline constinit thread_local List here_ TENON_FAST_TLS = {};
};

}  // namespace tenon
