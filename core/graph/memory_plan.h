// Places in one piece of memory for values that are not needed at the same time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::graph {

// `bytes` are needed from step `first` to step `last`, both included.
struct Lifetime {
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<uint64_t> offsets;  // of each lifetime, multiples of the alignment
  uint64_t bytes = 0;             // of all of the memory
};

// Gives each lifetime a place, so that those which share a step never overlap. Two ways are tried,
// and the one that needs less memory is taken; of the second, which takes n^2 time, only up to some
// thousand lifetimes.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, uint64_t alignment);

}  // namespace tenon::graph
