// Layers that change the resolution of lines (N, C, L), images (N, C, H, W) and volumes
// (N, C, D, H, W), or the order of their channels. The result has the dtype of the input.
// Constructors throw a ValueError for an option outside its range, and calls throw a ShapeError for
// a shape that does not fit.
#pragma once

#include <tenon/core/ops/resampling.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

// Returns interpolate(x, options): x of shape (N, C, …) with the sizes behind the channels that
// options.size gives, or with their products with options.scale_factor, rounded down. The
// constructor throws a ValueError unless exactly one of the two is given, and for one that is not
// positive; calls throw the errors of interpolate for all other options.
struct TENON_API Upsample final : Module<Upsample> {
  Upsample(const InterpolateOptions& options);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  InterpolateOptions options;
};

// Returns x of shape (…, C r^2, H, W) with its channels as pixels: shape (…, C, H r, W r), where r
// is upscale_factor, which is at least 1 (Shi et al., arXiv:1609.05158).
struct TENON_API PixelShuffle final : Module<PixelShuffle> {
  PixelShuffle(int64_t upscale_factor);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  int64_t upscale_factor;
};

// Returns x of shape (…, C, H r, W r) with its pixels as channels: shape (…, C r^2, H, W), where r
// is downscale_factor, which is at least 1.
struct TENON_API PixelUnshuffle final : Module<PixelUnshuffle> {
  PixelUnshuffle(int64_t downscale_factor);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  int64_t downscale_factor;
};

// Returns x of shape (N, C, …) with the channels of `groups` groups mixed, as channel_shuffle does,
// in the same shape. `groups` is at least 1 and divides C.
struct TENON_API ChannelShuffle final : Module<ChannelShuffle> {
  ChannelShuffle(int64_t groups);
  Tensor forward(const Tensor& x) const;
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  int64_t groups;
};

}  // namespace tenon::nn
