#include <mutex>
#include <set>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/base/turns.h>

namespace tenon {

constinit ThreadExitKey turns_key;

}  // namespace tenon

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

void switched(uint64_t number, bool on) {
  const uint64_t share = mixed(number);
  modes.fetch_add(on ? share : -share, std::memory_order_relaxed);
}

uint64_t new_number() {
  static constinit std::atomic<uint64_t> numbers{0};
  return numbers.fetch_add(1, std::memory_order_relaxed) + 1;
}

namespace {
// The places of all flags that were ever switched, and are still there. Their addresses are their
// numbers, which are greater than those of new_number().
struct Flags {
  ForkMutex mutex{ForkOrder::tables};
  std::set<uintptr_t> places;
};
constinit NeverDestroyed<Flags> flags;
constinit std::atomic<size_t> num_flags{0};
}  // namespace

void switched(const bool& flag, bool on) {
  const auto place = reinterpret_cast<uintptr_t>(&flag);
  {
    Flags& all = flags.get();
    std::lock_guard lock(all.mutex);
    all.places.insert(place);
    num_flags.store(all.places.size(), std::memory_order_relaxed);
  }
  switched(uint64_t{place}, on);
}

void flags_are_gone(const void* begin, size_t bytes) noexcept {
  if (num_flags.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  const auto from = reinterpret_cast<uintptr_t>(begin);
  Flags& all = flags.get();
  std::lock_guard lock(all.mutex);
  const auto first = all.places.lower_bound(from), last = all.places.lower_bound(from + bytes);
  if (first == last) return;
  all.places.erase(first, last);
  num_flags.store(all.places.size(), std::memory_order_relaxed);
  changed();
}

}  // namespace tenon::recording
