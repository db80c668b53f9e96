#include <algorithm>
#include <cmath>
#include <string>

#include <tenon/core/base/number_text.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/data/transform.h>

namespace tenon::data {

PixelTable::PixelTable(const ToFloat& how, int64_t channels, const char* who)
    : channels_(channels) {
  const size_t tables = std::max(how.mean.size(), how.std.size());
  for (auto [name, given] : {std::pair("mean", how.mean.size()), std::pair("std", how.std.size())})
    if (given != 1 && given != static_cast<size_t>(channels))
      throw ValueError(
          fmt::format("{}: {} has {} values, the images have {} channels; give one value, or "
                      "one for each channel",
                      who, name, given, channels));
  values_.resize(tables * 256);
  for (size_t c = 0; c < tables; ++c) {
    const double mean = how.mean[how.mean.size() == 1 ? 0 : c],
                 std = how.std[how.std.size() == 1 ? 0 : c];
    if (!(std > 0 && std::isfinite(std)))
      throw ValueError(
          fmt::format("{}: std has to be finite and positive, but is {}", who, number_text(std)));
    if (!std::isfinite(mean))
      throw ValueError(fmt::format("{}: mean has to be finite, but is {}", who, number_text(mean)));
    for (int x = 0; x < 256; ++x)
      values_[c * 256 + static_cast<size_t>(x)] = static_cast<float>((x / 255.0 - mean) / std);
  }
}

void PixelTable::convert(const uint8_t* from, float* to, int64_t pixels_per_channel) const {
  for (int64_t c = 0; c < channels_; ++c) {
    convert_channel(c, from, to, pixels_per_channel);
    from += pixels_per_channel, to += pixels_per_channel;
  }
}

void PixelTable::convert_channel(int64_t channel, const uint8_t* from, float* to,
                                 int64_t pixels) const {
  const float* table = values_.data() + (values_.size() == 256 ? 0 : channel * 256);
  for (int64_t i = 0; i < pixels; ++i) to[i] = table[from[i]];
}

Tensor to_float(const Tensor& images, const ToFloat& how) {
  if (images.dtype() != DType::u8)
    throw DTypeError(fmt::format("to_float: images are {}; it takes u8", images.dtype()));
  if (images.dim() < 2)
    throw ShapeError(
        fmt::format("to_float: images have shape {}; it takes (N, C, …)", images.shape()));
  const Tensor source = on_host(images);
  const int64_t count = images.size(0), channels = images.size(1);
  const PixelTable table(how, channels);
  HostTensor result = make_host_tensor(images.shape(), DType::f32);
  if (images.numel() == 0) return result.tensor;
  const int64_t pixels = images.numel() / count;
  auto* from = static_cast<const uint8_t*>(host_values(source));
  auto* to = static_cast<float*>(result.values);
  for (int64_t i = 0; i < count; ++i)
    table.convert(from + i * pixels, to + i * pixels, pixels / channels);
  return result.tensor;
}

}  // namespace tenon::data
