#include <algorithm>
#include <cstring>

#include <tenon/core/runtime/check/elements.h>

namespace tenon::checked {

namespace {

const char* chars(const unsigned char* bytes) { return reinterpret_cast<const char*>(bytes); }

// Different words, or different numbers so far, give different results, so that a single change
// always changes the result.
uint64_t hash_word(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

template <class Word>
Word word_of(const char* data) {
  Word word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

// Computes four numbers independently, because each step has to wait for the one before it. They
// are no array, of which GCC would make vectors that take twice the time.
uint64_t hash_run(uint64_t hash, const char* data, uint64_t bytes) {
  constexpr uint64_t kWord = sizeof(uint64_t);
  if (bytes >= 4 * kWord) {
    uint64_t second = 1, third = 2, fourth = 3;
    for (; bytes >= 4 * kWord; bytes -= 4 * kWord, data += 4 * kWord) {
      hash = hash_word(hash, word_of<uint64_t>(data));
      second = hash_word(second, word_of<uint64_t>(data + kWord));
      third = hash_word(third, word_of<uint64_t>(data + 2 * kWord));
      fourth = hash_word(fourth, word_of<uint64_t>(data + 3 * kWord));
    }
    for (uint64_t other : {second, third, fourth}) hash = hash_word(hash, other);
  }
  // A tensor with gaps is hashed in runs of one element.
  for (; bytes >= kWord; bytes -= kWord, data += kWord)
    hash = hash_word(hash, word_of<uint64_t>(data));
  if (bytes == sizeof(uint32_t)) return hash_word(hash, word_of<uint32_t>(data));
  if (bytes == 0) return hash;
  uint64_t word = 0;
  std::memcpy(&word, data, bytes);
  return hash_word(hash, word);
}

// Whether one of the items is `wanted`. Most often none is, so that blocks are looked at as a
// whole, by vectors.
template <class Item>
bool any_item(const unsigned char* data, uint64_t bytes, Item wanted) {
  constexpr uint64_t kBlock = 16 * sizeof(Item);
  const char* at = reinterpret_cast<const char*>(data);
  for (; bytes >= kBlock; bytes -= kBlock, at += kBlock) {
    Item items[16], equal = 0;
    std::memcpy(items, at, kBlock);
    for (const Item item : items) equal |= static_cast<Item>(item == wanted);
    if (equal) return true;
  }
  for (; bytes >= sizeof(Item); bytes -= sizeof(Item), at += sizeof(Item))
    if (word_of<Item>(at) == wanted) return true;
  return false;
}

// Whether a run may have an item with the pattern. Items have one byte or an even number of them.
bool may_have(const unsigned char* data, uint64_t bytes, uint64_t item_bytes, Pattern pattern,
              uintptr_t address) {
  const uint64_t word = word_at(pattern, address);
  const char* const pair = reinterpret_cast<const char*>(&word);
  switch (item_bytes) {
    case 2:
      return any_item(data, bytes, word_of<uint16_t>(pair));
    case 4:
      return any_item(data, bytes, word_of<uint32_t>(pair));
    case 8:
      return any_item(data, bytes, word);
    default:
      return true;
  }
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
    if (!may_have(data, footprint.run, item_bytes, pattern, from)) {
      element += footprint.run / item_bytes;
      return false;
    }
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
