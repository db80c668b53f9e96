// How long convolutions take, for the choice between these plans and others.
#include "kernels/convolution/conv.h"

namespace tenon::onednn {

namespace {
// By how much whole blocks of channels are more than these.
double filled_up(int64_t channels, int64_t block) {
  return double(ceil_div(channels, block) * block) / double(channels);
}
}  // namespace

// oneDNN computes one image by itself with other code than several: for wide rows, and for many
// channels with strides, that takes nearly twice as long on processors by Intel with AVX-512.
int64_t Conv::least_at_once(int64_t images, int64_t out) const {
  constexpr int64_t kWideRow = 28, kManyChannels = 192, kRows = 10, kMaxTaps = 3;
  const bool strided = sh > 1 || sw > 1;
  const bool differs = ow > kWideRow || (strided && out > kManyChannels && oh > kRows);
  if (!is_intel() || vector_lanes() < 16 || type != dnnl_f32 || is_depthwise() || taps() == 1 ||
      kw > kMaxTaps || !differs)
    return 1;
  for (const int64_t some : {2, 3})
    if (images % some == 0) return some;
  return 1;
}

// Xeons by Intel (of the third generation) do up to 90, of which oneDNN's convolutions of more than
// one element mostly reach half and the base's two thirds, except those of small planes.
double Conv::rate_of_maps() const {
  constexpr double kUsual = 56;
  constexpr int64_t kSmallPlane = 7 * 7;
  if (!is_intel() || taps() == 1 || is_depthwise()) return kUsual;
  const bool forward = kind == sdk::ConvKind::forward;
  if (forward && least_at_once(ceil_div(n, thread_count()), o) > 1) return 70;
  if (oh * ow <= kSmallPlane) return 50;
  return !forward && (sh > 1 || sw > 1) ? 40 : 46;
}

double Conv::padding_of_blocks() const {
  const int64_t lanes = vector_lanes();
  // Where each channel is a group of its own, blocks have channels of several groups, unless some
  // of them would be left over. Each job takes whole images there.
  if (is_depthwise() && lanes >= 8 && o % lanes == 0 && n >= thread_count()) return 1;
  // Sums over channels are made of whole blocks, too. Fewer input channels than fill one have a
  // layout of their own, but not in the gradient of the input.
  switch (kind) {
    case sdk::ConvKind::forward:
      return (cg < lanes ? 1 : filled_up(cg, lanes)) * filled_up(og, lanes);
    case sdk::ConvKind::backward_input:
      return filled_up(cg, lanes) * filled_up(og, lanes);
    case sdk::ConvKind::backward_weight:
      return filled_up(og, lanes);
  }
  return 1;
}

uint64_t Conv::cost_ns(double padded, double weight_byte_ns) const {
  // Multiply-adds a nanosecond (docs/benchmarks.md has measurements).
  const auto by_lanes = [](double with_16, double with_8, double with_4) {
    return vector_lanes() == 16 ? with_16 : vector_lanes() == 8 ? with_8 : with_4;
  };
  const bool of_weight = kind == sdk::ConvKind::backward_weight;
  const double rate = of_weight ? by_lanes(56, 33, 12.75) : by_lanes(rate_of_maps(), 44, 14);
  const double maps = double(n) * double(element) *
                      (double(c) * double(h) * double(w) + double(o) * double(oh) * double(ow)),
               weights = double(weight_numel()) * double(element);
  // The gradient of a weight reads maps as a whole, for each block of channels again.
  constexpr double kMapsInCache = 8 << 20;
  double map_byte_ns = 0.06;
  if (of_weight && is_depthwise())
    map_byte_ns = maps > kMapsInCache ? 0.15 : 0.06;
  else if (of_weight && vector_lanes() == 16)
    map_byte_ns = taps() > 1 ? 0.2 : 0.1;
  const double reorders = maps * map_byte_ns + weights * weight_byte_ns;
  return 2500 + static_cast<uint64_t>(std::min(work() * padded / rate + reorders, 0x1p60));
}

// docs/benchmarks.md has the measurements. Where neither kind of channels fills a block, the
// gradient of a weight is computed by much slower code.
bool Conv::slower_than_f32() const {
  constexpr double kSmall = 1e5;  // multiply-adds, of which it makes no difference
  constexpr int64_t kBlock = 16;
  if (type != dnnl_bf16 || groups > 1 || code == Code::reference || work() < kSmall) return false;
  switch (kind) {
    case sdk::ConvKind::forward:
      return padding_of_blocks() > 2;
    case sdk::ConvKind::backward_input:
      return padding_of_blocks() > 2.7;
    case sdk::ConvKind::backward_weight:
      return cg < kBlock ? og % kBlock != 0 : filled_up(cg, kBlock) * filled_up(og, kBlock) > 4;
  }
  return false;
}

}  // namespace tenon::onednn
