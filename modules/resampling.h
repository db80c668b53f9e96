// Layers that change the resolution of lines (N, C, L), images (N, C, H, W) and volumes
// (N, C, D, H, W), or the order of their channels. Constructors throw a ValueError for an option
// outside its range, calls a ShapeError for another shape.
#pragma once

#include <tenon/core/ops/resampling.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

// Returns interpolate(x, options).
struct TENON_API Upsample final : Module<Upsample> {
  Upsample(const InterpolateOptions& options);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  InterpolateOptions options;
};

// Returns x (…, C r^2, H, W) with its channels as pixels: shape (…, C, H r, W r), where r is
// upscale_factor.
struct TENON_API PixelShuffle final : Module<PixelShuffle> {
  PixelShuffle(int64_t upscale_factor);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  int64_t upscale_factor;
};

// Returns x (…, C, H r, W r) with its pixels as channels: shape (…, C r^2, H, W), where r is
// downscale_factor.
struct TENON_API PixelUnshuffle final : Module<PixelUnshuffle> {
  PixelUnshuffle(int64_t downscale_factor);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  int64_t downscale_factor;
};

// Returns x (N, C, …) with the channels of `groups` groups mixed, as channel_shuffle does.
struct TENON_API ChannelShuffle final : Module<ChannelShuffle> {
  ChannelShuffle(int64_t groups);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  int64_t groups;
};

}  // namespace tenon::nn
