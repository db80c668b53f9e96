#include <algorithm>
#include <iterator>
#include <numeric>

#include <tenon/core/graph/written_bytes.h>

namespace tenon::graph {

namespace {

bool has_few_pieces(const Footprint& tensor) {
  uint64_t pieces = 1;
  for (auto& axis : tensor.axes)
    if (__builtin_mul_overflow(pieces, axis.count, &pieces) || pieces > 4096) return false;
  return true;
}

// Calls f(begin, end) for each piece until it returns true, and returns whether one call did.
template <class F>
bool any_piece(uint64_t offset, const Footprint& tensor, size_t axes, F&& f) {
  if (axes == 0) return tensor.run && f(offset, offset + tensor.run);
  const Footprint::Axis& axis = tensor.axes[axes - 1];
  for (uint64_t i = 0; i < axis.count; ++i)
    if (any_piece(offset + i * axis.stride, tensor, axes - 1, f)) return true;
  return false;
}

}  // namespace

void WrittenBytes::add(uint64_t offset, const Footprint& tensor) {
  if (!has_few_pieces(tensor)) return;
  any_piece(offset, tensor, tensor.axes.size(), [&](uint64_t begin, uint64_t end) {
    auto next = ends_.upper_bound(begin);
    if (next != ends_.begin() && std::prev(next)->second >= begin) begin = std::prev(next)->first;
    for (next = ends_.lower_bound(begin); next != ends_.end() && next->first <= end;
         next = ends_.erase(next))
      end = std::max(end, next->second);
    ends_[begin] = end;
    return false;
  });
}

bool WrittenBytes::cover(uint64_t offset, const Footprint& tensor) const {
  if (!has_few_pieces(tensor)) return covers(offset, offset + tensor.span());
  return !any_piece(offset, tensor, tensor.axes.size(),
                    [&](uint64_t begin, uint64_t end) { return !covers(begin, end); });
}

bool WrittenBytes::covers(uint64_t begin, uint64_t end) const {
  const auto next = ends_.upper_bound(begin);
  return next != ends_.begin() && std::prev(next)->second >= end;
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

}  // namespace tenon::graph
