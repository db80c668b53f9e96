// The checksum of checkpoints: XXH3, 128 bits. It finds damage, not forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tenon {

struct Checksum {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Checksum&, const Checksum&) = default;
};

Checksum checksum_of(const void* bytes, size_t count);

// Computes the checksum of bytes that arrive piece by piece.
class Checksummer {
 public:
  Checksummer();
  ~Checksummer();
  void add(const void* bytes, size_t count);
  Checksum result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
