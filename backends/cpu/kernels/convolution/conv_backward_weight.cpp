#include <array>

#include "kernels/convolution/by_taps.h"

namespace tenon::cpu {
namespace {

// Sums of output gradient times shifted input, over pixels. Vectors run over output channels, or
// over pixels where the channels do not fill a vector.
#if defined(__AVX512F__)
constexpr int kTileChannels = 6, kTileTaps = 4, kTileBroadcasts = 24;
#else
constexpr int kTileChannels = 3, kTileTaps = 3, kTileBroadcasts = 10;
#endif

// acc[k][t] += g rows (`g_step` apart) times x at offsets[t], vector by vector.
template <class T, int Channels, int Taps>
void pixel_tile(int64_t vectors, const T* g, int64_t g_step, const T* x, const int64_t* offsets,
                Vec<T>* sums, int64_t sums_step) {
  Vec<T> acc[Channels][Taps];
  const T* from[Taps];
#pragma GCC unroll 4
  for (int t = 0; t < Taps; ++t) from[t] = x + offsets[t];
#pragma GCC unroll 6
  for (int k = 0; k < Channels; ++k)
#pragma GCC unroll 4
    for (int t = 0; t < Taps; ++t) acc[k][t] = sums[k * sums_step + t];
  for (int64_t i = 0; i < vectors * kWidth<T>; i += kWidth<T>) {
    Vec<T> v[Taps];
#pragma GCC unroll 4
    for (int t = 0; t < Taps; ++t) v[t] = load(from[t] + i);
#pragma GCC unroll 6
    for (int k = 0; k < Channels; ++k) {
      Vec<T> gk = load(g + k * g_step + i);
#pragma GCC unroll 4
      for (int t = 0; t < Taps; ++t) acc[k][t] += gk * v[t];
    }
  }
#pragma GCC unroll 6
  for (int k = 0; k < Channels; ++k)
#pragma GCC unroll 4
    for (int t = 0; t < Taps; ++t) sums[k * sums_step + t] = acc[k][t];
}

// sums[r * Columns + j] (a vector of output channels) += x at offsets[r] + j, times the gradient of
// that pixel, over `rows` x `width` pixels. `g` holds one vector for each pixel.
template <class T, int Columns, int Rows>
void channel_tile(int64_t rows, int64_t width, const T* g, const T* x, int64_t pitch,
                  const int64_t* offsets, Vec<T>* const* sums) {
  Vec<T> acc[Rows][Columns];
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < Columns; ++j) acc[r][j] = sums[r][j];
  for (int64_t y = 0; y < rows; ++y, x += pitch) {
    const T* from[Rows];
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r) from[r] = x + offsets[r];
    for (int64_t i = 0; i < width; ++i, g += kWidth<T>) {
      Vec<T> v = load(g);
      // Elements are read again for the next pixel: keeping them in registers (predictive
      // commoning) spills the sums.
      asm volatile("" ::: "memory");
#pragma GCC unroll 12
      for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
        for (int j = 0; j < Columns; ++j) acc[r][j] += v * splat(from[r][i + j]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < Columns; ++j) sums[r][j] = acc[r][j];
}

template <class T>
using PixelTile = void (*)(int64_t, const T*, int64_t, const T*, const int64_t*, Vec<T>*, int64_t);
template <class T>
using ChannelTile = void (*)(int64_t, int64_t, const T*, const T*, int64_t, const int64_t*,
                             Vec<T>* const*);

template <class T, int... I>
constexpr std::array<PixelTile<T>, sizeof...(I)> pixel_table(std::integer_sequence<int, I...>) {
  return {pixel_tile<T, I / kTileTaps + 1, I % kTileTaps + 1>...};
}

// Kernels for taps that lie side by side in 1, 3, 5 or 7 columns.
template <class T>
struct ChannelKernel {
  int64_t columns, rows;
  ChannelTile<T> tile;

  template <int Columns>
  static ChannelKernel make() {
    constexpr int most = kTileBroadcasts / Columns > 0 ? kTileBroadcasts / Columns : 1;
    constexpr int rows = Columns == 5 && most == 4 ? 5 : std::min(most, 10);
    return {Columns, rows, channel_tile<T, Columns, rows>};
  }
  static ChannelKernel choose(const ConvShape& s) {
    bool side_by_side = s.dw % s.sw == 0 && s.dw / s.sw == 1;
    if (side_by_side && s.kw % 5 == 0) return make<5>();
    if (side_by_side && s.kw % 3 == 0) return make<3>();
    if (side_by_side && s.kw % 7 == 0) return make<7>();
    return make<1>();
  }
};

template <class T>
class WeightGrad {
 public:
  explicit WeightGrad(const ConvShape& s) : s_(s), kernel_(ChannelKernel<T>::choose(s)) {
    constexpr int64_t w = kWidth<T>;
    int64_t threads = thread_count();
    bool thread = s.work() > kConvSerialWork;
    chunks_ = thread ? std::clamp<int64_t>(s.n, 1, threads) : 1;
    splits_ = thread ? std::min(s.cg, ceil_div(threads, chunks_ * s.groups)) : 1;
    if (splits_ < 1) splits_ = 1;
    o_blocks_ = ceil_div(s.og, w);
    int64_t taps = s.cg * s.taps();
    over_pixels_ = s.og * 5 < o_blocks_ * w * 3 && s.o * taps * kVectorBytes < kMaxPixelSums;
    vectors_ = ceil_div(s.pixels(s.oh), w);
    padded_ = vectors_ * w;
    group_sums_ = (over_pixels_ ? s.og : o_blocks_) * taps;
    // One more vector takes what the rows that fill up a tile would add.
    chunk_elements_ = round_line<T>(s.groups * group_sums_ * w);
    planes_elements_ = round_line<T>(ceil_div(s.cg, splits_) * s.channel_size(s.oh) + w);
    slot_elements_ =
        planes_elements_ + (over_pixels_ ? s.og * padded_ : o_blocks_ * s.oh * s.ow * w);
    workspace_bytes_ =
        static_cast<uint64_t>(chunks_ * chunk_elements_ + threads * slot_elements_) * sizeof(T);
    for (int64_t c = 0; c < s.cg; ++c)
      for (int64_t i = 0; i < s.kh; ++i)
        for (int64_t j = 0; j < s.kw; ++j)
          offsets_.push_back(c * s.channel_size(s.oh) + s.tap_offset(i, j, s.oh));
    for (size_t i = 0; i < offsets_.size(); i += static_cast<size_t>(kernel_.columns))
      row_offsets_.push_back(offsets_[i]);
  }

  using Element = T;
  void run(const T* g, const T* x, const T*, T* gweight, void* workspace) const {
    T* scratch = static_cast<T*>(workspace);
    std::fill(scratch, scratch + chunks_ * chunk_elements_, T(0));
    int64_t tasks = chunks_ * s_.groups * splits_;
    // Each chunk of the batch has sums of its own, whichever thread works on it.
    parallel_for(tasks, s_.work() > kConvSerialWork ? 1 : tasks,
                 [&](int64_t begin, int64_t end, uint32_t slot) {
                   T* planes = scratch + chunks_ * chunk_elements_ + slot * slot_elements_;
                   for (int64_t task = begin; task < end; ++task) {
                     int64_t chunk = task / (s_.groups * splits_),
                             group = task / splits_ % s_.groups, split = task % splits_;
                     auto* sums = reinterpret_cast<Vec<T>*>(scratch + chunk * chunk_elements_) +
                                  group * group_sums_;
                     for (int64_t image = chunk * s_.n / chunks_;
                          image < (chunk + 1) * s_.n / chunks_; ++image)
                       add_image(g + (image * s_.o + group * s_.og) * s_.oh * s_.ow,
                                 x + (image * s_.c + group * s_.cg) * s_.h * s_.w, split, planes,
                                 sums);
                   }
                 });
    finish(scratch, gweight);
  }

  uint64_t workspace_bytes() const { return workspace_bytes_; }
  // The sums are cleared first and reordered at the end, so each element of the weight costs more.
  // The gradient of a few channels is read many times, which is fast if it fits into the
  // second-level cache: 1 MiB or more on processors with AVX-512.
  ConvCost cost() const {
    constexpr bool kAvx512 = kVectorBytes == 64;
    const bool cached = s_.oh * s_.ow * kVectorBytes <= (kAvx512 ? 1 << 20 : 256 << 10);
    double slower = cached ? 1 : 1.5;
    // With AVX-512, 54 multiply-adds a nanosecond were measured instead of 50, and fewer with
    // strides and with a single tap.
    if (kAvx512) slower *= 0.93 * (s_.sw > 1 ? 1.1 : 1) * (s_.taps() == 1 ? 1.15 : 1);
    return {.slower = slower, .weight_ns = 1.2};
  }

 private:
  static constexpr int64_t kMaxPixelSums = 1 << 20;

  int64_t first_channel(int64_t split) const { return split * s_.cg / splits_; }

  void add_image(const T* g, const T* x, int64_t split, T* planes, Vec<T>* sums) const {
    int64_t c0 = first_channel(split), c1 = first_channel(split + 1);
    if (over_pixels_ && !all_finite(x + c0 * s_.h * s_.w, (c1 - c0) * s_.h * s_.w))
      return add_by_taps(g, x, c0, c1, sums);
    for (int64_t c = c0; c < c1; ++c)
      split_planes(s_, 0, s_.oh, x + c * s_.h * s_.w, planes + (c - c0) * s_.channel_size(s_.oh));
    std::fill(planes + (c1 - c0) * s_.channel_size(s_.oh), planes + planes_elements_, T(0));
    T* gradient = planes + planes_elements_;
    const T* origin = planes - c0 * s_.channel_size(s_.oh);
    if (over_pixels_) {
      for (int64_t k = 0; k < s_.og; ++k)
        spread_rows(s_, padded_, g + k * s_.oh * s_.ow, gradient + k * padded_);
      add_over_pixels(gradient, origin, c0 * s_.taps(), c1 * s_.taps(), sums);
    } else {
      for (int64_t b = 0; b < o_blocks_; ++b) {
        T* block = gradient + b * s_.oh * s_.ow * kWidth<T>;
        interleave(g + b * kWidth<T> * s_.oh * s_.ow,
                   std::min<int64_t>(kWidth<T>, s_.og - b * kWidth<T>), block);
        add_over_channels(block, origin, c0 * s_.taps(), c1 * s_.taps(),
                          sums + b * s_.cg * s_.taps());
      }
    }
  }

  void add_by_taps(const T* g, const T* x, int64_t c0, int64_t c1, Vec<T>* sums) const {
    for (int64_t k = 0; k < s_.og; ++k)
      for (int64_t t = c0 * s_.taps(); t < c1 * s_.taps(); ++t) {
        const int64_t tap = t % s_.taps();
        sums[k * s_.cg * s_.taps() + t][0] += weight_gradient_by_windows(
            s_, g + k * s_.oh * s_.ow, x + t / s_.taps() * s_.h * s_.w, tap / s_.kw, tap % s_.kw);
      }
  }

  // Packs `count` channels of the gradient into one vector for each pixel.
  void interleave(const T* g, int64_t count, T* to) const {
    int64_t plane = s_.oh * s_.ow;
    for (int64_t p = 0; p < plane; p += kWidth<T>) {
      int64_t left = std::min<int64_t>(kWidth<T>, plane - p);
      Vec<T> block[kWidth<T>];
      for (int i = 0; i < kWidth<T>; ++i)
        block[i] = i >= count          ? Vec<T>{}
                   : left == kWidth<T> ? load(g + i * plane + p)
                                       : load_part(g + i * plane + p, left);
      transpose<T>(block);
      for (int64_t i = 0; i < left; ++i) store(to + (p + i) * kWidth<T>, block[i]);
    }
  }

  void add_over_pixels(const T* g, const T* x, int64_t first, int64_t last, Vec<T>* sums) const {
    static constexpr auto table =
        pixel_table<T>(std::make_integer_sequence<int, kTileChannels * kTileTaps>());
    Parts channels(s_.og, kTileChannels), taps(last - first, kTileTaps);
    int64_t step = s_.cg * s_.taps();
    for (int64_t k = 0; k < channels.count; ++k)
      for (int64_t t = 0; t < taps.count; ++t) {
        int64_t tap = first + taps.begin(t);
        auto tile =
            table[static_cast<size_t>((channels.size(k) - 1) * kTileTaps + taps.size(t) - 1)];
        tile(vectors_, g + channels.begin(k) * padded_, padded_, x, offsets_.data() + tap,
             sums + channels.begin(k) * step + tap, step);
      }
  }

  void add_over_channels(const T* g, const T* x, int64_t first, int64_t last, Vec<T>* sums) const {
    int64_t columns = kernel_.columns;
    for (int64_t row = first / columns; row < last / columns; row += kernel_.rows) {
      int64_t offsets[16];
      Vec<T>* to[16];
      Vec<T> rest[8];
      // A short last tile repeats its last row, whose sums then go nowhere.
      for (int64_t r = 0; r < kernel_.rows; ++r) {
        bool real = row + r < last / columns;
        offsets[r] = row_offsets_[static_cast<size_t>(real ? row + r : row)];
        to[r] = real ? sums + (row + r) * columns : rest;
      }
      for (auto& v : rest) v = Vec<T>{};
      kernel_.tile(s_.oh, s_.ow, g, x, s_.pitch, offsets, to);
    }
  }

  // Adds the chunks up, in order, and brings the sums to (o, cg, kh, kw).
  void finish(const T* scratch, T* gweight) const {
    int64_t taps = s_.cg * s_.taps();
    parallel_for(s_.o, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, taps * chunks_)),
                 [&](int64_t begin, int64_t end, uint32_t) {
                   for (int64_t o = begin; o < end; ++o) {
                     int64_t k = o % s_.og, lane = k % kWidth<T>;
                     int64_t at = o / s_.og * group_sums_ + (over_pixels_ ? k : k / kWidth<T>)*taps;
                     for (int64_t t = 0; t < taps; ++t) {
                       const T* from = scratch + (at + t) * kWidth<T>;
                       if (over_pixels_) {
                         Vec<T> sum = load(from);
                         for (int64_t chunk = 1; chunk < chunks_; ++chunk)
                           sum += load(from + chunk * chunk_elements_);
                         gweight[o * taps + t] = sum_lanes<T>(sum);
                       } else {
                         T sum = from[lane];
                         for (int64_t chunk = 1; chunk < chunks_; ++chunk)
                           sum += from[chunk * chunk_elements_ + lane];
                         gweight[o * taps + t] = sum;
                       }
                     }
                   }
                 });
  }

  ConvShape s_;
  ChannelKernel<T> kernel_;
  bool over_pixels_;
  int64_t chunks_, splits_;  // of the batch, and of the input channels where the batch is small
  int64_t o_blocks_, vectors_, padded_, group_sums_;
  int64_t chunk_elements_, planes_elements_, slot_elements_;
  std::vector<int64_t> offsets_, row_offsets_;
  uint64_t workspace_bytes_;
};

tn_plan* make_backward_weight(tn_device*, const Request& request) {
  const ConvShape s(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_float(s.dtype, [&]<class T>(T) {
    const WeightGrad<T> gradient(s);
    return conv_plan(s, gradient, gradient.cost());
  });
}

const sdk::Kernel conv2d_backward_weight({"conv2d_backward_weight"}, make_backward_weight);

}  // namespace
}  // namespace tenon::cpu
