// Whether two tensors may share memory.
#pragma once

#include <cstdint>

#include <tenon/core/runtime/may_share_bytes.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

// Tensors of one storage may. Of two, only if the memory of one is the user's, who may have made
// several tensors over the same bytes.
inline bool may_share_memory(const TensorImpl& a, const TensorImpl& b) {
  if (a.storage == b.storage) return true;
  if (!a.storage->adopted() && !b.storage->adopted()) [[likely]]
    return false;
  const auto begin = [](const TensorImpl& t) { return reinterpret_cast<uintptr_t>(t.data()); };
  const auto footprint = [](const TensorImpl& t) {
    return Footprint(t.shape, t.strides, size_of(t.dtype));
  };
  return may_share_bytes(begin(a), footprint(a), begin(b), footprint(b));
}

}  // namespace tenon
