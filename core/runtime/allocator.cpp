#include <tenon/core/error.h>
#include <tenon/core/runtime/allocator.h>
#include <tenon/core/runtime/context.h>

#include <algorithm>
#include <bit>
#include <mutex>

namespace tenon {

namespace {
constexpr uint64_t smallest = 64;
constexpr uint64_t largest_carved = 64 << 10;  // blocks up to this size come out of slabs
// Sixteen blocks at a time, or 64 KiB of tiny ones.
uint64_t slab_bytes_for(uint64_t block_bytes) { return std::max<uint64_t>(64 << 10, block_bytes * 16); }
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

Allocator::Allocator(DeviceContext& context, uint32_t kind, uint64_t alignment)
    : context_(context), kind_(kind), alignment_(std::max<uint64_t>(alignment, smallest)) {}

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
  auto* s = new Storage;
  s->context = &context_;
  if (bytes == 0) return Ref<Storage>::adopt(s);
  auto owner = Ref<Storage>::adopt(s);
  const int c = class_of(bytes);
  s->block_bytes = class_bytes(c);
  s->data = take(s->block_bytes, c, false);
  s->bytes = bytes;
  s->allocator = this;
  return owner;
}

Ref<Storage> Allocator::allocate_for_host(uint64_t bytes) {
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
  if (list.empty() && block_bytes <= largest_carved && context_.host_visible) carve(block_bytes, c);
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
    return ask_system(block_bytes, c);
  } catch (...) {
    std::lock_guard again(lock_);
    stats_.allocated -= block_bytes;
    throw;
  }
}

// Fills the free list of a small class from a slab. False where the system gives none.
bool Allocator::carve(uint64_t block_bytes, int c) {
  const uint64_t slab_bytes = slab_bytes_for(block_bytes);
  void* slab = nullptr;
  tn_error* e = context_.backend.api().memory_alloc(context_.handle, kind_, slab_bytes, &slab);
  if (e) return e->destroy(e), false;
  stats_.system_allocations++;
  stats_.reserved += slab_bytes;
  slabs_.push_back({slab, slab_bytes});
  for (uint64_t at = slab_bytes / block_bytes * block_bytes; at >= block_bytes; at -= block_bytes)
    free_[c].push_back({static_cast<char*>(slab) + at - block_bytes, 0});
  return true;
}

void* Allocator::ask_system(uint64_t block_bytes, int) {
  auto& api = context_.backend.api();
  void* data = nullptr;
  tn_error* e = api.memory_alloc(context_.handle, kind_, block_bytes, &data);
  if (e && e->code == TN_CODE_OUT_OF_MEMORY) {
    e->destroy(e);
    context_.stream->wait(context_.stream->last());
    empty_cache();
    e = api.memory_alloc(context_.handle, kind_, block_bytes, &data);
  }
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
  std::lock_guard lock(lock_);
  stats_.allocated -= s.block_bytes;
  std::erase_if(s.uses, [](const Storage::Use& u) { return u.stream->reached(u.ticket); });
  if (s.uses.empty())
    put_back(s.data, s.block_bytes);
  else
    pending_.push_back({s.data, s.block_bytes, std::move(s.uses)});
}

void Allocator::put_back(void* data, uint64_t block_bytes) {
  free_[class_of(block_bytes)].push_back({data, context_.stream->last()});
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
  std::erase_if(pending_, [&](Pending& p) {
    std::erase_if(p.uses, [](const Storage::Use& u) { return u.stream->reached(u.ticket); });
    if (!p.uses.empty()) return false;
    put_back(p.data, p.bytes);
    return true;
  });
}

MemoryStats Allocator::stats() const {
  std::lock_guard lock(lock_);
  return stats_;
}

void Allocator::empty_cache() {
  std::lock_guard lock(lock_);
  collect_pending();
  auto in_slab = [&](void* p) {
    return std::any_of(slabs_.begin(), slabs_.end(),
                       [&](const Slab& s) { return p >= s.data && p < static_cast<char*>(s.data) + s.bytes; });
  };
  for (int c = 1; c < num_classes; ++c)
    std::erase_if(free_[c], [&](const Block& b) {
      if (class_bytes(c) <= largest_carved && in_slab(b.data)) return false;
      context_.backend.api().memory_free(context_.handle, kind_, b.data, class_bytes(c));
      stats_.system_frees++;
      stats_.reserved -= class_bytes(c);
      return true;
    });
}

}  // namespace tenon
