// Whether two storages, or two tensors, share memory.
#pragma once

#include <cstdint>

#include <tenon/core/dispatch/written.h>
#include <tenon/core/runtime/may_share_bytes.h>
#include <tenon/core/storage.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

// Two storages can share bytes only if the memory of at least one is the user's, who may have made
// several storages of the same memory. For most storages this test is enough.
inline bool may_overlap(const Storage& a, const Storage& b) { return a.adopted() || b.adopted(); }

// Whether these ranges of two storages share bytes.
inline bool lie_over(const Storage& a, uint64_t a_begin, uint64_t a_bytes, const Storage& b,
                     uint64_t b_begin, uint64_t b_bytes) {
  if (!may_overlap(a, b)) [[likely]]
    return false;
  const uint64_t x = reinterpret_cast<uintptr_t>(a.data) + a_begin,
                 y = reinterpret_cast<uintptr_t>(b.data) + b_begin;
  return x < y + b_bytes && y < x + a_bytes;
}

// Whether two tensors may share memory. Those of one storage may.
inline bool may_share_memory(const TensorImpl& a, const TensorImpl& b) {
  if (a.storage == b.storage) return true;
  if (!may_overlap(*a.storage, *b.storage)) [[likely]]
    return false;
  if (!a.numel || !b.numel) return false;
  const uint64_t a_begin = bytes_before(a), b_begin = bytes_before(b);
  if (!lie_over(*a.storage, a_begin, bytes_up_to_end(a) - a_begin, *b.storage, b_begin,
                bytes_up_to_end(b) - b_begin))
    return false;  // before memory is allocated for footprints
  const auto address = [](const TensorImpl& t) { return reinterpret_cast<uintptr_t>(t.data()); };
  const auto footprint = [](const TensorImpl& t) {
    return Footprint(t.shape, t.strides, size_of(t.dtype));
  };
  return may_share_bytes(address(a), footprint(a), address(b), footprint(b));
}

}  // namespace tenon
