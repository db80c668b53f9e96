// Memory that a stream writes while the one that it belongs to computes.
#include <mutex>

#include <tenon/core/error.h>
#include <tenon/core/runtime/allocator.h>
#include <tenon/core/runtime/context.h>

namespace tenon {

Ref<Storage> Allocator::allocate_apart(uint64_t bytes) {
  if (checked_ || !bytes || bytes > context_.max_bytes() || bytes > BlockHeap::kMaxBlock) return {};
  auto owner = Ref<Storage>::adopt(new Storage);
  owner->context = &context_;
  const auto block = take_apart(bytes);
  if (!block.data) return {};
  hold(*owner, block, bytes);
  if (context_.stream->failures.any()) context_.stream->failures.clear_poison(owner->data, bytes);
  return owner;
}

// Waits for no stream. Returns a block without data if the device has no room for it.
BlockHeap::Block Allocator::take_apart(uint64_t bytes) {
  for (;;) {
    {
      std::lock_guard lock(lock_);
      collect_pending();
      if (const auto block = find(bytes, true); block.data) return count(block), block;
      const uint64_t needed = BlockHeap::needed_for(bytes);
      const uint64_t most = max_reserved(needed) + kMaxApart / 2;
      if (stats_.reserved + segment_bytes(needed) > most) return {};
      lends_apart_ = true;
    }
    try {
      ask_system(bytes, true);
    } catch (const OutOfMemoryError&) {
      return {};  // work in order may do with the memory that it has
    }
  }
}

}  // namespace tenon
