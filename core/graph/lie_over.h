// Whether two storages share memory.
#pragma once

#include <cstdint>

#include <tenon/core/storage.h>

namespace tenon::graph {

// Two storages share bytes only where the memory of one is the user's. So most need no more than a
// look at that.
inline bool lie_over(const Storage& a, uint64_t a_begin, uint64_t a_bytes, const Storage& b,
                     uint64_t b_begin, uint64_t b_bytes) {
  if (!a.adopted() && !b.adopted()) [[likely]]
    return false;
  const uint64_t x = reinterpret_cast<uintptr_t>(a.data) + a_begin,
                 y = reinterpret_cast<uintptr_t>(b.data) + b_begin;
  return x < y + b_bytes && y < x + a_bytes;
}

}  // namespace tenon::graph
