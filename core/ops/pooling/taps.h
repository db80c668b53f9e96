// Which elements of a dimension make an element of another size of it, and with what weights.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tenon/core/ops/shape.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Each element of the result is a sum of `count` elements of x: result[i] = sum over k of
// weight[k][i] x[place[k][i]].
struct Taps {
  std::vector<std::vector<int64_t>> place;
  std::vector<std::vector<double>> weight;
  size_t count() const { return place.size(); }
};

// From `size` elements to `result`; both are positive. `scale` is how much larger the result is,
// where coordinates follow from that and not from the sizes.
struct Resize {
  int64_t size, result;
  std::optional<double> scale;
  bool align_corners;
};

// Coordinates are those of PyTorch (aten/src/ATen/native/UpSample.h), computed in f64.
Taps linear_taps(const Resize& r);
Taps cubic_taps(const Resize& r);
// Weighted averages over all elements below one of a smaller result, as in Pillow
// (src/libImaging/Resample.c).
enum class Filter { linear, cubic, lanczos };
Taps antialias_taps(const Resize& r, Filter filter);
// The place of the nearest element, or of the one at floor(i / scale). PyTorch's rounding to f32 is
// part of the result. `halves`: a result of twice the size takes each element twice, whatever the
// scale, and one of the same size each once, which PyTorch has for images alone.
std::vector<int64_t> nearest_places(const Resize& r, bool exact, bool halves);

// Calls f with the last two dimensions exchanged, and exchanges those of its result: rows are
// selected as a whole, which is several times as fast as one element of each row after the other.
template <class F>
Tensor of_rows(const Tensor& x, F&& f) {
  return transpose(f(transpose(x, -1, -2)), -1, -2);
}

// Returns these sums along dimension `dim` of x, which is f32 or f64; differentiable in x.
Tensor resample(const Tensor& x, size_t dim, const Taps& taps);

}  // namespace tenon
