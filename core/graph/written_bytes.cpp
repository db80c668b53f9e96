#include <algorithm>
#include <iterator>

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

}  // namespace tenon::graph
