#include <algorithm>
#include <numeric>
#include <utility>

#include <tenon/core/runtime/may_share_bytes.h>
#include <tenon/core/runtime/poison_map.h>

namespace tenon {

Footprint::Footprint(const Shape& shape, const Strides& strides, uint64_t item_bytes)
    : run(item_bytes) {
  std::vector<Axis> all;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) run = 0;
    if (shape[i] > 1 && strides[i] != 0)  // a stride of 0 repeats the same memory
      all.push_back(
          {static_cast<uint64_t>(shape[i]), static_cast<uint64_t>(strides[i]) * item_bytes});
  }
  if (run == 0) return;
  std::sort(all.begin(), all.end(),
            [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  for (auto& axis : all) {
    if (axes.empty() && axis.stride <= run)
      run += (axis.count - 1) * axis.stride;
    else if (!axes.empty() && axis.stride == axes.back().count * axes.back().stride)
      axes.back().count *= axis.count;
    else
      axes.push_back(axis);
  }
}

uint64_t Footprint::span() const {
  uint64_t bytes = run;
  for (auto& a : axes) bytes += (a.count - 1) * a.stride;
  return bytes;
}

bool PoisonMap::Range::is_bad(uint64_t from, uint64_t to) const {
  if (bad.empty()) return from < to;
  for (uint64_t i = from / unit; i < (to + unit - 1) / unit; ++i)
    if (bad[i]) return true;
  return false;
}

void PoisonMap::Range::set(uint64_t from, uint64_t to, bool value) {
  refine(std::gcd(from, to));
  for (uint64_t i = from / unit; i < to / unit; ++i) {
    if (bad[i] != value) left += value ? 1 : ~uint64_t{0};
    bad[i] = value;
  }
}

void PoisonMap::Range::shrink_or_clear(uint64_t from, uint64_t to) {
  if (!bad.empty()) return set(from, to, false);
  if (from == 0) {
    begin += to;
    bytes -= to;
  } else if (to == bytes) {
    bytes = from;
  } else {
    set(from, to, false);
  }
}

// Changes the unit so that bits also separate multiples of `finer` bytes.
void PoisonMap::Range::refine(uint64_t finer) {
  if (bad.empty()) {
    unit = std::gcd(bytes, finer);
    left = bytes / unit;
    bad.assign(left, true);
  }
  const uint64_t fine = std::gcd(unit, finer), times = unit / fine;
  if (times == 1) return;
  std::vector<bool> more(bad.size() * times);
  for (uint64_t i = 0; i < more.size(); ++i) more[i] = bad[i / times];
  bad = std::move(more);
  left *= times;
  unit = fine;
}

// The bytes that are added are not poisoned.
void PoisonMap::Range::extend(const char* from, const char* to) {
  const auto before = static_cast<uint64_t>(std::max<int64_t>(begin - from, 0));
  const auto after = static_cast<uint64_t>(std::max<int64_t>(to - (begin + bytes), 0));
  if (before + after == 0) return;
  refine(std::gcd(before, after));
  bad.reserve(bad.size() + (before + after) / unit);  // nothing below can fail
  bad.insert(bad.begin(), before / unit, false);
  bad.resize(bad.size() + after / unit, false);
  begin -= before;
  bytes += before + after;
}

// Columns of one matrix that fail one by one share a range if they have the same failure.
size_t PoisonMap::range_for(const char* data, const Footprint& footprint, const Pointer& failure) {
  const uint64_t span = footprint.span();
  for (size_t i = 0; i < ranges_.size(); ++i) {
    auto& r = ranges_[i];
    if (r.failure != failure || r.bad.empty() || !r.meets(data, span)) continue;
    r.extend(data, data + span);
    return i;
  }
  Range r;
  r.begin = data;
  r.bytes = r.unit = span;
  r.failure = failure;
  r.bad.assign(1, false);
  ranges_.push_back(std::move(r));
  return ranges_.size() - 1;
}

// The new failure is added before the old ones are removed.
void PoisonMap::add(const char* data, const Footprint& footprint, const Pointer& failure) {
  if (!data || footprint.run == 0) return;
  if (footprint.axes.empty()) {
    Range r;
    r.begin = data;
    r.bytes = footprint.run;
    r.failure = failure;
    ranges_.push_back(std::move(r));
    return remove_from_all_but(ranges_.size() - 1, data, footprint);
  }
  const size_t at = range_for(data, footprint, failure);
  auto& r = ranges_[at];
  any_run(data, footprint, [&](const char* run) {
    const auto from = static_cast<uint64_t>(run - r.begin);
    r.set(from, from + footprint.run, true);
    return false;
  });
  remove_from_all_but(at, data, footprint);
}

void PoisonMap::remove(const char* data, const Footprint& footprint) {
  if (data && footprint.run > 0) remove_from_all_but(ranges_.size(), data, footprint);
}

void PoisonMap::remove_from_all_but(size_t kept, const char* data, const Footprint& footprint) {
  const uint64_t span = footprint.span();
  for (size_t i = 0; i < ranges_.size(); ++i) {
    auto& r = ranges_[i];
    if (i == kept || !r.meets(data, span)) continue;
    const bool over = any_run(data, footprint, [&](const char* at) {
      if (!r.meets(at, footprint.run)) return false;
      const uint64_t from = static_cast<uint64_t>(std::max(at, r.begin) - r.begin);
      const uint64_t to =
          static_cast<uint64_t>(std::min(at + footprint.run, r.begin + r.bytes) - r.begin);
      if (from == 0 && to == r.bytes) return true;
      r.shrink_or_clear(from, to);
      return !r.bad.empty() && r.left == 0;
    });
    if (over) r.failure = nullptr;
  }
  std::erase_if(ranges_, [](const Range& r) { return !r.failure; });
}

PoisonMap::Pointer PoisonMap::find(const char* data, const Footprint& footprint) const {
  if (!data || footprint.run == 0) return nullptr;
  const uint64_t span = footprint.span();
  for (auto& r : ranges_) {
    if (!r.failure || !r.meets(data, span)) continue;  // no failure: `remove` was interrupted
    const bool bad = any_run(data, footprint, [&](const char* at) {
      return r.meets(at, footprint.run) &&
             r.is_bad(
                 static_cast<uint64_t>(std::max(at, r.begin) - r.begin),
                 static_cast<uint64_t>(std::min(at + footprint.run, r.begin + r.bytes) - r.begin));
    });
    if (bad) return r.failure;
  }
  return nullptr;
}

namespace {
// How many bytes lie from the first to the last that a tensor has in each period.
uint64_t span_in(uint64_t period, const Footprint& tensor) {
  uint64_t bytes = tensor.run;
  for (auto& axis : tensor.axes)
    if (axis.stride % period != 0) bytes += (axis.count - 1) * axis.stride;
  return bytes;
}

// Whether the bytes of `a` and those of `b`, which begins so much later, lie apart in each period.
bool are_apart_in(uint64_t period, const Footprint& a, const Footprint& b, uint64_t later) {
  const uint64_t begin = later % period, of_a = span_in(period, a), of_b = span_in(period, b);
  return of_a <= begin && of_b <= period - begin;
}
}  // namespace

bool may_share_bytes(uint64_t a_begin, const Footprint& a, uint64_t b_begin, const Footprint& b) {
  if (a_begin > b_begin) return may_share_bytes(b_begin, b, a_begin, a);
  const uint64_t later = b_begin - a_begin;
  if (a.run == 0 || b.run == 0 || a.span() <= later) return false;
  uint64_t common = 0;
  for (auto* tensor : {&a, &b})
    for (auto& axis : tensor->axes) common = std::gcd(common, axis.stride);
  if (common == 0) return true;
  if (are_apart_in(common, a, b, later)) return false;
  for (auto* tensor : {&a, &b})
    for (auto& axis : tensor->axes)
      if (are_apart_in(axis.stride, a, b, later)) return false;
  return true;
}

}  // namespace tenon
