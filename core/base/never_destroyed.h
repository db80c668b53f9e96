// An object of which a process has one: made at its first use and never destroyed, because static
// objects and detached threads may use it until the process has ended.
#pragma once

#include <atomic>
#include <memory>

namespace tenon {

// A plain static variable of a function is locked while it is made. Where another thread forks at
// that moment, the lock stays behind in the child, and the child's first use waits for ever. Here
// the child makes an object of its own. If two threads are the first, both make one, and one of the
// two is deleted.
//
//   static constinit NeverDestroyed<ForkMutex, ForkOrder::tables> mutex;
//   std::lock_guard lock(mutex.get());
template <class T, auto... kArguments>
class NeverDestroyed {
 public:
  T& get() {
    T* made = made_.load(std::memory_order_acquire);
    return made ? *made : make();
  }

 private:
  T& make() {
    auto fresh = std::make_unique<T>(kArguments...);
    T* first = nullptr;
    return made_.compare_exchange_strong(first, fresh.get()) ? *fresh.release() : *first;
  }
  std::atomic<T*> made_{nullptr};
};

}  // namespace tenon
