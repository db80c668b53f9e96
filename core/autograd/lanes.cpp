#include <atomic>
#include <utility>

#include <tenon/core/autograd/lanes.h>
#include <tenon/core/base/per_thread.h>

namespace tenon {

namespace {

// A call takes a block of numbers: enough for most graphs, and so few that they last for years of
// calls. What does not fit has no lane.
constexpr uint64_t kBlock = uint64_t{1} << 20;

std::atomic<uint64_t> next_number{1};
thread_local NodeLanes::Lane* lane TENON_FAST_TLS = nullptr;

}  // namespace

NodeLanes::NodeLanes(size_t parts) {
  if (lane || parts < 2) return;
  const uint64_t base = next_number.fetch_add(kBlock, std::memory_order_relaxed);
  for (size_t i = 0; i < parts; ++i) lanes_.push_back({base, parts, i, 0});
}

NodeLanes::~NodeLanes() {
  if (!lanes_.empty()) lane = nullptr;
}

void NodeLanes::enter(size_t part) {
  if (!lanes_.empty()) lane = &lanes_[part];
}

uint64_t next_node_number(uint64_t floor) {
  if (lane) {
    if (floor >= lane->base) {
      const uint64_t reached = (floor - lane->base) / lane->stride + 1;
      if (lane->taken < reached) lane->taken = reached;
    }
    const uint64_t offset = lane->taken++ * lane->stride + lane->part;
    if (offset < kBlock) return lane->base + offset;
  }
  return next_number.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace tenon
