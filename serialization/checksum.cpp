#include <tenon/serialization/checksum.h>

// Inlined: no run-time dependency, and the fastest form.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tenon {
namespace {
Checksum from(XXH128_hash_t hash) { return {hash.low64, hash.high64}; }
}  // namespace

struct Checksummer::State {
  XXH3_state_t xxh;
};

Checksum checksum_of(const void* bytes, size_t count) { return from(XXH3_128bits(bytes, count)); }

Checksummer::Checksummer() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
Checksummer::~Checksummer() = default;
void Checksummer::add(const void* bytes, size_t count) {
  XXH3_128bits_update(&state_->xxh, bytes, count);
}
Checksum Checksummer::result() const { return from(XXH3_128bits_digest(&state_->xxh)); }

}  // namespace tenon
