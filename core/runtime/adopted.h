// Memory of the host that belongs to the user and that tensors use where it is.
#pragma once

#include <functional>

#include <tenon/core/storage.h>

namespace tenon {

struct AdoptedMemory {
  std::function<void()> release;  // may be empty
};

// Returns a storage over `bytes` bytes from `data` on for a device that computes in the memory of
// the host. When its last handle is gone, the calling thread waits for the work that uses the
// memory and then calls `owner->release`, which whoever calls this sets, once.
Ref<Storage> adopt_memory(DeviceContext& context, void* data, uint64_t bytes);

// Ends such a storage. Never throws.
void end_adopted(Storage* storage) noexcept;

// Waits until no queued work uses the memory of a storage any more, on whatever stream.
void wait_until_unused(Storage& storage);

}  // namespace tenon
