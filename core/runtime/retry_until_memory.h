// What cannot fail, although it needs some memory.
#pragma once

#include <new>
#include <thread>

namespace tenon {

// Failures are logged, and recordings end, where nobody can be told. If there is no memory for the
// few bytes that this needs, the thread waits until other threads have freed some. It should not
// hold a lock meanwhile that freeing memory needs.
template <class F>
void retry_until_memory(F&& action) {
  for (;;) {
    try {
      return action();
    } catch (const std::bad_alloc&) {
      std::this_thread::yield();
    }
  }
}

}  // namespace tenon
