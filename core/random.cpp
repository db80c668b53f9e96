#include <mutex>
#include <utility>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/random.h>
#include <tenon/core/repeated_draws.h>

namespace tenon {

namespace {
ForkMutex& state_mutex() {
  static constinit NeverDestroyed<ForkMutex, ForkOrder::tables> mutex;
  return mutex.get();
}
RandomState state;

// Returns where the generator stood.
RandomState exchange_state(RandomState s) {
  std::lock_guard lock(state_mutex());
  return std::exchange(state, s);
}
}  // namespace

void manual_seed(uint64_t seed) { set_random_state({seed, 0}); }

RandomState random_state() {
  std::lock_guard lock(state_mutex());
  return state;
}

void set_random_state(RandomState s) {
  if (auto* recorder = recording::here()) [[unlikely]] {
    recorder->refuse("the generator of random numbers is set");
    recorder->drew(s);  // steps of optimizers may do much that is refused elsewhere, but not this
  }
  exchange_state(s);
}

RepeatedDraws::RepeatedDraws(RandomState from) : before_(exchange_state(from)) {
  if (auto* recorder = recording::here()) recorder->begin_repeated();
}
RepeatedDraws::~RepeatedDraws() {
  exchange_state(before_);
  if (auto* recorder = recording::here()) recorder->end_repeated();
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
