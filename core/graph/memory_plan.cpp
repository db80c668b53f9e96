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

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, uint64_t alignment) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<size_t> begins(lifetimes.size());
  std::iota(begins.begin(), begins.end(), size_t{0});
  std::vector<size_t> ends = begins;
  std::stable_sort(begins.begin(), begins.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].first < lifetimes[b].first; });
  std::stable_sort(ends.begin(), ends.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].last < lifetimes[b].last; });
  const auto rounded = [&](size_t i) {
    return (std::max<uint64_t>(lifetimes[i].bytes, 1) + alignment - 1) / alignment * alignment;
  };
  Gaps gaps;
  size_t ended = 0;
  for (const size_t i : begins) {
    for (; lifetimes[ends[ended]].last < lifetimes[i].first; ++ended)
      gaps.give_back(plan.offsets[ends[ended]], rounded(ends[ended]));
    plan.offsets[i] = gaps.take(rounded(i));
  }
  plan.bytes = gaps.end();
  return plan;
}

}  // namespace tenon::graph
