// The part of the Allocator that works only in checked mode.
#include <mutex>

#include <tenon/core/runtime/allocator.h>
#include <tenon/core/runtime/check/memory.h>

namespace tenon {

BlockHeap::Block Allocator::take_checked(uint64_t bytes, bool for_host) {
  if (!parent_) reuse_checked(false);
  return take_slow(bytes + checked::Memory::kExtra, for_host);
}

// Blocks that were kept back for long enough, or all that no work uses any more, can be handed out
// again.
void Allocator::reuse_checked(bool all) {
  const auto blocks = checked_->settle(all);
  std::lock_guard lock(lock_);
  for (auto& block : blocks) BlockHeap::put_back(block, 0);
}

void Allocator::look_at_all() {
  if (!own_checked_) return;
  reuse_checked(true);
  checked_->look_at_live();
}

}  // namespace tenon
