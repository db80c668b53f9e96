// What checked mode (TENON_CHECK) writes into memory that holds no values. Each pattern repeats two
// bytes, and read as a number of any floating dtype all but the last two are a NaN, so that a
// result computed from it shows.
#pragma once

#include <cstdint>
#include <cstring>

namespace tenon::checked {

enum class Pattern : uint16_t {
  fresh = 0x7ff1,      // memory that was handed out and not written yet
  freed = 0x7ff2,      // memory that was given back
  guard = 0x7ffd,      // what lies before and behind every buffer
  unwritten = 0x7ff4,  // outputs, before the plan runs
  // The same for a second run. It differs from the first in each byte, so no value of any dtype
  // equals both.
  unwritten_again = 0xfff8,
  // In place of `fresh` and `unwritten` while there are OtherContents. They differ from
  // `unwritten_again` in each byte, too, and are finite numbers in every dtype: what takes the
  // greater or the smaller of two numbers passes over a NaN, and over one of the two.
  large = 0x7b7b,
  large_negative = 0xfbfb,
};

// The byte of a pattern at an address: its lower byte at even ones. Host memory can stand for
// device memory, so the address is not always that of the byte.
inline unsigned char byte_at(Pattern pattern, uintptr_t address) {
  return static_cast<unsigned char>(static_cast<uint16_t>(pattern) >> 8 * (address & 1));
}

// Eight bytes of a pattern from an address on.
inline uint64_t word_at(Pattern pattern, uintptr_t address) {
  uint64_t pair = byte_at(pattern, address) | uint64_t{byte_at(pattern, address + 1)} << 8;
  return pair * 0x0001000100010001u;
}

// Fills host memory with what the pattern has from `address` on.
inline void fill(unsigned char* host, uint64_t bytes, Pattern pattern, uintptr_t address) {
  const uint64_t word = word_at(pattern, address);
  const uint64_t words[] = {word, word, word, word};
  for (; bytes >= sizeof words; bytes -= sizeof words, host += sizeof words)
    std::memcpy(host, words, sizeof words);
  for (; bytes >= sizeof word; bytes -= sizeof word, host += sizeof word)
    std::memcpy(host, &word, sizeof word);
  std::memcpy(host, &word, bytes);
}

// Returns how many bytes from the front on are as `fill` left them; `bytes` if all are.
inline uint64_t intact(const unsigned char* host, uint64_t bytes, Pattern pattern,
                       uintptr_t address) {
  const uint64_t word = word_at(pattern, address);
  uint64_t at = 0, found, several[4];
  for (; bytes - at >= sizeof several; at += sizeof several) {
    std::memcpy(several, host + at, sizeof several);
    if ((several[0] ^ word) | (several[1] ^ word) | (several[2] ^ word) | (several[3] ^ word))
      break;
  }
  for (; bytes - at >= sizeof word; at += sizeof word) {
    std::memcpy(&found, host + at, sizeof word);
    if (found != word) break;
  }
  while (at < bytes && host[at] == byte_at(pattern, address + at)) ++at;
  return at;
}

}  // namespace tenon::checked
