// Random numbers from the counter-based generator Philox: the same seed gives the same numbers on
// every backend and for any number of threads.
#pragma once

#include <cstdint>

#include <tenon/core/api.h>

namespace tenon {

// Restarts the generator of this process with this seed and offset 0. The default seed is 0.
TENON_API void manual_seed(uint64_t seed);

// Says where the generator stands: which numbers the next random operator draws.
struct RandomState {
  // The seed that manual_seed has set.
  uint64_t seed = 0;
  uint64_t offset =
      0;  // number of random operators since the seed was set; each has 2^64 counters of its own
  // Returns whether both draw the same numbers next.
  friend bool operator==(const RandomState&, const RandomState&) = default;
};
// Returns where the generator of this process stands, for set_random_state or a checkpoint.
TENON_API RandomState random_state();
// Continues from this state: what is drawn from now on is what was drawn after it.
TENON_API void set_random_state(RandomState state);
// Returns the state for one random operator, and increments the offset. Any thread may call it.
TENON_API RandomState next_random();

}  // namespace tenon
