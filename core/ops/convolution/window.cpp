#include <algorithm>
#include <limits>

#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/convolution/window.h>

namespace tenon {

void check_sizes(const char* op, const char* name, const Shape& sizes, int64_t least) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  constexpr const char* counts[] = {"one number", "two numbers", "three numbers"};
  const auto [smallest, largest] = std::minmax_element(sizes.begin(), sizes.end());
  const bool small = *smallest < least;
  if (small || *largest > most)
    throw ValueError(fmt::format("{}: {} must be {} of at {} {}, found {}", op, name,
                                 counts[sizes.size() - 1], small ? "least" : "most",
                                 small ? least : most, sizes));
}

bool a_window_misses(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                     int64_t dilation, int64_t positions) {
  if (size == 0) return positions > 0;
  // The first tap at or behind 0 lies in [0, dilation), and no window begins behind the input.
  // Where a dilation is larger than the input, padding of at most half the kernel and the input's
  // size leave room for few windows.
  if (dilation <= size) return false;
  int64_t begin = -padding;
  for (int64_t i = 0; i < positions && begin < 0; ++i, begin += stride) {
    const int64_t tap = (-begin + dilation - 1) / dilation;
    if (tap >= kernel || begin + tap * dilation >= size) return true;
  }
  return false;
}

void require_addressable_padded(Infer& infer, const Shape& x, const Shape& padding) {
  Shape padded = x;
  for (size_t d = 0; d < 2; ++d) padded[2 + d] += 2 * padding[d];
  if (!is_addressable(padded))
    infer.shape_error(
        fmt::format("an input of shape {} with padding {} has, padded, shape {}: more than the {} "
                    "elements that can be addressed",
                    x, padding, padded, +kMaxNumel));
}

}  // namespace tenon
