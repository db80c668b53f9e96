// What checksum.cpp does with vectors of 16 bytes, with those of 32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::avx2 {

// Writes the low and the high half of a checksum.
void checksum(const void* bytes, size_t count, uint64_t* low, uint64_t* high);
// `state` is an XXH3_state_t, which is the same for all vectors.
void add(void* state, const void* bytes, size_t count);

}  // namespace tenon::avx2
