// Small objects that come and go with every operator: a thread keeps what it freed for its next one. Not installed.
#pragma once

#include <cstddef>
#include <new>

// The fast thread-local model: libtenon is loaded with its program, and a call per access would cost as much as the access saves.
#define TENON_FAST_TLS __attribute__((tls_model("initial-exec")))

namespace tenon {

// operator new and delete for T through a list a thread. Objects may be freed by another thread than made them.
template <class T>
struct Pooled {
  static void* operator new(size_t bytes) {
    auto& list = List::here;
    if (!list.head || bytes != sizeof(T)) return ::operator new(bytes);
    auto* item = list.head;
    list.head = item->next;
    --list.count;
    return item;
  }
  static void operator delete(void* p, size_t bytes) {
    auto& list = List::here;
    if (bytes != sizeof(T) || list.count >= most || list.ended) return ::operator delete(p);
    auto* item = static_cast<Item*>(p);
    item->next = list.head;
    list.head = item;
    ++list.count;
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr size_t most = 0;  // the sanitizer has to see every end
#else
  static constexpr size_t most = 256;
#endif
  struct Item {
    Item* next;
  };
  struct List {
    Item* head = nullptr;
    size_t count = 0;
    bool ended = false;
    static thread_local List here;
    ~List() {
      ended = true;  // other thread-local objects may still free into it
      while (head) {
        auto* item = head;
        head = item->next;
        ::operator delete(item);
      }
    }
  };
};

template <class T>
thread_local typename Pooled<T>::List Pooled<T>::List::here TENON_FAST_TLS;

}  // namespace tenon
