#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/recorded_calls.h>
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
// numbers, which are greater than those of new_number(). And those of the objects that recorded
// functions have called, each with the number of the recording in which that was first.
struct Places {
  ForkMutex mutex{ForkOrder::tables};
  std::set<uintptr_t> flags;
  std::map<uintptr_t, uint64_t> called;
  uint64_t recordings = 0;
};
constinit NeverDestroyed<Places> places;
constinit std::atomic<size_t> num_places{0};

void note_size(const Places& all) {
  num_places.store(all.flags.size() + all.called.size(), std::memory_order_relaxed);
}
}  // namespace

void switched(const bool& flag, bool on) {
  const auto place = reinterpret_cast<uintptr_t>(&flag);
  {
    Places& all = places.get();
    std::lock_guard lock(all.mutex);
    all.flags.insert(place);
    note_size(all);
  }
  switched(uint64_t{place}, on);
}

void calls_begin() {
  Places& all = places.get();
  std::lock_guard lock(all.mutex);
  ++all.recordings;
}

void calls(const void* object) {
  Places& all = places.get();
  std::lock_guard lock(all.mutex);
  all.called.emplace(reinterpret_cast<uintptr_t>(object), all.recordings);
  note_size(all);
}

void flags_are_gone(const void* begin, size_t bytes) noexcept {
  if (num_places.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  const auto from = reinterpret_cast<uintptr_t>(begin);
  Places& all = places.get();
  std::lock_guard lock(all.mutex);
  const auto flag = all.flags.lower_bound(from), last_flag = all.flags.lower_bound(from + bytes);
  const auto call = all.called.lower_bound(from), last_call = all.called.lower_bound(from + bytes);
  if (flag == last_flag && call == last_call) return;
  // What a function makes and ends while it is recorded, each call makes anew.
  const uint64_t own = here() ? all.recordings : 0;
  const bool matters = flag != last_flag || std::any_of(call, last_call, [&](const auto& called) {
                         return called.second != own;
                       });
  all.flags.erase(flag, last_flag);
  all.called.erase(call, last_call);
  note_size(all);
  if (matters) changed();
}

}  // namespace tenon::recording
