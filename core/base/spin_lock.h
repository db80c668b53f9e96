// A lock for sections of some tens of nanoseconds, where the two calls of std::mutex would cost as
// much as the section itself.
#pragma once

#include <atomic>
#include <thread>

namespace tenon {

inline void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();  // <immintrin.h> has it too, and takes longer to parse than most files
#endif
}

class SpinLock {
 public:
  void lock() {
    for (int spins = 0; flag_.exchange(true, std::memory_order_acquire); ++spins) {
      if (spins < 64)
        cpu_pause();
      else
        std::this_thread::yield();
    }
  }
  void unlock() { flag_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> flag_{false};
};

}  // namespace tenon
