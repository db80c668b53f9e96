// Random numbers: counter-based Philox, so that the same seed gives the same numbers on every
// backend and at any thread count.
#pragma once

#include <cstdint>

#include <tenon/core/api.h>

namespace tenon {

// Starts the generator of this process anew: seed and offset 0. The default seed is 0.
TENON_API void manual_seed(uint64_t seed);

struct RandomState {
  uint64_t seed = 0;
  uint64_t offset =
      0;  // random operators called since the seed was set; each has 2^64 counters of its own
  friend bool operator==(const RandomState&, const RandomState&) = default;
};
TENON_API RandomState random_state();
TENON_API void set_random_state(RandomState state);
// The state for one random operator; the next one gets another offset. Thread safe.
TENON_API RandomState next_random();

}  // namespace tenon
