#include <array>
#include <cmath>

#include "kernels/convolution/conv.h"

namespace tenon::cpu {
namespace {

// A scratch of input planes beyond this is cut into bands of output rows: it should stay in the L2
// cache.
constexpr int64_t kBandBytes = 1 << 18;
// Pixels of a row that one kernel call takes at most, where vectors run over channels.
constexpr int kMaxPixels = 14;

template <class T, int Rows, int... V>
constexpr std::array<ConvTile<T>, kConvVectors> tile_row(std::integer_sequence<int, V...>) {
  auto at = []<int Vectors>() -> ConvTile<T> {
    if constexpr (Rows * Vectors <= kConvAccumulators) return conv_tile<T, Rows, Vectors>;
    return nullptr;
  };
  return {at.template operator()<V + 1>()...};
}
template <class T, int... R>
constexpr std::array<std::array<ConvTile<T>, kConvVectors>, kConvRows> tile_table(
    std::integer_sequence<int, R...>) {
  return {tile_row<T, R + 1>(std::make_integer_sequence<int, kConvVectors>())...};
}

// Pixels [0, Pixels) of a row for Vectors vectors of output channels: sums over taps, starting from
// bias. Vector v of pixel i goes to out[v * out_step + i].
template <class T, int Vectors, int Pixels>
void channel_row(int64_t depth, const T* weight, const T* x, const int64_t* offsets, const T* bias,
                 Vec<T>* out, int64_t out_step) {
  Vec<T> acc[Pixels][Vectors];
#pragma GCC unroll 14
  for (int i = 0; i < Pixels; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) acc[i][v] = load(bias + v * kWidth<T>);
  for (int64_t r = 0; r < depth; ++r, weight += Vectors * kWidth<T>) {
    const T* from = x + offsets[r];
    Vec<T> w[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) w[v] = load(weight + v * kWidth<T>);
#pragma GCC unroll 14
    for (int i = 0; i < Pixels; ++i) {
      Vec<T> pixel = splat(from[i]);
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) acc[i][v] += pixel * w[v];
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < Pixels; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) out[v * out_step + i] = acc[i][v];
}

template <class T>
using ChannelRow = void (*)(int64_t, const T*, const T*, const int64_t*, const T*, Vec<T>*,
                            int64_t);

constexpr int64_t most_pixels(int64_t vectors) {
  return std::min<int64_t>(kMaxPixels, kConvAccumulators / vectors - 2 * (vectors - 1));
}

template <class T, int... I>
constexpr std::array<std::array<ChannelRow<T>, kMaxPixels>, 2> row_table(
    std::integer_sequence<int, I...>) {
  auto two = []<int Pixels>() -> ChannelRow<T> {
    if constexpr (Pixels <= most_pixels(2)) return channel_row<T, 2, Pixels>;
    return nullptr;
  };
  return {{{channel_row<T, 1, I + 1>...}, {two.template operator()<I + 1>()...}}};
}

// Unpacks one vector for each pixel into `count` planes.
template <class T>
void separate(const Vec<T>* from, int64_t pixels, int64_t count, int64_t plane, T* y) {
  for (int64_t p = 0; p < pixels; p += kWidth<T>) {
    int64_t left = std::min<int64_t>(kWidth<T>, pixels - p);
    Vec<T> block[kWidth<T>];
#pragma GCC unroll 16
    for (int i = 0; i < kWidth<T>; ++i)
      block[i] = from[p + i];  // the scratch goes on for a vector of pixels
    transpose<T>(block);
    for (int64_t i = 0; i < count; ++i)
      left == kWidth<T> ? store(y + i * plane + p, block[i])
                        : store_part(y + i * plane + p, block[i], left);
  }
}

// The share of the multiply-adds whose results are used, and how near they come to two a cycle.
template <class T>
bool better_over_channels(const ConvShape& s) {
  constexpr double w = kWidth<T>;
  double og = static_cast<double>(s.og), out = static_cast<double>(s.oh * s.ow),
         pixels = static_cast<double>(s.pixels(s.oh));
  int64_t vectors = s.og > kWidth<T> ? 2 : 1;
  Parts row(s.ow, most_pixels(vectors));
  double sums = static_cast<double>(s.ow * vectors) / static_cast<double>(row.count);
  double over_channels = og / (std::ceil(og / w) * w) * 0.92 * std::min(1.0, sums / 8);
  double over_pixels = out / (std::ceil(pixels / w) * w) * 0.88;
  return over_channels > over_pixels;
}

}  // namespace

template <class T>
ConvTile<T> conv_tile_for(int64_t rows, int64_t vectors) {
  static constexpr auto table = tile_table<T>(std::make_integer_sequence<int, kConvRows>());
  return table[static_cast<size_t>(rows - 1)][static_cast<size_t>(vectors - 1)];
}
template ConvTile<float> conv_tile_for<float>(int64_t, int64_t);
template ConvTile<double> conv_tile_for<double>(int64_t, int64_t);

template <class T>
ConvForward<T>::ConvForward(const ConvShape& s, bool swapped, const Finish& finish)
    : s_(s),
      finish_(finish),
      swapped_(swapped),
      over_channels_(better_over_channels<T>(s)),
      depth_(s.cg * s.taps()),
      tiles_(s.og, over_channels_ ? 2 * kWidth<T> : kConvRows) {
  constexpr int64_t width = kWidth<T>;
  int64_t threads = thread_count();
  bands_ =
      std::max(ceil_div(s.cg * s.channel_size(s.oh) * static_cast<int64_t>(sizeof(T)), kBandBytes),
               s.work() > kConvSerialWork ? ceil_div(threads, s.n * s.groups) : 1);
  rows_ = ceil_div(s.oh, std::min(bands_, s.oh));
  bands_ = ceil_div(s.oh, rows_);
  for (int64_t c = 0; c < s.cg; ++c)
    for (int64_t i = 0; i < s.kh; ++i)
      for (int64_t j = 0; j < s.kw; ++j)
        offsets_.push_back(c * s.channel_size(rows_) + s.tap_offset(i, j, rows_));
  vectors_ = conv_vectors(ceil_div(s.og, tiles_.count));
  wide_ = vectors_ * width;
  for (int64_t i = 0; i < kConvRows; ++i) out_offsets_.push_back(i * wide_);
  planes_elements_ = round_line<T>(s.cg * s.channel_size(rows_) + wide_);
  int64_t lanes = over_channels_ ? (s.og > width ? 2 : 1) * width : ceil_div(s.og, tiles_.count);
  // Behind a packed tile there is room for what `pack` writes too much.
  weight_elements_ = round_line<T>(depth_ * lanes + width);
  slot_elements_ = planes_elements_ +
                   (over_channels_ ? lanes * (rows_ * s.ow + width) : round_line<T>(s.og * wide_));
  workspace_bytes_ =
      static_cast<uint64_t>(s.groups * tiles_.count * weight_elements_ + threads * slot_elements_) *
      sizeof(T);
}

template <class T>
void ConvForward<T>::run(const T* x, const T* weight, const T* bias, T* y, void* workspace,
                         const Finish::Run& with) const {
  T* packed = static_cast<T*>(workspace);
  pack_weight(weight, packed);
  int64_t tasks = s_.n * s_.groups * bands_, plane = s_.oh * s_.ow;
  const double work = s_.work() + 50 * finish_ns(s_, finish_);
  parallel_for(
      tasks, work > kConvSerialWork ? 1 : tasks, [&](int64_t begin, int64_t end, uint32_t slot) {
        T* planes = packed + s_.groups * tiles_.count * weight_elements_ + slot * slot_elements_;
        for (int64_t task = begin; task < end; ++task) {
          int64_t image = task / (s_.groups * bands_), group = task / bands_ % s_.groups,
                  first = task % bands_ * rows_;
          int64_t rows = std::min(rows_, s_.oh - first);
          const T* from = x + (image * s_.c + group * s_.cg) * s_.h * s_.w;
          // The last band's planes keep the height of the others, so that one table of
          // offsets serves all.
          for (int64_t c = 0; c < s_.cg; ++c)
            split_planes(s_, first, rows_, from + c * s_.h * s_.w,
                         planes + c * s_.channel_size(rows_));
          const T* weights = packed + group * tiles_.count * weight_elements_;
          const T* start = bias ? bias + group * s_.og : nullptr;
          T *to = y + (image * s_.o + group * s_.og) * plane + first * s_.ow,
            *tile = planes + planes_elements_;
          over_channels_ ? run_over_channels(planes, weights, start, rows, to, tile)
                         : run_over_pixels(planes, weights, start, rows, to, tile);
          if (rows == s_.oh) {
            finish_(to, s_.og * plane, with);
          } else {
            for (int64_t k = 0; k < s_.og && finish_; ++k)
              finish_(to + k * plane, rows * s_.ow, with);
          }
        }
      });
}

// To [tile of output channels][tap][channel of the tile].
template <class T>
void ConvForward<T>::pack_weight(const T* weight, T* packed) const {
  int64_t taps = s_.taps(),
          grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, weight_elements_));
  parallel_for(s_.groups * tiles_.count, grain, [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t first = tiles_.begin(i % tiles_.count), count = tiles_.size(i % tiles_.count);
      int64_t pitch = !over_channels_ ? count : (count > kWidth<T> ? 2 : 1) * kWidth<T>;
      const T* from = weight + i / tiles_.count * s_.og * depth_;
      T* to = packed + i * weight_elements_;
      if (!swapped_) {
        pack(from + first * depth_, depth_, int64_t{1}, count, depth_, to, pitch);
        continue;
      }
      for (int64_t c = 0; c < s_.cg; ++c)
        for (int64_t t = taps; t-- > 0; to += pitch) {
          const T* lanes = from + (c * s_.og + first) * taps + t;
          for (int64_t k = 0; k < pitch; ++k) to[k] = k < count ? lanes[k * taps] : T(0);
        }
    }
  });
}

template <class T>
void ConvForward<T>::run_over_pixels(const T* planes, const T* packed, const T* bias, int64_t rows,
                                     T* y, T* tile) const {
  static constexpr T kNoBias[kConvRows] = {};
  int64_t pixels = s_.pixels(rows), plane = s_.oh * s_.ow;
  Parts parts(ceil_div(pixels, kWidth<T>), vectors_);
  for (int64_t part = 0; part < parts.count; ++part) {
    int64_t p = parts.begin(part) * kWidth<T>, vectors = parts.size(part),
            end = std::min(pixels, p + vectors * kWidth<T>);
    for (int64_t t = 0; t < tiles_.count; ++t) {
      int64_t first = tiles_.begin(t);
      conv_tile_for<T>(tiles_.size(t), vectors)(depth_, packed + t * weight_elements_, planes + p,
                                                offsets_.data(), tile + first * wide_,
                                                out_offsets_.data(), bias ? bias + first : kNoBias);
    }
    for (int64_t q = p; q < end;) {  // the stretch of each row that the tile holds
      int64_t row = q / s_.pitch, column = q % s_.pitch,
              stop = std::min(end, row * s_.pitch + s_.ow);
      for (int64_t k = 0; q < stop && k < s_.og; ++k)
        copy_elements(tile + k * wide_ + q - p, stop - q, y + k * plane + row * s_.ow + column);
      q = (row + 1) * s_.pitch;
    }
  }
}

template <class T>
void ConvForward<T>::run_over_channels(const T* planes, const T* packed, const T* bias,
                                       int64_t rows, T* y, T* tile) const {
  static constexpr auto table = row_table<T>(std::make_integer_sequence<int, kMaxPixels>());
  constexpr int64_t width = kWidth<T>;
  int64_t plane = s_.oh * s_.ow, out_step = rows * s_.ow + width;
  auto* out = reinterpret_cast<Vec<T>*>(tile);
  for (int64_t t = 0; t < tiles_.count; ++t) {
    int64_t first = tiles_.begin(t), count = tiles_.size(t), vectors = count > width ? 2 : 1;
    T start[2 * width] = {};
    if (bias) std::copy(bias + first, bias + first + count, start);
    Parts parts(s_.ow, most_pixels(vectors));
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t part = 0; part < parts.count; ++part) {
        auto kernel =
            table[static_cast<size_t>(vectors - 1)][static_cast<size_t>(parts.size(part) - 1)];
        int64_t column = parts.begin(part);
        kernel(depth_, packed + t * weight_elements_, planes + row * s_.pitch + column,
               offsets_.data(), start, out + row * s_.ow + column, out_step);
      }
    for (int64_t v = 0; v < vectors; ++v)
      separate<T>(out + v * out_step, rows * s_.ow, std::min(width, count - v * width), plane,
                  y + (first + v * width) * plane);
  }
}

template class ConvForward<float>;
template class ConvForward<double>;

}  // namespace tenon::cpu
