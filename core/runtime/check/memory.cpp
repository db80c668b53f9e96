#include <algorithm>
#include <mutex>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/log.h>
#include <tenon/core/format.h>
#include <tenon/core/runtime/check/memory.h>
#include <tenon/core/runtime/context.h>

namespace tenon::checked {

namespace {

// Blocks that were given back wait until there are more bytes or more of them than this.
constexpr uint64_t kMostKeptBytes = 64 << 20;
constexpr size_t kMostKept = 4096;
// How many of them are looked at after every run, and how much of each.
constexpr size_t kRecent = 8;
constexpr uint64_t kRecentBytes = 16 << 10;
// What is copied from or to a device at once.
constexpr uint64_t kChunk = 4 << 20;

uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

std::string bytes_text(uint64_t n) { return n == 1 ? "1 byte" : fmt::format("{} bytes", n); }

}  // namespace

Memory::Memory(DeviceContext& context, bool host_visible)
    : context_(context), access_(context, host_visible) {}

// ---- bytes ----

bool Memory::fill(char* data, uint64_t bytes, Pattern pattern) {
  if (access_.host_visible) {
    checked::fill(reinterpret_cast<unsigned char*>(data), bytes, pattern, number(data));
    return true;
  }
  std::vector<unsigned char> host(std::min(bytes, kChunk));
  checked::fill(host.data(), host.size(), pattern, number(data));  // a chunk has an even size
  for (uint64_t at = 0; at < bytes; at += kChunk) {
    const Piece piece{host.data(), data + at, std::min(kChunk, bytes - at)};
    if (!access_.write({&piece, 1})) return false;
  }
  return true;
}

bool Memory::fill_guards(const Zone& z) {
  return fill(z.begin(), z.bytes_before(), Pattern::guard) &&
         fill(z.behind(), kGuard, Pattern::guard);
}

// Says which of the bytes from `from` on do not have the pattern any more: "3 bytes <where> of 12
// bytes, the first of them byte 12". Empty if all have it, or if they cannot be read.
std::string Memory::changed(const Zone& zone, char* from, uint64_t bytes, Pattern pattern,
                            const char* where) {
  uint64_t count = 0, first = 0;
  std::vector<unsigned char> copied(access_.host_visible ? 0 : std::min(bytes, kChunk));
  for (uint64_t at = 0; at < bytes; at += kChunk) {
    const uint64_t part = std::min(kChunk, bytes - at);
    auto* host = reinterpret_cast<unsigned char*>(from + at);
    if (!access_.host_visible) {
      host = copied.data();
      const Piece piece{host, from + at, part};
      if (!access_.read({&piece, 1})) return "";
    }
    for (uint64_t i = 0; i < part; ++i) {
      i += intact(host + i, part - i, pattern, number(from + at + i));
      if (i < part && count++ == 0) first = at + i;
    }
  }
  if (!count) return "";
  return fmt::format("{} {} of {}, the first of them byte {}", bytes_text(count), where,
                     bytes_text(zone.buffer.bytes),
                     static_cast<int64_t>(from + first - zone.buffer.data));
}

std::string Memory::spoilt(const Zone& z) {
  if (!z.filled) return "";
  const auto before =
      changed(z, z.begin(), z.bytes_before(), Pattern::guard, "before the start of the buffer");
  const auto behind =
      changed(z, z.behind(), kGuard, Pattern::guard, "behind the end of the buffer");
  return before + (before.empty() || behind.empty() ? "" : ", and ") + behind;
}

std::string Memory::written_into(const Zone& z) {
  if (!z.filled) return "";
  const auto inside = changed(z, z.buffer.data, z.buffer.bytes, Pattern::freed, "inside a buffer");
  return inside.empty() ? spoilt(z) : inside;
}

// ---- blocks ----

void Memory::hand_out(Storage& s) {
  auto made = std::make_unique<Zone>();
  Zone& zone = *made;
  zone.block = {s.data, s.block_bytes, s.chunk, s.slot};
  zone.buffer = {zone.begin() + kGuard + (number(zone.begin()) % 128 ? 0 : 64), s.bytes};
  {
    std::lock_guard lock(mutex_);
    zones_[number(zone.begin())] = std::move(made);
  }
  s.data = zone.buffer.data;
  zone.filled = fill(zone.buffer.data, zone.buffer.bytes, Pattern::fresh) && fill_guards(zone);
}

bool Memory::give_back(const Storage& s, uint64_t ticket) noexcept {
  std::lock_guard lock(mutex_);
  Zone* zone = find(s.data);
  if (!zone) return false;
  zone->ticket = ticket;
  zone->given_back = true;
  (first_left_ ? last_left_->next : first_left_) = zone;
  last_left_ = zone;
  return true;
}

// A block that is handed out again gets a new zone at the same place, so at most one contains an
// address.
Memory::Zone* Memory::find(const void* address) {
  auto after = zones_.upper_bound(number(address));
  if (after == zones_.begin()) return nullptr;
  Zone* zone = std::prev(after)->second.get();
  return number(address) < number(zone->end()) ? zone : nullptr;
}

std::unique_ptr<Memory::Zone> Memory::remove(Zone* zone) {
  std::lock_guard lock(mutex_);
  return std::move(zones_.extract(number(zone->begin())).mapped());
}

void Memory::report(const std::string& text) {
  log_message(TN_LOG_ERROR, context_.backend.name(), text);
  context_.stream->failures.add_unseen(context_.stream->last(),
                                       std::make_shared<const Failure>(TN_CODE_INTERNAL, text));
}

// What was written around it since its last run, and by whom, is not known: every run looks at the
// buffers that it was given.
void Memory::settle_one(Zone& z) {
  if (const auto what = spoilt(z); !what.empty())
    report(
        fmt::format("something wrote outside of a buffer on {}: {}{}; set TENON_SYNC=1 and "
                    "look at the operators before this message",
                    context_.device, what, z.owner.empty() ? "" : "; it was " + z.owner));
  z.filled = z.filled && fill(z.buffer.data, z.buffer.bytes, Pattern::freed) && fill_guards(z);
}

std::vector<BlockHeap::Block> Memory::settle(bool all) {
  std::vector<BlockHeap::Block> free;
  if (context_.stream->closed() || context_.stream->capturing()) return free;
  std::lock_guard looking(looking_);
  std::unique_lock lock(mutex_);
  Zone* zone = std::exchange(first_left_, nullptr);
  last_left_ = nullptr;
  lock.unlock();
  Zone *still_used = nullptr, *last = nullptr;
  Reached reached(*context_.stream);
  for (Zone* next; zone; zone = next) {
    next = std::exchange(zone->next, nullptr);
    if (!reached(zone->ticket)) {
      (last ? last->next : still_used) = zone;
      last = zone;
      continue;
    }
    settle_one(*zone);
    kept_.push_back(zone);
    kept_bytes_ += zone->block.bytes;
  }
  if (last) {  // they come before what was given back meanwhile
    lock.lock();
    last->next = std::exchange(first_left_, still_used);
    if (!last_left_) last_left_ = last;
    lock.unlock();
  }
  size_t count = 0;
  for (; count < kept_.size(); ++count) {
    if (!all && kept_bytes_ <= kMostKeptBytes && kept_.size() - count <= kMostKept) break;
    const auto gone = remove(kept_[count]);
    kept_bytes_ -= gone->block.bytes;
    if (const auto what = written_into(*gone); !what.empty())
      report(fmt::format("something wrote into memory on {} after it was freed: {}{}",
                         context_.device, what,
                         gone->owner.empty() ? "" : "; it was " + gone->owner));
    free.push_back(gone->block);
  }
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(count));
  return free;
}

// ---- looking ----

std::optional<Buffer> Memory::buffer_of(const void* address) {
  std::lock_guard lock(mutex_);
  const Zone* zone = find(address);
  return zone ? std::optional(zone->buffer) : std::nullopt;
}

void Memory::label(const void* address, const std::string& owner) {
  std::lock_guard lock(mutex_);
  if (Zone* zone = find(address)) zone->owner = owner;
}

std::string Memory::spoilt_guard(const void* address) {
  Zone* zone;
  {
    std::lock_guard lock(mutex_);
    zone = find(address);
  }
  if (!zone) return "";
  const auto what = spoilt(*zone);  // the caller uses the buffer, so that its zone stays
  if (!what.empty()) zone->filled = fill_guards(*zone);
  return what;
}

std::string Memory::written_after_free() {
  std::lock_guard looking(looking_);
  const size_t recent = std::min(kRecent, kept_.size());
  for (auto zone = kept_.end() - static_cast<std::ptrdiff_t>(recent); zone != kept_.end(); ++zone) {
    Zone& z = **zone;
    if (z.buffer.bytes > kRecentBytes) continue;
    const auto what = written_into(z);
    if (what.empty()) continue;
    z.filled = fill(z.buffer.data, z.buffer.bytes, Pattern::freed) && fill_guards(z);
    return what + (z.owner.empty() ? "" : ", which was " + z.owner);
  }
  return "";
}

void Memory::look_at_all() {
  if (context_.stream->closed() || context_.stream->capturing()) return;
  settle(true);
  std::vector<Zone*> all;
  {
    std::lock_guard lock(mutex_);
    for (auto& [begin, zone] : zones_)
      if (!zone->given_back) all.push_back(zone.get());
  }
  for (Zone* zone : all)
    if (const auto what = spoilt(*zone); !what.empty())
      report(fmt::format("something wrote outside of a buffer on {}: {}{}", context_.device, what,
                         zone->owner.empty() ? "" : "; it was " + zone->owner));
}

}  // namespace tenon::checked
