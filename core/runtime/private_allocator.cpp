// Allocators of the memory that only a stream graph uses.
#include <mutex>

#include <tenon/core/runtime/allocator.h>
#include <tenon/core/runtime/check/memory.h>
#include <tenon/core/runtime/context.h>

namespace tenon {

Allocator::Allocator(Allocator& parent)
    : context_(parent.context_),
      kind_(parent.kind_),
      alignment_(parent.alignment_),
      granularity_(parent.granularity_),
      waits_for_(parent.waits_for_),
      checked_(parent.checked_),
      parent_(&parent),
      lock_(parent.lock_),
      stats_(parent.stats_),
      segments_(parent.segments_) {}

Allocator* Allocator::make_private(Allocator& parent) { return new Allocator(parent); }

void Allocator::release() {
  std::unique_lock lock(lock_);
  released_ = true;
  if (live_.first) return;
  return_to_parent();
  lock.unlock();
  delete this;
}

// Later work of the same stream may use the blocks at once, as with all freed blocks.
void Allocator::return_to_parent() {
  if (checked_) checked_->end_graph(*this);
  while (auto* s = pending_.first) {
    pending_.remove(*s);
    parent_->pending_.add(*s);
    parent_->pending_bytes_ += s->block_bytes;
    parent_->heap_.adopt(*s->chunk);
  }
  heap_.move_free_to(parent_->heap_, context_.stream->last());
  host_heap_.move_free_to(parent_->host_heap_, context_.stream->last());
}

std::vector<Ref<Storage>> Allocator::live_storages() const {
  std::lock_guard lock(lock_);
  size_t count = 0;
  for (auto* s = live_.first; s; s = s->next) ++count;
  std::vector<Ref<Storage>> all;
  all.reserve(count);  // so that no handle is released while the lock is held
  for (auto* s = live_.first; s; s = s->next) all.push_back(Ref<Storage>::share(s));
  return all;
}

}  // namespace tenon
