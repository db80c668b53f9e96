#include <array>

#include "kernels/convolution/by_taps.h"

namespace tenon::cpu {
namespace {

// Each tap's share of the input gradient is a product of weight and output gradient over the output
// channels, added at the tap's distance: to the scratch planes, which are then put together.
template <class T>
class InputGrad {
 public:
  explicit InputGrad(const ConvShape& s) : s_(s) {
    int64_t threads = thread_count();
    splits_ = s.work() > kConvSerialWork ? std::min(s.cg, ceil_div(threads, s.n * s.groups)) : 1;
    vectors_ = conv_vectors(std::min<int64_t>(kConvRows, std::max<int64_t>(1, s.cg)));
    padded_ = round_line<T>(s.pixels(s.oh) + vectors_ * kWidth<T>);
    for (int64_t k = 0; k < s.og; ++k) g_offsets_.push_back(k * padded_);
    planes_elements_ =
        round_line<T>(ceil_div(s.cg, splits_) * s.channel_size(s.oh) + vectors_ * kWidth<T>);
    slot_elements_ = planes_elements_ + s.og * padded_;
    weight_elements_ = round_line<T>(s.o * s.cg * s.taps());
    workspace_bytes_ =
        static_cast<uint64_t>(weight_elements_ + threads * slot_elements_) * sizeof(T);
  }

  using Element = T;
  void run(const T* g, const T* weight, const T*, T* gx, void* workspace) const {
    T* scratch = static_cast<T*>(workspace);
    pack_weight(weight, scratch);
    int64_t tasks = s_.n * s_.groups * splits_;
    parallel_for(
        tasks, s_.work() > kConvSerialWork ? 1 : tasks,
        [&](int64_t begin, int64_t end, uint32_t slot) {
          T* planes = scratch + weight_elements_ + slot * slot_elements_;
          T* rows = planes + planes_elements_;
          for (int64_t task = begin; task < end; ++task) {
            int64_t image = task / (s_.groups * splits_), group = task / splits_ % s_.groups,
                    split = task % splits_;
            for (int64_t k = 0; k < s_.og; ++k)
              spread_rows(s_, padded_, g + ((image * s_.o + group * s_.og) + k) * s_.oh * s_.ow,
                          rows + k * padded_);
            std::fill(planes, planes + planes_elements_, T(0));
            add_taps(rows, scratch + group * s_.og * s_.cg * s_.taps(), split, planes);
            T* to = gx + (image * s_.c + group * s_.cg + first_channel(split)) * s_.h * s_.w;
            for (int64_t c = 0; c < channels(split); ++c)
              join_planes(s_, planes + c * s_.channel_size(s_.oh), to + c * s_.h * s_.w);
          }
        });
  }

  uint64_t workspace_bytes() const { return workspace_bytes_; }

 private:
  int64_t first_channel(int64_t split) const { return split * s_.cg / splits_; }
  int64_t channels(int64_t split) const { return first_channel(split + 1) - first_channel(split); }

  // To [tap][tile of input channels][output channel][channel of the tile].
  void pack_weight(const T* weight, T* packed) const {
    int64_t taps = s_.taps(), block = s_.og * s_.cg;
    parallel_for(
        s_.groups * taps, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, block)),
        [&](int64_t begin, int64_t end, uint32_t) {
          for (int64_t i = begin; i < end; ++i) {
            const T* from = weight + i / taps * block * taps + i % taps;
            T* to = packed + i * block;
            for (int64_t split = 0; split < splits_; ++split) {
              Parts tiles(channels(split), kConvRows);
              for (int64_t t = 0; t < tiles.count; ++t)
                for (int64_t k = 0; k < s_.og; ++k)
                  for (int64_t c = 0; c < tiles.size(t); ++c)
                    *to++ = from[(k * s_.cg + first_channel(split) + tiles.begin(t) + c) * taps];
            }
          }
        });
  }

  void add_taps(const T* rows, const T* packed, int64_t split, T* planes) const {
    Parts parts(ceil_div(s_.pixels(s_.oh), kWidth<T>), vectors_), tiles(channels(split), kConvRows);
    int64_t channel = s_.channel_size(s_.oh), block = s_.og * s_.cg;
    std::array<int64_t, kConvRows> out_offsets;
    for (int64_t i = 0; i < kConvRows; ++i) out_offsets[static_cast<size_t>(i)] = i * channel;
    for (int64_t part = 0; part < parts.count; ++part) {
      int64_t p = parts.begin(part) * kWidth<T>;
      for (int64_t tap = 0; tap < s_.taps(); ++tap) {
        T* to = planes + p + s_.tap_offset(tap / s_.kw, tap % s_.kw, s_.oh);
        const T* weights = packed + tap * block + first_channel(split) * s_.og;
        for (int64_t t = 0; t < tiles.count; ++t)
          conv_tile_for<T>(tiles.size(t), parts.size(part))(
              s_.og, weights + tiles.begin(t) * s_.og, rows + p, g_offsets_.data(),
              to + tiles.begin(t) * channel, out_offsets.data(), nullptr);
      }
    }
  }

  ConvShape s_;
  int64_t splits_;  // input channels are split where there are fewer images than threads
  std::vector<int64_t> g_offsets_;
  int64_t vectors_, padded_;
  int64_t weight_elements_, planes_elements_, slot_elements_;
  uint64_t workspace_bytes_;
};

// One of the two where all weights are finite.
template <class Conv>
class WhereFinite {
 public:
  WhereFinite(const ConvShape& s, Conv conv) : s_(s), conv_(std::move(conv)) {}
  using Element = typename Conv::Element;
  uint64_t workspace_bytes() const { return conv_.workspace_bytes(); }
  void run(const Element* g, const Element* weight, const Element* bias, Element* gx,
           void* workspace) const {
    if (all_finite(weight, s_.o * s_.cg * s_.taps()))
      conv_.run(g, weight, bias, gx, workspace);
    else
      input_gradient_by_taps(s_, g, weight, gx);
  }

 private:
  ConvShape s_;
  Conv conv_;
};

// A convolution of stride 1 with flipped taps gives the same. It wins except for few input
// channels, or a kernel so large against the image that most taps of that convolution meet padding.
template <class T>
bool prefers_flipped_taps(const ConvShape& s) {
  if (s.sh != 1 || s.sw != 1 || s.ph > s.dh * (s.kh - 1) || s.pw > s.dw * (s.kw - 1) || s.og == 0)
    return false;
  if (s.og < 8) return true;
  return s.cg >= kWidth<T> && s.h * s.w * 4 <= s.oh * s.ow * 5;
}

ConvShape flipped(ConvShape s) {
  std::swap(s.c, s.o);
  std::swap(s.cg, s.og);
  std::swap(s.h, s.oh);
  std::swap(s.w, s.ow);
  s.ph = s.dh * (s.kh - 1) - s.ph;
  s.pw = s.dw * (s.kw - 1) - s.pw;
  s.y_phases = s.x_phases = 1;
  s.pitch = s.ow + (s.kw - 1) * s.dw;
  return s;
}

tn_plan* make_backward_input(tn_device*, const Request& request) {
  const ConvShape s(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_float(s.dtype, [&]<class T>(T) {
    return prefers_flipped_taps<T>(s)
               ? conv_plan(s, WhereFinite(s, ConvForward<T>(flipped(s), true)))
               : conv_plan(s, WhereFinite(s, InputGrad<T>(s)));
  });
}

const sdk::Kernel conv2d_backward_input({"conv2d_backward_input"}, make_backward_input);

}  // namespace
}  // namespace tenon::cpu
