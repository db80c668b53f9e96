#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include <tenon/core/graph/memory_plan.h>

namespace tenon::graph {

namespace {

class Gaps {
 public:
  // Returns the place of so many bytes, and makes the memory larger if no gap fits.
  uint64_t take(uint64_t bytes) {
    auto best = gaps_.end();
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap)
      if (gap->second >= bytes && (best == gaps_.end() || gap->second < best->second)) best = gap;
    if (best == gaps_.end()) return take_at_end(bytes);
    const auto [offset, size] = *best;
    gaps_.erase(best);
    if (size > bytes) gaps_.emplace(offset + bytes, size - bytes);
    return offset;
  }

  void give_back(uint64_t offset, uint64_t bytes) {
    auto gap = gaps_.emplace(offset, bytes).first;
    if (const auto next = std::next(gap);
        next != gaps_.end() && gap->first + gap->second == next->first) {
      gap->second += next->second;
      gaps_.erase(next);
    }
    if (gap == gaps_.begin()) return;
    const auto before = std::prev(gap);
    if (before->first + before->second != gap->first) return;
    before->second += gap->second;
    gaps_.erase(gap);
  }

  uint64_t end() const { return end_; }

 private:
  uint64_t take_at_end(uint64_t bytes) {
    uint64_t offset = end_;
    if (!gaps_.empty())
      if (const auto last = std::prev(gaps_.end()); last->first + last->second == end_) {
        offset = last->first;
        gaps_.erase(last);
      }
    end_ = offset + bytes;
    return offset;
  }

  std::map<uint64_t, uint64_t> gaps_;  // their sizes by their offsets
  uint64_t end_ = 0;
};

uint64_t rounded(const Lifetime& l, uint64_t alignment) {
  return (std::max<uint64_t>(l.bytes, 1) + alignment - 1) / alignment * alignment;
}

// In the order of their first steps, each into the smallest gap that is large enough.
MemoryPlan plan_by_time(std::span<const Lifetime> lifetimes, uint64_t alignment) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<size_t> begins(lifetimes.size());
  std::iota(begins.begin(), begins.end(), size_t{0});
  std::vector<size_t> ends = begins;
  std::stable_sort(begins.begin(), begins.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].first < lifetimes[b].first; });
  std::stable_sort(ends.begin(), ends.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].last < lifetimes[b].last; });
  Gaps gaps;
  size_t ended = 0;
  for (const size_t i : begins) {
    for (; lifetimes[ends[ended]].last < lifetimes[i].first; ++ended)
      gaps.give_back(plan.offsets[ends[ended]], rounded(lifetimes[ends[ended]], alignment));
    plan.offsets[i] = gaps.take(rounded(lifetimes[i], alignment));
  }
  plan.bytes = gaps.end();
  return plan;
}

// The largest first, each as far in front as those that share a step with it allow.
MemoryPlan plan_by_size(std::span<const Lifetime> lifetimes, uint64_t alignment) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<size_t> placed;  // by their offsets
  for (const size_t i : order) {
    const Lifetime& l = lifetimes[i];
    const uint64_t bytes = rounded(l, alignment);
    uint64_t offset = 0;
    for (const size_t other : placed) {
      const Lifetime& o = lifetimes[other];
      if (o.last < l.first || l.last < o.first) continue;
      if (plan.offsets[other] >= offset + bytes) break;
      offset = std::max(offset, plan.offsets[other] + rounded(o, alignment));
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; }),
        i);
  }
  return plan;
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, uint64_t alignment) {
  constexpr size_t kMany = 4000;  // from here on, the better plan takes long to make
  MemoryPlan by_time = plan_by_time(lifetimes, alignment);
  if (lifetimes.size() >= kMany) return by_time;
  MemoryPlan by_size = plan_by_size(lifetimes, alignment);
  return by_size.bytes < by_time.bytes ? by_size : by_time;
}

}  // namespace tenon::graph
