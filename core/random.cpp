#include <mutex>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/random.h>

namespace tenon {

namespace {
ForkMutex& state_mutex() {
  static constinit NeverDestroyed<ForkMutex, ForkOrder::tables> mutex;
  return mutex.get();
}
RandomState state;
}  // namespace

void manual_seed(uint64_t seed) { set_random_state({seed, 0}); }

RandomState random_state() {
  std::lock_guard lock(state_mutex());
  return state;
}

void set_random_state(RandomState s) {
  recording::refuse("the generator of random numbers is set");
  std::lock_guard lock(state_mutex());
  state = s;
}

RandomState next_random() {
  RandomState before;
  {
    std::lock_guard lock(state_mutex());
    before = state;
    ++state.offset;
  }
  if (auto* recorder = recording::here()) [[unlikely]]
    recorder->drew(before);
  return before;
}

}  // namespace tenon
