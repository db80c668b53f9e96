// Which bytes of a buffer, and of the guard zones around it, are not what they should be.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/core/runtime/check/patterns.h>

namespace tenon::checked {

// A buffer at which someone looks.
struct Buffer {
  char* data = nullptr;
  uint64_t bytes = 0;
};

struct Changes {
  uint64_t count = 0;
  const char* first = nullptr;

  // Adds those of the `bytes` at `from` that do not have the pattern any more; the host can read
  // them at `host`.
  void look(const char* from, const unsigned char* host, uint64_t bytes, Pattern pattern);
  // "3 bytes <where> of 12 bytes, the first of them byte 12", or empty.
  std::string text(const Buffer& buffer, const char* where) const;
};

}  // namespace tenon::checked
