// How long convolutions take, for the choice between these plans and others.
#include "kernels/convolution/conv.h"

namespace tenon::onednn {

namespace {
// By how much whole blocks of channels are more than these.
double filled_up(int64_t channels, int64_t block) {
  return double(ceil_div(channels, block) * block) / double(channels);
}
}  // namespace

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
  const double rate = of_weight ? by_lanes(56, 33, 12.75) : by_lanes(56, 44, 14);
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
