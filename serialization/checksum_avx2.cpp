// XXH3 compiled for AVX2, which checksum.cpp calls where the processor has it. Nothing with inline
// functions of C++ may be included: the linker could take those of this file for others, too.
#if defined(__x86_64__)

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <tenon/serialization/checksum_avx2.h>

namespace tenon::avx2 {

void checksum(const void* bytes, size_t count, uint64_t* low, uint64_t* high) {
  const XXH128_hash_t hash = XXH3_128bits(bytes, count);
  *low = hash.low64;
  *high = hash.high64;
}

void add(void* state, const void* bytes, size_t count) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state), bytes, count);
}

}  // namespace tenon::avx2

#endif
