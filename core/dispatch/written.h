// How much of a storage has been written, so that what an operator that is skipped would have
// changed can keep its values.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tenon/core/tensor_impl.h>

namespace tenon {

inline uint64_t bytes_before(const TensorImpl& t) {
  return static_cast<uint64_t>(t.offset) * size_of(t.dtype);
}
// Returns the number of bytes from the start of the storage to the end of the last element of the
// tensor.
inline uint64_t bytes_up_to_end(const TensorImpl& t) {
  int64_t last = t.offset;
  for (size_t i = 0; i < t.shape.size(); ++i) last += (t.shape[i] - 1) * t.strides[i];
  return (static_cast<uint64_t>(last) + 1) * size_of(t.dtype);
}

inline bool was_written(const TensorImpl& t) {
  const uint64_t written = t.storage->written.load(std::memory_order_relaxed);
  return written >= t.storage->bytes || written >= bytes_up_to_end(t);
}

// Notes which part of the storage has been written: from the front on, or all of it at once. No two
// elements share a place, so a tensor that spans as many places as it has elements has no gaps,
// whatever their order is.
inline void note_written(const TensorImpl& t) {
  auto& storage = *t.storage;
  const uint64_t written = storage.written.load(std::memory_order_relaxed);
  if (written >= storage.bytes) return;
  const uint64_t begin = bytes_before(t), end = bytes_up_to_end(t);
  const bool has_gaps = end - begin != static_cast<uint64_t>(t.numel) * size_of(t.dtype);
  if (!has_gaps && begin <= written && written < end)
    storage.written.store(end, std::memory_order_relaxed);
}

}  // namespace tenon
