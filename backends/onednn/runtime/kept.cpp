#include "runtime/kept.h"

#include <atomic>
#include <new>

#include "runtime/common.h"

namespace tenon::onednn {
namespace {

// The most memory for the copies of all plans together. Weights that do not fit any more are
// reordered in each run.
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constinit std::atomic<uint64_t> kept_bytes{0};

// A plan frees copies that it did not use in this many runs.
constexpr uint64_t kForgetAfter = 1024;

constexpr std::align_val_t kAlignment{64};

}  // namespace

void FreeKept::operator()(void* memory) const {
  ::operator delete(memory, kAlignment);
  kept_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

// Returns null if the limit is reached or the machine has no memory.
Kept::Memory Kept::allocate(uint64_t bytes) {
  if (kept_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes <= kMaxBytes)
    if (void* memory = ::operator new(bytes, kAlignment, std::nothrow))
      return Memory(memory, FreeKept{bytes});
  kept_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  return {};
}

Argument Kept::add(int name, const Argument& from, const Desc& layout) {
  for (auto& p : parts_)
    if (p.from.offset == from.offset && same_layout(p.from.desc, from.desc) &&
        same_layout(p.to.desc, layout)) {
      Argument known = p.to;
      known.name = name;
      return known;
    }
  Argument source{DNNL_ARG_FROM, input_, from.desc, from.offset},
      target{DNNL_ARG_TO, copy_, layout, static_cast<int64_t>(bytes_)};
  bytes_ += (bytes_of(layout) + 63) / 64 * 64;
  fill_.add(
      {{Primitive::reorder(from.desc, layout, code_for(from.desc.data_type)), {source, target}}});
  parts_.push_back({source, target});
  target.name = name;
  return target;
}

void Kept::forget_unused() {
  for (auto it = copies_.begin(); it != copies_.end();) {
    Copy& c = it->second;
    if (runs_ - c.last_used > kForgetAfter) {
      c.memory.reset();
      c.is_there = false;
    }
    it = runs_ - c.last_seen > kForgetAfter ? copies_.erase(it) : std::next(it);
  }
}

// Returns null if a copy of the input does not pay yet, or if there is no memory for one.
Kept::Copy* Kept::find(const void* data, uint64_t version) {
  Copy& c = copies_[data];
  c.last_seen = runs_;
  if (c.version != version) {
    c.version = version;
    c.seen = 0;
    c.is_there = false;
  }
  if (!c.is_there && ++c.seen < worth_) return nullptr;
  if (!c.memory) c.memory = allocate(bytes_);
  if (!c.memory) {
    c.seen = 0;  // tries again later, when other plans may have freed memory
    return nullptr;
  }
  c.last_used = runs_;
  return &c;
}

bool Kept::provide(std::span<void*> operands, uint64_t version) {
  if (version == 0 || parts_.empty()) return false;
  if (++runs_ % kForgetAfter == 0) forget_unused();
  Copy* c = nullptr;
  try {
    c = find(operands[input_], version);
  } catch (const std::bad_alloc&) {
  }
  if (!c) return false;
  operands[copy_] = c->memory.get();
  if (!c->is_there) {
    // The reorders need scratch memory of their own, which the plan's workspace does not include.
    Memory scratch;
    if (fill_.workspace_bytes()) scratch = allocate(fill_.workspace_bytes());
    if (fill_.workspace_bytes() && !scratch) return false;
    fill_.run(operands, scratch.get());
    c->is_there = true;
  }
  return true;
}

}  // namespace tenon::onednn
