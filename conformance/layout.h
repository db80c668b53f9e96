// The ways in which a tensor can lie in memory: strides that no contiguous tensor has, and starts
// that no allocation has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <tenon/core/ops/shape.h>
#include <tenon/core/tensor.h>

namespace tenon::conformance {

// Makes a tensor of `shape` from one of shape `whole(shape)`, which has all the memory it needs.
struct Layout {
  const char* name;
  Shape (*whole)(const Shape& shape);
  Tensor (*view)(const Tensor& whole, const Shape& shape);
};

namespace layout {

inline Shape same(const Shape& s) { return s; }
inline Tensor all(const Tensor& whole, const Shape&) { return whole; }

// The first element is the second to fourth one of an allocation, depending on the shape: kernels
// that read two or four elements at once meet every start. The product mixes the bits, as a third
// of all sizes are multiples of 3.
inline int64_t start_within(const Shape& s) {
  const uint64_t mixed = static_cast<uint64_t>(s.numel()) * 0x9e3779b97f4a7c15u >> 32;
  return 1 + static_cast<int64_t>(mixed % 3);
}
inline Shape with_start(const Shape& s) { return {s.numel() + start_within(s)}; }
inline Tensor from_within(const Tensor& whole, const Shape& s) {
  return whole.narrow(0, start_within(s), s.numel()).view(s);
}

inline Shape reversed(const Shape& s) {
  std::vector<int64_t> sizes(s.begin(), s.end());
  std::reverse(sizes.begin(), sizes.end());
  return Shape(std::span<const int64_t>(sizes));
}
inline Tensor transposed(const Tensor& whole, const Shape&) {
  Shape dims;
  for (int64_t d = whole.dim(); d-- > 0;) dims.push_back(d);
  return permute(whole, dims);
}

inline Shape doubled(const Shape& s) {
  Shape result;
  for (int64_t n : s) result.push_back(2 * n);
  return result;
}
inline Tensor every_second(const Tensor& whole, const Shape& s) {
  Tensor x = whole;
  for (size_t d = 0; d < s.size(); ++d) x = x.slice(static_cast<int64_t>(d), 0, 2 * s[d], 2);
  return x;
}

inline Shape four_more(const Shape& s) {
  Shape result;
  for (int64_t n : s) result.push_back(n + 4);
  return result;
}
inline Tensor last_part(const Tensor& whole, const Shape& s) {
  Tensor x = whole;
  for (size_t d = 0; d < s.size(); ++d) x = x.narrow(static_cast<int64_t>(d), 4, s[d]);
  return x;
}

inline Shape swapped(const Shape& s) {
  Shape result = s;
  if (s.size() >= 3) std::swap(result[0], result[1]);
  return result;
}
inline Tensor swapped_back(const Tensor& whole, const Shape& s) {
  return s.size() < 3 ? whole : whole.transpose(0, 1);
}

inline Shape first_is_one(const Shape& s) {
  Shape result = s;
  if (!s.empty()) result[0] = 1;
  return result;
}
inline Shape last_is_one(const Shape& s) {
  Shape result = s;
  if (!s.empty()) result[s.size() - 1] = 1;
  return result;
}
inline Shape all_are_one(const Shape& s) {
  Shape result;
  for (size_t d = 0; d < s.size(); ++d) result.push_back(1);
  return result;
}
inline Tensor expanded(const Tensor& whole, const Shape& s) { return whole.expand(s); }

// Tensors of images and volumes with the channels of a pixel side by side.
inline Shape channels_moved(const Shape& s) {
  Shape result = s;
  if (s.size() != 4 && s.size() != 5) return result;
  result.erase(1);
  result.push_back(s[1]);
  return result;
}
inline Tensor channels_moved_back(const Tensor& whole, const Shape& s) {
  return s.size() == 4 || s.size() == 5 ? whole.movedim(-1, 1) : whole;
}

// Far apart: strides of thousands of elements, where that does not take too much memory.
inline Shape planes_behind(const Shape& s) {
  Shape result = s;
  if (s.size() < Shape::max_rank) result.push_back(s.numel() < 2000 ? 1031 : 3);
  return result;
}
inline Tensor first_of_planes(const Tensor& whole, const Shape& s) {
  return s.size() < Shape::max_rank ? whole.select(-1, 1) : whole;
}

}  // namespace layout

// Contiguous, not from the start of an allocation, transposed, every second element, a part of a
// larger tensor, the first two dimensions swapped, elements far apart; `shared` adds those in which
// several elements share one place.
inline const std::vector<Layout>& layouts(bool shared = true) {
  using namespace layout;
  static const std::vector<Layout> distinct = {{"contiguous", same, all},
                                               {"misaligned", with_start, from_within},
                                               {"transposed", reversed, transposed},
                                               {"every second", doubled, every_second},
                                               {"a part", four_more, last_part},
                                               {"planes swapped", swapped, swapped_back},
                                               {"far apart", planes_behind, first_of_planes}};
  static const std::vector<Layout> every = [] {
    auto list = distinct;
    list.push_back({"one row expanded", first_is_one, expanded});
    list.push_back({"one column expanded", last_is_one, expanded});
    list.push_back({"one element expanded", all_are_one, expanded});
    return list;
  }();
  return shared ? every : distinct;
}

// For operators that may keep the order of their inputs.
inline const Layout& channels_last_layout() {
  static const Layout last = {"channels last", layout::channels_moved, layout::channels_moved_back};
  return last;
}

// The same values, but not at the start of an allocation.
inline Tensor misaligned(const Tensor& x) {
  Tensor whole = zeros(layout::with_start(x.shape()), {.dtype = x.dtype(), .device = x.device()});
  Tensor view = layout::from_within(whole, x.shape());
  view.copy_(x);
  return view;
}

}  // namespace tenon::conformance
