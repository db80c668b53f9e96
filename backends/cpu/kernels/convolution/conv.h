// What the three convolution operators share: their shapes, the padded scratch planes and the
// register-blocked kernel.
//
// All of them work on scratch planes in which the taps of one output pixel lie at fixed distances,
// and those of the next pixel one element further, so that vectors run over pixels whatever stride,
// padding and dilation are: the padded input is split by its row and column modulo the stride into
// up to stride_h x stride_w planes, and outputs are counted with the pitch of those planes. What
// falls between two rows of output is computed and thrown away.
#pragma once

#include <vector>

#include <tenon/plugins/sdk/requests/convolution.h>

#include "kernels/convolution/pack.h"
#include "kernels/pointwise/finish.h"
#include "runtime/common.h"
#include "simd/packet.h"

namespace tenon::cpu {

struct ConvShape : sdk::ConvRequest {
  int64_t y_phases,
      x_phases;   // planes of one channel: residues of the stride that some tap touches
  int64_t pitch;  // of a scratch plane and of the outputs counted along it

  explicit ConvShape(const Request& request);

  int64_t taps() const { return kh * kw; }
  double work() const {
    return double(n) * double(o) * double(oh) * double(ow) * double(cg) * double(taps());
  }
  // Rows of a plane below `out_rows` rows of output.
  int64_t plane_rows(int64_t out_rows) const {
    return ((out_rows - 1) * sh + (kh - 1) * dh) / sh + 1;
  }
  int64_t channel_size(int64_t out_rows) const {
    return y_phases * x_phases * plane_rows(out_rows) * pitch;
  }
  // Pixels of `out_rows` rows counted along the pitch.
  int64_t pixels(int64_t out_rows) const { return (out_rows - 1) * pitch + ow; }
  // Where tap (i, j) of pixel 0 lies within a channel.
  int64_t tap_offset(int64_t i, int64_t j, int64_t out_rows) const {
    int64_t plane = (i * dh % sh) * x_phases + j * dw % sw;
    return plane * plane_rows(out_rows) * pitch + i * dh / sh * pitch + j * dw / sw;
  }
};

// Elements in whole cache lines.
template <class T>
constexpr int64_t round_line(int64_t n) {
  constexpr int64_t line = 64 / sizeof(T);
  return ceil_div(n, line) * line;
}

template <class T>
inline void copy_elements(const T* from, int64_t n, T* to) {
  int64_t i = 0;
  for (; i + kWidth<T> <= n; i += kWidth<T>) store(to + i, load(from + i));
  if (i < n) store_part(to + i, load_part(from + i, n - i), n - i);
}

template <class T>
inline void zero_row(int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = T(0);
}

// Calls body(plane row, image row, column phase, first and last plane column, image column of the
// first) for all parts of a channel's planes that lie on the image; the image row is -1 where the
// whole plane row is padding.
template <class F>
void for_plane_rows(const ConvShape& s, int64_t first_row, int64_t out_rows, F&& body) {
  int64_t rows = s.plane_rows(out_rows), row = 0;
  for (int64_t y_phase = 0; y_phase < s.y_phases; ++y_phase)
    for (int64_t x_phase = 0; x_phase < s.x_phases; ++x_phase) {
      int64_t low = std::min(s.pitch, x_phase < s.pw ? ceil_div(s.pw - x_phase, s.sw) : 0);
      int64_t reach = s.w + s.pw - x_phase;
      int64_t high = std::clamp<int64_t>(reach > 0 ? ceil_div(reach, s.sw) : 0, low, s.pitch);
      for (int64_t r = 0; r < rows; ++r, ++row) {
        int64_t y = (first_row + r) * s.sh + y_phase - s.ph;
        body(row, y >= 0 && y < s.h ? y : -1, low, high, low * s.sw + x_phase - s.pw);
      }
    }
}

// One channel of the input, for the outputs of rows [first_row, first_row + out_rows), to its
// planes.
template <class T>
void split_planes(const ConvShape& s, int64_t first_row, int64_t out_rows, const T* x, T* planes) {
  for_plane_rows(s, first_row, out_rows,
                 [&](int64_t row, int64_t y, int64_t low, int64_t high, int64_t column) {
                   T* to = planes + row * s.pitch;
                   if (y < 0) return zero_row(s.pitch, to);
                   const T* from = x + y * s.w + column;
                   zero_row(low, to);
                   if (s.sw == 1) {
                     copy_elements(from, high - low, to + low);
                   } else {
                     for (int64_t q = low; q < high; ++q) to[q] = from[(q - low) * s.sw];
                   }
                   zero_row(s.pitch - high, to + high);
                 });
}

// The reverse; what no window reached becomes zero.
template <class T>
void join_planes(const ConvShape& s, const T* planes, T* x) {
  int64_t reach_h = s.plane_rows(s.oh) * s.sh - s.ph, reach_w = s.pitch * s.sw - s.pw;
  if (s.y_phases < s.sh || s.x_phases < s.sw || reach_h < s.h || reach_w < s.w)
    std::fill(x, x + s.h * s.w, T(0));
  for_plane_rows(s, 0, s.oh,
                 [&](int64_t row, int64_t y, int64_t low, int64_t high, int64_t column) {
                   if (y < 0) return;
                   const T* from = planes + row * s.pitch + low;
                   T* to = x + y * s.w + column;
                   if (s.sw == 1) return copy_elements(from, high - low, to);
                   for (int64_t q = 0; q < high - low; ++q) to[q * s.sw] = from[q];
                 });
}

// One channel of an output gradient, with zeros between the rows and from `pixels` to `padded`.
template <class T>
void spread_rows(const ConvShape& s, int64_t padded, const T* g, T* to) {
  for (int64_t y = 0; y < s.oh; ++y) {
    copy_elements(g + y * s.ow, s.ow, to + y * s.pitch);
    int64_t end = y + 1 < s.oh ? (y + 1) * s.pitch : padded;
    zero_row(end - y * s.pitch - s.ow, to + y * s.pitch + s.ow);
  }
}

// Cuts `n` into the fewest parts of at most `most`, of nearly equal size.
struct Parts {
  int64_t n, count;
  Parts(int64_t n, int64_t most) : n(n), count(ceil_div(n, most)) {}
  int64_t begin(int64_t i) const { return i * n / count; }
  int64_t size(int64_t i) const { return begin(i + 1) - begin(i); }
};

#if defined(__AVX512F__)
inline constexpr int kConvRows = 8, kConvVectors = 4, kConvAccumulators = 28;
#else
inline constexpr int kConvRows = 4, kConvVectors = 3, kConvAccumulators = 12;
#endif
inline constexpr int64_t conv_vectors(int64_t rows) {
  return std::min<int64_t>(kConvVectors, kConvAccumulators / rows);
}

// out[i] = bias[i] + sum over r of a[r][i] * (vectors at b + offsets[r]), or added to what is there
// where bias is null.
template <class T, int Rows, int Vectors>
void conv_tile(int64_t depth, const T* a, const T* b, const int64_t* offsets, T* out,
               const int64_t* out_offsets, const T* bias) {
  Vec<T> acc[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) acc[i][v] = bias ? splat(bias[i]) : Vec<T>{};
  for (int64_t r = 0; r < depth; ++r, a += Rows) {
    const T* row = b + offsets[r];
    Vec<T> x[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) x[v] = load(row + v * kWidth<T>);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      Vec<T> w = splat(a[i]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) acc[i][v] += w * x[v];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    T* to = out + out_offsets[i];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      store(to + v * kWidth<T>, bias ? acc[i][v] : load(to + v * kWidth<T>) + acc[i][v]);
  }
}

template <class T>
using ConvTile = void (*)(int64_t, const T*, const T*, const int64_t*, T*, const int64_t*,
                          const T*);

// The kernel for `rows` x `vectors`; null where that does not fit the registers.
template <class T>
ConvTile<T> conv_tile_for(int64_t rows, int64_t vectors);
extern template ConvTile<float> conv_tile_for<float>(int64_t, int64_t);
extern template ConvTile<double> conv_tile_for<double>(int64_t, int64_t);

// What a finish takes, on one core.
inline double finish_ns(const ConvShape& s, const Finish& finish) {
  return finish.ns * double(s.n) * double(s.o) * double(s.oh) * double(s.ow);
}

// The convolution itself, prepared for one shape. Vectors run over output channels where those fill
// them, else over pixels.
template <class T>
class ConvForward {
 public:
  // `swapped`: the weight is (c, o / groups, kh, kw) and its taps run backwards, which makes this
  // the input gradient of a convolution of stride 1.
  // `finish` is done at last to the planes of the result.
  ConvForward(const ConvShape& s, bool swapped, const Finish& finish = {});
  uint64_t workspace_bytes() const { return workspace_bytes_; }
  using Element = T;
  // `with` is what the finish takes of the run.
  void run(const T* x, const T* weight, const T* bias, T* y, void* workspace,
           const Finish::Run& with = {}) const;

 private:
  void pack_weight(const T* weight, T* packed) const;
  void run_over_pixels(const T* planes, const T* packed, const T* bias, int64_t rows, T* y,
                       T* tile) const;
  void run_over_channels(const T* planes, const T* packed, const T* bias, int64_t rows, T* y,
                         T* tile) const;

  ConvShape s_;
  Finish finish_;
  bool swapped_, over_channels_;
  int64_t depth_;            // taps of all channels
  Parts tiles_;              // of a group's output channels
  int64_t bands_, rows_;     // bands of output rows, rows of each
  int64_t vectors_, wide_;   // of a tile of pixels; pixels in it
  int64_t weight_elements_;  // of one packed tile
  int64_t planes_elements_, slot_elements_;
  std::vector<int64_t> offsets_, out_offsets_;
  uint64_t workspace_bytes_;
};
extern template class ConvForward<float>;
extern template class ConvForward<double>;

// Nanoseconds on one core, for the host to judge by: multiply-adds, what is done with each element
// of the weight, and splitting the input into planes.
struct ConvCost {
  double slower = 1;       // the multiply-adds, than those of a 3 x 3 convolution
  double weight_ns = 0.6;  // packing it

  template <class T>
  uint64_t of(const ConvShape& s) const {
    // How many a core does in f32 in a nanosecond (docs/benchmarks.md has measurements).
    constexpr double kMultiplyAdds = kVectorBytes == 64 ? 50 : kVectorBytes == 32 ? 38 : 12.5;
    // One channel for each result leaves nothing to reuse in registers, and small planes are mostly
    // beginnings and ends.
    constexpr double kDepthwise = 3, kPlaneNs = 100;
    const bool depthwise = s.is_depthwise();
    const double sums = s.work() / kMultiplyAdds * slower * (depthwise ? kDepthwise : 1),
                 weight = weight_ns * double(s.o) * double(s.cg) * double(s.taps()),
                 split = (s.sw == 1 ? 0.25 : 0.75) * double(s.n) * double(s.c) * double(s.h) *
                         double(s.w),
                 planes = depthwise ? kPlaneNs * double(s.n) * double(s.o) : 0;
    return 1000 + static_cast<uint64_t>((sums + weight + split + planes) * sizeof(T) / 4);
  }
};
// The plan of a gradient, of which each has a run(input 0, input 1, bias, output, scratch).
template <class Conv>
tn_plan* conv_plan(const ConvShape& s, Conv conv, ConvCost cost = {}) {
  using T = typename Conv::Element;
  const sdk::PlanOptions options{conv.workspace_bytes(), cost.of<T>(s)};
  auto run = [conv = std::move(conv), bias = s.bias](const tn_run& run) {
    conv.run(static_cast<const T*>(run.inputs[0]), static_cast<const T*>(run.inputs[1]),
             bias ? static_cast<const T*>(run.inputs[2]) : nullptr, static_cast<T*>(run.outputs[0]),
             run.workspace);
  };
  return sdk::make_plan(std::move(run), options);
}
// Multiply-adds below which waking another thread costs more than it saves.
inline constexpr double kConvSerialWork = 1 << 18;

}  // namespace tenon::cpu
