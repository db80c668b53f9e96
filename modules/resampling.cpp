#include <tenon/core/format.h>
#include <tenon/modules/repr.h>
#include <tenon/modules/resampling.h>

namespace tenon::nn {

namespace {

int64_t positive(int64_t number, const char* layer, const char* what) {
  require(number > 0, layer, what, static_cast<double>(number), "positive");
  return number;
}

}  // namespace

Upsample::Upsample(const InterpolateOptions& o) : options(o) {
  if (o.size.empty() == o.scale_factor.empty())
    throw ValueError(fmt::format("Upsample: needs either size or scale_factor, found {}",
                                 o.size.empty() ? "neither" : "both"));
  for (int64_t size : o.size) positive(size, "Upsample", "size");
  for (double factor : o.scale_factor)
    require(factor > 0, "Upsample", "scale_factor", factor, "positive");
}
Tensor Upsample::forward(const Tensor& x) const { return interpolate(x, options); }
std::string Upsample::extra_repr() const {
  std::string given;
  if (options.size.empty()) {
    for (double factor : options.scale_factor) given += (given.empty() ? "" : ", ") + repr(factor);
    given = "scale_factor=" + (options.scale_factor.size() == 1 ? given : "(" + given + ")");
  } else {
    given = "size=" +
            (options.size.size() == 1 ? fmt::format("{}", options.size[0]) : options.size.str());
  }
  return fmt::format("{}, mode='{}'", given, options.mode);
}

PixelShuffle::PixelShuffle(int64_t factor)
    : upscale_factor(positive(factor, "PixelShuffle", "upscale_factor")) {}
Tensor PixelShuffle::forward(const Tensor& x) const { return pixel_shuffle(x, upscale_factor); }
std::string PixelShuffle::extra_repr() const {
  return fmt::format("upscale_factor={}", upscale_factor);
}

PixelUnshuffle::PixelUnshuffle(int64_t factor)
    : downscale_factor(positive(factor, "PixelUnshuffle", "downscale_factor")) {}
Tensor PixelUnshuffle::forward(const Tensor& x) const {
  return pixel_unshuffle(x, downscale_factor);
}
std::string PixelUnshuffle::extra_repr() const {
  return fmt::format("downscale_factor={}", downscale_factor);
}

ChannelShuffle::ChannelShuffle(int64_t count)
    : groups(positive(count, "ChannelShuffle", "groups")) {}
Tensor ChannelShuffle::forward(const Tensor& x) const { return channel_shuffle(x, groups); }
std::string ChannelShuffle::extra_repr() const { return fmt::format("groups={}", groups); }

}  // namespace tenon::nn
