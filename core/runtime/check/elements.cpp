#include <algorithm>
#include <cstring>

#include <tenon/core/runtime/check/elements.h>

namespace tenon::checked {

namespace {

const char* chars(const unsigned char* bytes) { return reinterpret_cast<const char*>(bytes); }

// Each step maps different values of a word, or of the number so far, to different numbers, so one
// change is never lost.
uint64_t hash_word(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

uint64_t hash_run(uint64_t hash, const char* data, uint64_t bytes) {
  uint64_t words[4];
  if (bytes >= sizeof words) {
    uint64_t lanes[4] = {hash, 1, 2, 3};
    for (; bytes >= sizeof words; bytes -= sizeof words, data += sizeof words) {
      std::memcpy(words, data, sizeof words);
      for (int i = 0; i < 4; ++i) lanes[i] = hash_word(lanes[i], words[i]);
    }
    hash = 0;
    for (uint64_t lane : lanes) hash = hash_word(hash, lane);
  }
  // What has gaps comes in runs of one element.
  while (bytes) {
    const uint64_t part = std::min<uint64_t>(bytes, sizeof words[0]);
    words[0] = 0;
    std::memcpy(words, data, part);
    hash = hash_word(hash, words[0]);
    bytes -= part;
    data += part;
  }
  return hash;
}

// The bits of a NaN are greater than those of infinity.
template <class Bits>
bool any_nan(const char* data, uint64_t bytes, Bits infinity, uint64_t& at) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  for (at = 0; at < bytes / sizeof(Bits); ++at) {
    Bits bits;
    std::memcpy(&bits, data + at * sizeof bits, sizeof bits);
    if (static_cast<Bits>(bits & kMagnitude) > infinity) return true;
  }
  return false;
}

bool any_nan(const char* data, uint64_t bytes, DType type, uint64_t& at) {
  switch (type) {
    case DType::f32:
      return any_nan<uint32_t>(data, bytes, 0x7f800000, at);
    case DType::f64:
      return any_nan<uint64_t>(data, bytes, 0x7ff0000000000000, at);
    case DType::f16:
      return any_nan<uint16_t>(data, bytes, 0x7c00, at);
    case DType::bf16:
      return any_nan<uint16_t>(data, bytes, 0x7f80, at);
    default:
      return false;
  }
}

}  // namespace

uint64_t hash_of(const unsigned char* bytes, const Footprint& footprint) {
  uint64_t hash = 0;
  any_run(chars(bytes), footprint, [&](const char* run) {
    hash = hash_run(hash, run, footprint.run);
    return false;
  });
  return hash;
}

std::optional<uint64_t> first_nan(const unsigned char* bytes, const Footprint& footprint,
                                  DType type) {
  if (!is_floating_point(type)) return std::nullopt;
  uint64_t before = 0, at = 0;
  const bool found = any_run(chars(bytes), footprint, [&](const char* run) {
    if (any_nan(run, footprint.run, type, at)) return true;
    before += footprint.run / size_of(type);
    return false;
  });
  return found ? std::optional(before + at) : std::nullopt;
}

std::vector<bool> with_pattern(const unsigned char* bytes, uintptr_t address,
                               const Footprint& footprint, uint64_t item_bytes, Pattern pattern) {
  std::vector<bool> found;
  uint64_t element = 0, count = footprint.run / item_bytes;
  for (auto& axis : footprint.axes) count *= axis.count;
  any_run(chars(bytes), footprint, [&](const char* run) {
    const auto* data = reinterpret_cast<const unsigned char*>(run);
    const uintptr_t from = address + static_cast<uintptr_t>(data - bytes);
    for (uint64_t at = 0; at < footprint.run; at += item_bytes, ++element) {
      // Most values differ in their first byte.
      if (data[at] != byte_at(pattern, from + at) ||
          intact(data + at, item_bytes, pattern, from + at) != item_bytes)
        continue;
      found.resize(count);
      found[element] = true;
    }
    return false;
  });
  return found;
}

}  // namespace tenon::checked
