#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/log.h>
#include <tenon/core/format.h>
#include <tenon/core/runtime/check/contents.h>
#include <tenon/core/runtime/check/memory.h>
#include <tenon/core/runtime/context.h>

namespace tenon::checked {
namespace {

// Blocks that were given back wait until there are more bytes or more of them than this.
constexpr uint64_t kMaxKeptBytes = 64 << 20;
constexpr size_t kMaxKept = 4096;
// How many of them are looked at after every run, and how much of each. Fewer if each has to be
// copied.
constexpr size_t kRecent = 8, kRecentCopied = 4;
constexpr uint64_t kRecentBytes = 16 << 10;

uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

// Runs a check. If there is no memory for it, the check is left out; returns false then.
template <class F>
bool looked(F&& look) noexcept {
  try {
    look();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

Memory::Memory(DeviceContext& context, bool host_visible)
    : context_(context), access_(context, host_visible) {}

// ---- bytes ----

bool Memory::fill(char* data, uint64_t bytes, Pattern pattern) {
  if (access_.host_visible) {
    checked::fill(reinterpret_cast<unsigned char*>(data), bytes, pattern, number(data));
    return true;
  }
  std::vector<unsigned char> host(std::min(bytes, kMaxAtOnce));
  checked::fill(host.data(), host.size(), pattern, number(data));  // a chunk has an even size
  for (uint64_t at = 0; at < bytes; at += kMaxAtOnce) {
    const Piece piece{host.data(), data + at, std::min(kMaxAtOnce, bytes - at)};
    if (!access_.write({&piece, 1})) return false;
  }
  return true;
}

bool Memory::fill_guards(const Zone& z) {
  return fill(z.before().from, z.before().bytes, Pattern::guard) &&
         fill(z.behind().from, z.behind().bytes, Pattern::guard);
}

// Fills the buffer and its guards. A copy to a device takes about as long for all as for one.
bool Memory::fill_whole(const Zone& z, Pattern pattern) {
  const Part all = z.whole();
  if (access_.host_visible || all.bytes > kMaxAtOnce)
    return fill(z.buffer.data, z.buffer.bytes, pattern) && fill_guards(z);
  Room room(all.bytes);
  checked::fill(room.data(), room.size(), Pattern::guard, number(all.from));
  checked::fill(room.data() + z.before().bytes, z.buffer.bytes, pattern, number(z.buffer.data));
  const Piece piece{room.data(), all.from, all.bytes};
  return access_.write({&piece, 1});
}

// Reads all parts together, for the same reason. They are in `room` if the host cannot see them.
bool Memory::read(std::span<Part> parts, Room& room) {
  uint64_t bytes = 0;
  for (auto& p : parts) bytes += p.bytes;
  if (!access_.host_visible) room.resize(bytes);
  std::vector<Piece> pieces;
  auto* host = room.data();
  for (auto& p : parts) {
    p.host = access_.host_visible ? reinterpret_cast<unsigned char*>(p.from) : host;
    if (access_.host_visible) continue;
    pieces.push_back({host, p.from, p.bytes});
    host += p.bytes;
  }
  return pieces.empty() || access_.read(pieces);
}

std::string Memory::spoilt(const Zone& z, const Part& before, const Part& behind) const {
  Changes front, back;
  front.look(before.from, before.host, before.bytes, Pattern::guard);
  back.look(behind.from, behind.host, behind.bytes, Pattern::guard);
  const auto text = front.text(z.buffer, "before the start of the buffer");
  const auto more = back.text(z.buffer, "behind the end of the buffer");
  return text + (text.empty() || more.empty() ? "" : ", and ") + more;
}

std::string Memory::spoilt(const Zone& z) {
  Part parts[] = {z.before(), z.behind()};
  Room room;
  return z.filled && read(parts, room) ? spoilt(z, parts[0], parts[1]) : "";
}

// What was written into a buffer, or around it, after it was given back.
std::string Memory::written_into(const Zone& z) {
  if (!z.filled) return "";
  Changes inside;
  Room room;
  for (uint64_t at = 0; at < z.buffer.bytes; at += kMaxAtOnce) {
    Part part{z.buffer.data + at, std::min(kMaxAtOnce, z.buffer.bytes - at)};
    if (!read({&part, 1}, room)) return "";
    inside.look(part.from, part.host, part.bytes, Pattern::freed);
  }
  const auto text = inside.text(z.buffer, "inside a buffer");
  return text.empty() ? spoilt(z) : text;
}

// ---- blocks ----

void Memory::hand_out(Storage& s, const Allocator* graph) {
  auto made = std::make_unique<Zone>();
  Zone& zone = *made;
  zone.block = {s.data, s.block_bytes, s.chunk, s.slot};
  zone.graph = graph;
  zone.buffer = {zone.begin() + kGuard + (number(zone.begin()) % 128 ? 0 : 64), s.bytes};
  // Nothing can be copied during a capture: guard_graph does it.
  if (!graph) zone.filled = fill_whole(zone, contents(Pattern::fresh));
  std::lock_guard lock(mutex_);
  zones_[number(zone.begin())] = std::move(made);
  s.data = zone.buffer.data;
}

bool Memory::give_back(const Storage& s, uint64_t ticket) noexcept {
  std::lock_guard lock(mutex_);
  Zone* zone = find(s.data);
  if (!zone) return false;
  zone->ticket = ticket;
  zone->given_back = true;
  if (zone->graph) return true;
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

// Reports damage to the guards of a buffer that was given back. Each run checks its own buffers, so
// damage that is only found here happened after the last run, and nobody knows who caused it.
void Memory::settle_one(Zone& z) {
  if (const auto what = spoilt(z); !what.empty())
    report(
        fmt::format("something wrote outside of a buffer on {}: {}{}; set TENON_SYNC=1 and "
                    "look at the operators before this message",
                    context_.device, what, z.owner.empty() ? "" : "; it was " + z.owner));
  z.filled = z.filled && fill_whole(z, Pattern::freed);
}

std::vector<BlockHeap::Block> Memory::settle(bool all) {
  std::vector<BlockHeap::Block> free;
  if (context_.stream->closed() || context_.stream->capturing()) return free;
  std::lock_guard looking(looking_);
  std::unique_lock lock(mutex_);
  // From here on, nothing fails: every zone stays in one of the lists.
  size_t most = kept_.size();
  for (Zone* left = first_left_; left; left = left->next) ++most;
  if (most > kept_.capacity()) kept_.reserve(2 * most);
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
    if (!looked([&] { settle_one(*zone); })) zone->filled = false;
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
  for (uint64_t bytes = kept_bytes_; count < kept_.size(); bytes -= kept_[count++]->block.bytes)
    if (!all && bytes <= kMaxKeptBytes && kept_.size() - count <= kMaxKept) break;
  free.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const auto gone = remove(kept_[i]);
    kept_bytes_ -= gone->block.bytes;
    looked([&] {
      if (const auto what = written_into(*gone); !what.empty())
        report(fmt::format("something wrote into memory on {} after it was freed: {}{}",
                           context_.device, what,
                           gone->owner.empty() ? "" : "; it was " + gone->owner));
    });
    free.push_back(gone->block);
  }
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(count));
  return free;
}

// ---- the memory of stream graphs ----

// Visits its zones without the lock: whoever calls this owns them.
template <class F>
void Memory::each_of(const Allocator& graph, F&& visit) {
  std::vector<Zone*> zones;
  {
    std::lock_guard lock(mutex_);
    for (auto& [begin, zone] : zones_)
      if (zone->graph == &graph) zones.push_back(zone.get());
  }
  for (Zone* zone : zones) visit(*zone);
}

void Memory::guard_graph(const Allocator& graph) {
  each_of(graph, [&](Zone& zone) { zone.filled = fill_whole(zone, contents(Pattern::fresh)); });
}

void Memory::refill_freed(const Allocator& graph) {
  each_of(graph, [&](Zone& zone) {
    if (zone.given_back) fill(zone.buffer.data, zone.buffer.bytes, contents(Pattern::fresh));
  });
}

std::vector<const void*> Memory::graph_buffers(const Allocator& graph) {
  std::vector<const void*> all;
  each_of(graph, [&](Zone& zone) { all.push_back(zone.buffer.data); });
  return all;
}

void Memory::end_graph(const Allocator& graph) noexcept {
  std::lock_guard lock(mutex_);
  for (auto at = zones_.begin(); at != zones_.end();) {
    Zone& zone = *at->second;
    if (zone.graph == &graph && zone.given_back) {
      BlockHeap::put_back(zone.block, 0);
      at = zones_.erase(at);
      continue;
    }
    if (zone.graph == &graph) zone.graph = nullptr;
    ++at;
  }
}

// ---- looking ----

tn_error* Memory::finish_earlier(tn_stream* stream) {
  bool done = false;
  tn_error* error = access_.finish(stream, done);
  if (!error || error->code == TN_CODE_DEVICE_LOST) return error;
  context_.stream->failures.add_late(1, context_.stream->last(), failure_of(error, [] {
                                       return std::pair("queued work failed: ", "");
                                     }));
  return nullptr;
}

bool Memory::finish(tn_error*& error, tn_stream* stream) {
  bool done = false;
  tn_error* late = access_.finish(stream, done);
  if (error && late) late->destroy(late);
  if (!error) error = late;
  return done && !(error && error->code == TN_CODE_DEVICE_LOST);
}

std::string Memory::owner_of(const void* address) {
  std::lock_guard lock(mutex_);
  const Zone* zone = find(address);
  return zone ? zone->owner : "";
}

void Memory::label(const void* address, const std::string& owner) {
  std::lock_guard lock(mutex_);
  if (Zone* zone = find(address)) zone->owner = owner;
}

std::vector<std::string> Memory::spoilt_guards(std::span<const void* const> addresses) {
  std::vector<std::string> found(addresses.size());
  std::vector<Zone*> zones;  // the caller uses the buffers, so that their zones stay
  {
    std::lock_guard lock(mutex_);
    for (auto* address : addresses) zones.push_back(find(address));
  }
  std::vector<Part> parts;
  for (auto* zone : zones)
    if (zone && zone->filled) parts.insert(parts.end(), {zone->before(), zone->behind()});
  Room room;
  if (!read(parts, room)) return found;
  const Part* part = parts.data();
  for (size_t i = 0; i < zones.size(); ++i) {
    Zone* zone = zones[i];
    if (!zone || !zone->filled) continue;
    // A buffer may come twice.
    const bool first = std::find(zones.begin(), zones.end(), zone) - zones.begin() ==
                       static_cast<std::ptrdiff_t>(i);
    if (first) found[i] = spoilt(*zone, part[0], part[1]);
    part += 2;
  }
  for (size_t i = 0; i < zones.size(); ++i)
    if (!found[i].empty()) zones[i]->filled = fill_guards(*zones[i]);
  return found;
}

std::string Memory::written_after_free() {
  std::lock_guard looking(looking_);
  std::vector<Zone*> zones;
  std::vector<Part> parts;
  const size_t recent = std::min(access_.host_visible ? kRecent : kRecentCopied, kept_.size());
  for (auto zone = kept_.end() - static_cast<std::ptrdiff_t>(recent); zone != kept_.end(); ++zone)
    if ((*zone)->filled && (*zone)->buffer.bytes <= kRecentBytes) {
      zones.push_back(*zone);
      parts.push_back((*zone)->whole());
    }
  Room room;
  if (!read(parts, room)) return "";
  for (size_t i = 0; i < zones.size(); ++i) {
    Zone& z = *zones[i];
    const uint64_t before = z.before().bytes;
    Changes inside, around;
    inside.look(z.buffer.data, parts[i].host + before, z.buffer.bytes, Pattern::freed);
    around.look(z.before().from, parts[i].host, before, Pattern::guard);
    around.look(z.behind().from, parts[i].host + before + z.buffer.bytes, kGuard, Pattern::guard);
    const auto what = inside.count ? inside.text(z.buffer, "inside a buffer")
                                   : around.text(z.buffer, "around a buffer");
    if (what.empty()) continue;
    z.filled = fill_whole(z, Pattern::freed);
    return what + (z.owner.empty() ? "" : ", which was " + z.owner);
  }
  return "";
}

// Detached threads may compute, and give buffers back, until the process has ended. Meanwhile none
// of these is handed on, because that is done while looking, too.
void Memory::look_at_live() {
  if (context_.stream->closed() || context_.stream->capturing()) return;
  std::lock_guard looking(looking_);
  std::vector<Zone*> all;
  {
    std::lock_guard lock(mutex_);
    for (auto& [begin, zone] : zones_)
      if (!zone->given_back) all.push_back(zone.get());
  }
  for (Zone* zone : all)
    if (const auto what = spoilt(*zone); !what.empty()) {
      const auto owner = owner_of(zone->begin());
      report(fmt::format("something wrote outside of a buffer on {}: {}{}", context_.device, what,
                         owner.empty() ? "" : "; it was " + owner));
    }
}

}  // namespace tenon::checked
