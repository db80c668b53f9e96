#include <tenon/core/random.h>

#include <mutex>

namespace tenon {

namespace {
std::mutex mutex;
RandomState state;
}  // namespace

void manual_seed(uint64_t seed) { set_random_state({seed, 0}); }

RandomState random_state() {
  std::lock_guard lock(mutex);
  return state;
}

void set_random_state(RandomState s) {
  std::lock_guard lock(mutex);
  state = s;
}

RandomState next_random() {
  std::lock_guard lock(mutex);
  RandomState before = state;
  ++state.offset;
  return before;
}

}  // namespace tenon
