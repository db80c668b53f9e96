#include <tenon/core/error.h>
#include <tenon/core/runtime/allocator.h>
#include <tenon/core/runtime/capture.h>
#include <tenon/core/runtime/context.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <mutex>

namespace tenon {

namespace {
constexpr uint64_t smallest = 64;

// What can never be there is refused before a size is rounded up, which must not wrap, or a cache is emptied for it. Kinds other
// than the first are no part of the device's memory.
void require_possible(const DeviceContext& context, uint32_t kind, uint64_t bytes) {
  if (bytes > (kind == 0 ? context.most_bytes() : DeviceContext::most_addressable)) [[unlikely]]
    context.refuse_allocation(bytes);
}
}  // namespace

void destroy(Storage* s) {
  if (s->data && s->allocator) s->allocator->free(*s);
  delete s;
}

void Storage::add_use(Stream& stream, uint64_t ticket) {
  if (allocator) allocator->add_use(*this, stream, ticket);
}

void Storage::wait_for_uses() {
  if (!allocator) return;
  for (auto& u : allocator->take_uses(*this)) context->stream->wait_for(*u.stream, u.ticket);
}

Allocator::Allocator(DeviceContext& context, uint32_t kind, uint64_t granularity, Behind behind)
    : context_(context), kind_(kind), granularity_(granularity), behind_(behind) {}
Allocator::Allocator(Allocator& parent)
    : context_(parent.context_),
      kind_(parent.kind_),
      granularity_(parent.granularity_),
      behind_(parent.behind_),
      parent_(&parent),
      lock_(parent.lock_),
      stats_(parent.stats_) {}

Allocator* Allocator::make_private(Allocator& parent) { return new Allocator(parent); }

// Blocks up to this size are cut out of slabs.
uint64_t Allocator::largest_carved() const { return granularity_ ? granularity_ / 2 : 64 << 10; }

// What the backend allocates at once anyway; else sixteen blocks, or 64 KiB of tiny ones.
uint64_t Allocator::slab_bytes(uint64_t block_bytes) const {
  return granularity_ ? granularity_ : std::max<uint64_t>(64 << 10, block_bytes * 16);
}

// Four classes to a power of two, so at most a quarter of a block is waste; below 256 bytes multiples of 64.
int Allocator::class_of(uint64_t bytes) {
  if (bytes <= 256) return static_cast<int>((bytes + smallest - 1) / smallest);  // 1..4
  const int log = 63 - std::countl_zero(bytes - 1);                              // 2^log <= bytes-1 < 2^(log+1), log >= 8
  const uint64_t quarter = (bytes - 1 - (uint64_t{1} << log)) >> (log - 2);
  return 5 + (log - 8) * 4 + static_cast<int>(quarter);
}

uint64_t Allocator::class_bytes(int c) {
  if (c <= 4) return static_cast<uint64_t>(c) * smallest;
  const int log = 8 + (c - 5) / 4;
  return (uint64_t{1} << log) + static_cast<uint64_t>((c - 5) % 4 + 1) * (uint64_t{1} << (log - 2));
}

Ref<Storage> Allocator::allocate(uint64_t bytes) {
  if (!parent_)
    if (auto* capture = context_.stream->own_capture()) return capture->memory().allocate(bytes);
  require_possible(context_, kind_, bytes);
  auto* s = new Storage;
  s->context = &context_;
  if (bytes == 0) return Ref<Storage>::adopt(s);
  auto owner = Ref<Storage>::adopt(s);
  const int c = class_of(bytes);
  s->block_bytes = class_bytes(c);
  s->data = take(s->block_bytes, c, false);
  s->bytes = bytes;
  s->allocator = this;
  if (parent_) {
    std::lock_guard lock(lock_);
    live_.insert(s);
  }
  return owner;
}

Ref<Storage> Allocator::allocate_for_host(uint64_t bytes) {
  require_possible(context_, kind_, bytes);
  auto owner = Ref<Storage>::adopt(new Storage);
  owner->context = &context_;
  if (bytes == 0) return owner;
  const int c = class_of(bytes);
  owner->block_bytes = class_bytes(c);
  owner->data = take(owner->block_bytes, c, true);
  owner->bytes = bytes;
  owner->allocator = this;
  // Whatever poisoned the block before, its new values come from the host.
  if (context_.stream->failures.any()) context_.stream->failures.heal(owner->data, bytes);
  return owner;
}

void* Allocator::take(uint64_t block_bytes, int c, bool for_host) {
  std::unique_lock lock(lock_);
  stats_.allocations++;
  stats_.allocated += block_bytes;
  stats_.peak_allocated = std::max(stats_.peak_allocated, stats_.allocated);
  if (!pending_.empty()) collect_pending();
  auto& list = free_[c];
  if (list.empty() && block_bytes <= largest_carved()) carve(block_bytes, c);
  if (!for_host && !list.empty()) {
    void* data = list.back().data;
    list.pop_back();
    return data;
  }
  // The block that was freed first is the likeliest to be out of use.
  for (auto it = list.begin(); it != list.end(); ++it)
    if (context_.stream->reached(it->ticket)) {
      void* data = it->data;
      list.erase(it);
      return data;
    }
  lock.unlock();
  try {
    return ask_system(block_bytes);
  } catch (...) {
    std::lock_guard again(lock_);
    stats_.allocated -= block_bytes;
    throw;
  }
}

// Fills the free list of a small class from a slab. False where the system gives none.
bool Allocator::carve(uint64_t block_bytes, int c) {
  const uint64_t bytes = slab_bytes(block_bytes);
  void* slab = nullptr;
  tn_error* e = context_.backend.api().memory_alloc(context_.handle, kind_, bytes, &slab);
  if (e) return e->destroy(e), false;
  stats_.system_allocations++;
  stats_.reserved += bytes;
  slabs_.push_back({static_cast<char*>(slab), bytes, c});
  for (uint64_t at = bytes / block_bytes * block_bytes; at >= block_bytes; at -= block_bytes)
    free_[c].push_back({static_cast<char*>(slab) + at - block_bytes, 0});
  return true;
}

void* Allocator::ask_system(uint64_t block_bytes) {
  auto& api = context_.backend.api();
  void* data = nullptr;
  tn_error* e = api.memory_alloc(context_.handle, kind_, block_bytes, &data);
  if (e && e->code == TN_CODE_OUT_OF_MEMORY) {
    e->destroy(e);
    // While it captures there is nothing to wait for: a capture begins on an idle stream.
    if (!context_.stream->capturing()) context_.stream->wait(context_.stream->last());
    (parent_ ? *parent_ : *this).empty_cache();
    e = api.memory_alloc(context_.handle, kind_, block_bytes, &data);
  }
  if (e && context_.stream->failures.lost()) e->destroy(e), context_.stream->require_device();
  if (e) {
    auto s = stats();
    check(e, "cannot allocate " + std::to_string(block_bytes) + " bytes on " + context_.device.str() + " (" +
                 std::to_string(s.allocated - block_bytes) + " in live tensors, " + std::to_string(s.reserved) +
                 " reserved; the cache was emptied first): ");
  }
  std::lock_guard lock(lock_);
  stats_.system_allocations++;
  stats_.reserved += block_bytes;
  return data;
}

void Allocator::free(Storage& s) {
  std::unique_lock lock(lock_);
  stats_.allocated -= s.block_bytes;
  std::erase_if(s.uses, [](const Storage::Use& u) { return u.stream->reached(u.ticket); });
  if (s.uses.empty())
    put_back(s.data, s.block_bytes);
  else
    pending_.push_back({s.data, s.block_bytes, std::move(s.uses)});
  if (!parent_) return;
  live_.erase(&s);
  if (!released_ || !live_.empty()) return;
  give_to_parent();
  lock.unlock();
  delete this;
}

void Allocator::release() {
  std::unique_lock lock(lock_);
  released_ = true;
  if (!live_.empty()) return;
  give_to_parent();
  lock.unlock();
  delete this;
}

// Later work of the same stream may have the blocks at once, as with any that are freed.
void Allocator::give_to_parent() {
  auto move_all = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    from.clear();
  };
  const uint64_t last = context_.stream->last();
  for (int c = 0; c < num_classes; ++c) {
    for (auto& block : free_[c]) block.ticket = last;
    move_all(free_[c], parent_->free_[c]);
  }
  move_all(pending_, parent_->pending_);
  move_all(slabs_, parent_->slabs_);
}

std::vector<Ref<Storage>> Allocator::live_storages() const {
  std::lock_guard lock(lock_);
  std::vector<Ref<Storage>> all;
  for (auto* s : live_) all.push_back(Ref<Storage>::share(s));
  return all;
}

void Allocator::put_back(void* data, uint64_t block_bytes) {
  free_[class_of(block_bytes)].push_back({data, behind_ == Behind::uses ? 0 : context_.stream->last()});
}

void Allocator::add_use(Storage& s, Stream& stream, uint64_t ticket) {
  std::lock_guard lock(lock_);
  for (auto& u : s.uses)
    if (u.stream == &stream) {
      u.ticket = std::max(u.ticket, ticket);
      return;
    }
  s.uses.push_back({&stream, ticket});
}

std::vector<Storage::Use> Allocator::take_uses(Storage& s) {
  std::lock_guard lock(lock_);
  return std::move(s.uses);
}

void Allocator::collect_pending() {
  // Asking a device takes time, and where it has not come to one ticket it has not come to a later one either.
  std::vector<Storage::Use> not_reached;
  auto reached = [&](const Storage::Use& u) {
    auto known = std::find_if(not_reached.begin(), not_reached.end(), [&](auto& n) { return n.stream == u.stream; });
    if (known != not_reached.end() && u.ticket >= known->ticket) return false;
    if (u.stream->reached(u.ticket)) return true;
    if (known != not_reached.end())
      known->ticket = u.ticket;
    else
      not_reached.push_back(u);
    return false;
  };
  std::erase_if(pending_, [&](Pending& p) {
    std::erase_if(p.uses, reached);
    if (!p.uses.empty()) return false;
    put_back(p.data, p.bytes);
    return true;
  });
}

MemoryStats Allocator::stats() const {
  std::lock_guard lock(lock_);
  return stats_;
}

uint64_t Allocator::in_use() {
  std::lock_guard lock(lock_);
  collect_pending();
  uint64_t bytes = stats_.allocated;
  for (auto& p : pending_) bytes += p.bytes;
  return bytes;
}

void Allocator::empty_cache() {
  std::lock_guard lock(lock_);
  collect_pending();
  std::vector<Slab> kept;
  for (int c = 1; c < num_classes; ++c) free_blocks(c, kept);
  slabs_ = std::move(kept);
}

// Of one size class: slabs whose blocks are all free, and blocks of their own. The other slabs go to `kept`.
void Allocator::free_blocks(int c, std::vector<Slab>& kept) {
  auto& blocks = free_[c];
  auto give_back = [&](void* data, uint64_t bytes) {
    context_.backend.api().memory_free(context_.handle, kind_, data, bytes);
    stats_.system_frees++;
    stats_.reserved -= bytes;
  };
  for (auto& slab : slabs_) {
    if (slab.size_class != c) continue;
    auto inside = [&](const Block& b) { return b.data >= slab.data && b.data < slab.data + slab.bytes; };
    const auto there = static_cast<uint64_t>(std::count_if(blocks.begin(), blocks.end(), inside));
    if (there < slab.bytes / class_bytes(c)) {
      kept.push_back(slab);
      continue;
    }
    std::erase_if(blocks, inside);
    give_back(slab.data, slab.bytes);
  }
  std::erase_if(blocks, [&](const Block& b) {
    auto holds = [&](const Slab& slab) { return b.data >= slab.data && b.data < slab.data + slab.bytes; };
    if (std::any_of(kept.begin(), kept.end(), holds)) return false;
    give_back(b.data, class_bytes(c));
    return true;
  });
}

}  // namespace tenon
