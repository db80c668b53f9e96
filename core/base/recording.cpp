#include <tenon/core/base/recording.h>

namespace tenon::recording {

constinit std::atomic<pthread_t> recorded_thread{0};
constinit std::atomic<Listener*> listener{nullptr};
constinit std::atomic<uint64_t> changes{0}, modes{0};

namespace {
// A number as good as random (the finalizer of SplitMix64), so that no two sums are equal by
// chance.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
}  // namespace

void switched(const void* place, bool on) {
  const uint64_t number = mixed(reinterpret_cast<uintptr_t>(place));
  modes.fetch_add(on ? number : -number, std::memory_order_relaxed);
}

}  // namespace tenon::recording
