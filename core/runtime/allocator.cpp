#include <algorithm>
#include <bit>
#include <mutex>

#include <fmt/core.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/runtime/adopted.h>
#include <tenon/core/runtime/allocator.h>
#include <tenon/core/runtime/capture.h>
#include <tenon/core/runtime/check/memory.h>
#include <tenon/core/runtime/context.h>

namespace tenon {

namespace {
// Refuses impossible sizes before they are rounded up, which must not overflow, and before the
// cache is emptied for them. Only the first kind of memory is the memory of the device.
void require_possible(const DeviceContext& context, uint32_t kind, uint64_t bytes) {
  if (bytes > (kind == 0 ? context.max_bytes() : DeviceContext::kMaxAddressable)) [[unlikely]]
    context.refuse_allocation(bytes);
}
}  // namespace

void destroy(Storage* s) {
  if (recording::any()) [[unlikely]]
    recording::listener.load(std::memory_order_acquire)->freed(*s);
  if (s->adopted()) [[unlikely]]
    end_adopted(s);
  else if (s->data && s->allocator)
    s->allocator->free(s);
  else
    delete s;
}

void Storage::add_use(DeviceStream& stream, uint64_t ticket) {
  if (allocator) allocator->add_use(*this, stream, ticket);
}

void Storage::wait_for_uses() {
  if (!allocator) return;
  for (Use use; allocator->next_use(*this, use); allocator->end_use(*this, use))
    context->stream->wait_for(*use.stream, use.ticket);
}

void Storage::forget_failed() {
  if (!data) return;
  if (const uint64_t then = context->stream->forget_failed(data, block_bytes))
    write_ticket.store(then, std::memory_order_release);
}

void Allocator::List::add(Storage& s) {
  s.previous = nullptr;
  s.next = first;
  if (first) first->previous = &s;
  first = &s;
}

void Allocator::List::remove(Storage& s) {
  (s.previous ? s.previous->next : first) = s.next;
  if (s.next) s.next->previous = s.previous;
}

Allocator::Allocator(DeviceContext& context, uint32_t kind, const tn_memory_kind& description,
                     WaitsFor waits_for)
    : context_(context),
      kind_(kind),
      alignment_(description.alignment),
      granularity_(TN_HAS(tn_memory_kind, &description, granularity) ? description.granularity : 0),
      waits_for_(waits_for),
      own_checked_(check_settings().on ? std::make_unique<checked::Memory>(
                                             context, description.flags & TN_MEMORY_HOST_VISIBLE)
                                       : nullptr),
      checked_(own_checked_.get()) {}
Allocator::~Allocator() = default;

// ---- taking ----

inline BlockHeap::Block Allocator::take(uint64_t bytes, bool for_host) {
  BlockHeap::Block block;
  {
    std::lock_guard lock(lock_);
    if (!for_host && !pending_.first && heap_.take_recent(bytes, block)) return count(block), block;
  }
  return take_slow(bytes, for_host);
}

Ref<Storage> Allocator::make(uint64_t bytes, bool for_host) {
  auto owner = Ref<Storage>::adopt(new Storage);
  auto& s = *owner;
  s.context = &context_;
  if (auto* recorder = recording::here()) [[unlikely]]
    recorder->allocated(s, for_host);
  if (bytes == 0) return owner;
  require_possible(context_, kind_, bytes);
  hold(s, checked_ ? take_checked(bytes, for_host) : take(bytes, for_host), bytes);
  return owner;
}

void Allocator::hold(Storage& s, const BlockHeap::Block& block, uint64_t bytes) {
  s.data = block.data;
  s.block_bytes = block.bytes;
  s.chunk = block.chunk;
  s.slot = block.slot;
  s.bytes = bytes;
  s.allocator = this;
  if (notes_blocks_) [[unlikely]]
    note(s);
}

void Allocator::note(Storage& s) {
  if (parent_) {
    std::lock_guard lock(lock_);
    live_.add(s);
  }
  if (checked_) checked_->hand_out(s, parent_ ? this : nullptr);
}

Ref<Storage> Allocator::allocate(uint64_t bytes) {
  if (!parent_)
    if (auto* capture = context_.stream->own_capture()) return capture->memory().allocate(bytes);
  return make(bytes, false);
}

Ref<Storage> Allocator::allocate_for_host(uint64_t bytes) {
  auto owner = make(bytes, true);
  // The host writes new values, so an old failure of this block does not matter any more.
  if (bytes && context_.stream->failures.any())
    context_.stream->failures.clear_poison(owner->data, bytes);
  return owner;
}

BlockHeap::Block Allocator::take_slow(uint64_t bytes, bool for_host) {
  for (;;) {
    {
      std::lock_guard lock(lock_);
      collect_pending();
      if (const auto block = find(bytes, for_host); block.data) return count(block), block;
    }
    ask_system(bytes, for_host);  // another thread may take the new segment first
  }
}

BlockHeap::Block Allocator::find(uint64_t bytes, bool for_host) {
  if (!for_host)
    if (const auto block = heap_.take(bytes, nullptr); block.data) return block;
  Reached reached(*context_.stream);
  for (int settled = 0; settled < 2; ++settled) {
    if (for_host)
      if (const auto block = host_heap_.take(bytes, &reached); block.data) return block;
    if (const auto block = heap_.take(bytes, for_host ? &reached : nullptr); block.data)
      return block;
    if (!for_host)
      if (const auto block = host_heap_.take(bytes, nullptr); block.data) return block;
    if (settled) break;
    heap_.merge_free();
    host_heap_.merge_free();
  }
  return {};
}

// ---- the system ----

// The unit in which the backend allocates, or 256 KiB if it does not say.
uint64_t Allocator::smallest_segment() const {
  return granularity_ ? BlockHeap::round_up(granularity_) : 256 << 10;
}

// Sizes are rounded up to an eighth of the next lower power of two, at most 64 MiB, so that sizes
// which grow a little each time still fit. Segments are also larger if much is reserved already, so
// that there are not too many.
uint64_t Allocator::segment_bytes(uint64_t bytes) const {
  const uint64_t unit = smallest_segment();
  const uint64_t least = std::min<uint64_t>(8 << 20, stats_.reserved / 16);
  uint64_t wanted = std::max({bytes, unit, least});
  const uint64_t eighth = std::min<uint64_t>(std::bit_floor(wanted) / 8, 64 << 20);
  wanted = (wanted + eighth - 1) / eighth * eighth;
  return (wanted + unit - 1) / unit * unit;
}

// The limit is a quarter above the highest use so far, plus a few small segments. If segments are
// returned again and again while the highest use stays the same, the order of the requests needs
// more memory: the limit then rises by another quarter each time, up to twice the highest use.
uint64_t Allocator::max_reserved(uint64_t bytes) {
  const uint64_t peak = std::max(stats_.peak_allocated, stats_.allocated + bytes);
  if (peak > peak_at_last_return_ + peak_at_last_return_ / 4)
    peak_at_last_return_ = peak, given_back_ = extra_quarters_ = 0;
  if (given_back_ > 4 * peak && extra_quarters_ < 3) ++extra_quarters_, given_back_ = 0;
  return peak + (1 + extra_quarters_) * (peak / 4) + 4 * smallest_segment();
}

// Returns completely free segments, the smallest first, until another segment fits under the limit.
void Allocator::make_room(uint64_t bytes, uint64_t segment) {
  std::unique_lock lock(lock_);
  const uint64_t most = max_reserved(bytes) + (lends_apart_ ? kMaxApart : 0);
  if (stats_.reserved + segment <= most) return;
  const uint64_t last =
      std::max(heap_.ticket_of_free_segments(), host_heap_.ticket_of_free_segments());
  // During a capture nothing runs, so there is nothing to wait for. A spin lock must not be held
  // while this waits.
  if (!context_.stream->reached(last)) {
    if (context_.stream->capturing()) return;
    lock.unlock();
    context_.stream->wait(last);
    lock.lock();
  }
  Reached reached(*context_.stream);
  for (auto* heap : {&heap_, &host_heap_})
    while (stats_.reserved + segment > most) {
      auto freed = heap->remove_free_segment(&reached);
      if (!freed) break;
      given_back_ += freed->bytes;
      give_back(*freed);
    }
}

void Allocator::ask_system(uint64_t bytes, bool for_host) {
  if (bytes > BlockHeap::kMaxBlock)
    throw OutOfMemoryError(fmt::format(
        "cannot allocate {} bytes on {}: no device has that much memory", bytes, context_.device));
  context_.stream->require_open();
  context_.stream->require_device();
  auto& api = context_.backend.api();
  auto node = BlockHeap::make_node();
  auto place = Segments::make_place();
  const uint64_t needed = BlockHeap::needed_for(bytes);
  uint64_t segment;
  {
    std::lock_guard lock(lock_);
    segment = segment_bytes(needed);
  }
  if (!parent_) make_room(needed, segment);
  void* data = nullptr;
  tn_error* e = api.memory_alloc(context_.handle, kind_, segment, alignment_, &data);
  if (e && e->code == TN_CODE_OUT_OF_MEMORY) {
    e->destroy(e);
    // During a capture nothing runs, so there is nothing to wait for: a capture begins on an idle
    // stream.
    if (!context_.stream->capturing()) context_.wait_for_streams();
    (parent_ ? *parent_ : *this).empty_cache();
    for (auto* other : context_.contexts())
      if (other != &context_) other->memory->empty_cache();
    const uint64_t unit = granularity_ ? smallest_segment() : 64 << 10;
    segment = (needed + unit - 1) / unit * unit;  // no more than is needed
    e = api.memory_alloc(context_.handle, kind_, segment, alignment_, &data);
  }
  if (e && context_.stream->failures.lost()) e->destroy(e), context_.stream->require_device();
  if (e) {
    auto s = stats();
    context_.stream->require(
        e, fmt::format("cannot allocate {} bytes on {} ({} in live tensors, {} reserved; the "
                       "cache was emptied first): ",
                       bytes, context_.device, s.allocated, s.reserved));
  }
  std::pair<uintptr_t, uint64_t> other{};
  {
    std::lock_guard lock(lock_);
    if (const auto* found = segments_.overlapping(data, segment)) [[unlikely]] {
      other = *found;
    } else {
      segments_.add(std::move(place), data, segment);
      stats_.system_allocations++;
      stats_.reserved += segment;
      (for_host ? host_heap_ : heap_).add_segment(std::move(node), data, segment);
      return;
    }
  }
  const auto fault = fmt::format(
      "gave {} bytes at {}, which overlap the {} bytes at {:#x} that it gave before and that were "
      "not freed; give each call memory of its own",
      segment, data, other.second, other.first);
  context_.stream->require(api.broken("memory_alloc", fault),
                           fmt::format("no memory on {}: ", context_.device));
}

void Allocator::give_back(MemoryChunk& segment) {
  segments_.remove(segment.data);
  if (context_.stream->failures.any())
    context_.stream->failures.clear_poison(segment.data, segment.bytes);
  context_.backend.api().memory_free(context_.handle, kind_, segment.data, segment.bytes);
  stats_.system_frees++;
  stats_.reserved -= segment.bytes;
}

void Allocator::empty_cache() {
  if (context_.stream->closed()) return;
  if (checked_) reuse_checked(true);
  std::lock_guard lock(lock_);
  collect_pending();
  Reached reached(*context_.stream);
  for (auto* heap : {&heap_, &host_heap_}) {
    heap->merge_free();
    while (auto segment = heap->remove_free_segment(&reached)) give_back(*segment);
  }
}

// ---- freeing ----

void Allocator::put_back(Storage& s) {
  const uint64_t ticket = waits_for_ == WaitsFor::uses ? 0 : context_.stream->last();
  if (checked_ && checked_->give_back(s, ticket)) return;
  BlockHeap::put_back({s.data, s.block_bytes, s.chunk, s.slot}, ticket);
}

void Allocator::free(Storage* s) noexcept {
  std::unique_lock lock(lock_);
  stats_.allocated -= s->block_bytes;
  if (parent_) live_.remove(*s);
  if (!s->uses.empty())
    std::erase_if(s->uses, [](const Storage::Use& u) { return u.stream->reached(u.ticket); });
  const bool pending = !s->uses.empty();
  if (pending) {
    pending_.add(*s);
    pending_bytes_ += s->block_bytes;
  } else {
    put_back(*s);
  }
  const bool ended = parent_ && released_ && !live_.first;
  if (ended) return_to_parent();
  lock.unlock();
  if (!pending) delete s;
  if (ended) delete this;
}

// ---- work on other streams ----

void Allocator::add_use(Storage& s, DeviceStream& stream, uint64_t ticket) {
  try {
    std::lock_guard lock(lock_);
    for (auto& u : s.uses)
      if (u.stream == &stream) {
        u.ticket = std::max(u.ticket, ticket);
        return;
      }
    s.uses.push_back({&stream, ticket});
  } catch (const std::bad_alloc&) {
    stream.wait(ticket);  // the work is queued already, and must finish before the memory is reused
  }
}

bool Allocator::next_use(Storage& s, Storage::Use& use) {
  std::lock_guard lock(lock_);
  if (s.uses.empty()) return false;
  use = s.uses.back();
  return true;
}

void Allocator::end_use(Storage& s, const Storage::Use& use) {
  std::lock_guard lock(lock_);
  std::erase_if(s.uses, [&](const Storage::Use& u) {
    return u.stream == use.stream && u.ticket <= use.ticket;
  });
}

std::vector<Storage::Use> Allocator::uses(Storage& s) {
  std::lock_guard lock(lock_);
  return s.uses;
}

void Allocator::collect_pending() {
  // A question to a device takes time. If a stream has not reached one ticket, it has not reached a
  // later one either.
  struct {
    DeviceStream* stream = nullptr;
    uint64_t ticket = 0;
  } not_reached;
  auto reached = [&](const Storage::Use& u) {
    if (u.stream == not_reached.stream && u.ticket >= not_reached.ticket) return false;
    if (u.stream->reached(u.ticket)) return true;
    not_reached = {u.stream, u.ticket};
    return false;
  };
  for (auto *s = pending_.first, *next = s; s; s = next) {
    next = s->next;
    std::erase_if(s->uses, reached);
    if (!s->uses.empty()) continue;
    pending_.remove(*s);
    pending_bytes_ -= s->block_bytes;
    put_back(*s);
    delete s;
  }
}

MemoryStats Allocator::stats() const {
  std::lock_guard lock(lock_);
  return stats_;
}

uint64_t Allocator::in_use() {
  std::lock_guard lock(lock_);
  collect_pending();
  return stats_.allocated + pending_bytes_;
}

}  // namespace tenon
