// What the three convolutions share: shapes as oneDNN wants them, copies between the memory of
// tensors and the layouts that its kernels read, and how the work is cut.
//
// oneDNN's fast kernels read and write channels in blocks of a vector. Reordering a tensor of
// feature maps takes one or two hundredths of a 3 x 3 convolution where it is done image by image,
// in the cache of the core that computes.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include <tenon/plugins/sdk/requests/convolution.h>

#include "runtime/common.h"

namespace tenon::onednn {

using Dims = std::vector<int64_t>;

// `h`, `w` and the stride may be those of the part of the image that is read, not of the request.
struct Conv : sdk::ConvRequest {
  dnnl_data_type_t type;
  int64_t element;  // bytes
  Code code;
  bool empty = false;                         // a tensor has no elements
  Dims x_strides, y_strides, weight_strides;  // row-major, or of channels last

  // Refuses what is left to the base.
  explicit Conv(const Request& request);

  int64_t taps() const { return kh * kw; }
  int64_t weight_numel() const { return o * cg * taps(); }
  double work() const {
    return double(n) * double(o) * double(oh) * double(ow) * double(cg) * double(taps());
  }
  Dims x_shape(int64_t images, int64_t channels) const { return {images, channels, h, w}; }
  Dims y_shape(int64_t images, int64_t channels) const { return {images, channels, oh, ow}; }
  // (out, in, kh, kw), or one more dimension in front for groups.
  Dims weight_shape(int64_t out, int64_t in) const {
    return groups == 1 ? Dims{out, in, kh, kw} : Dims{groups, out / groups, in, kh, kw};
  }
  // Some output channels, or some input channels, of a weight; of `element` where that is not the
  // type of all tensors.
  Desc weight_slice(int64_t out, int64_t in) const { return weight_slice(out, in, type); }
  Desc weight_slice(int64_t out, int64_t in, dnnl_data_type_t element) const;
  // Some channels of images.
  Desc x_slice(int64_t images, int64_t channels) const;
  Desc y_slice(int64_t images, int64_t channels) const;

  // The code for `images` images and a slice of the channels that are computed.
  Primitive forward(int64_t images, int64_t out) const;
  Primitive backward_input(int64_t images, int64_t in) const;
  // The gradient of the weight may be of another type than the operands. `on_rows`: of row-major
  // operands as they are.
  Primitive backward_weight(int64_t images, int64_t out, dnnl_data_type_t result,
                            bool on_rows) const;

  // How many of a job's images should be computed forwards at a time at least, for `out` channels.
  int64_t least_at_once(int64_t images, int64_t out) const;

  // By how much blocks of a vector's channels make the work larger.
  double padding_of_blocks() const;
  // Estimated nanoseconds on one core; `padded` multiplies the work by what blocks of channels add,
  // and each byte of the weight takes `weight_byte_ns` to be reordered.
  uint64_t cost_ns(double padded, double weight_byte_ns) const;

 private:
  // Multiply-adds a nanosecond, with AVX-512, of the convolution and of the gradient of its input.
  double rate_of_maps() const;
  // Whether in bf16 the core is faster, which computes in f32 what nobody takes.
  bool slower_than_f32() const;
  std::array<int64_t, 2> strides() const { return {sh, sw}; }
  std::array<int64_t, 2> dilations() const { return {dh - 1, dw - 1}; }
  std::array<int64_t, 2> padding() const { return {ph, pw}; }
};

// Multiply-adds below which waking another thread costs more than it saves.
inline constexpr double kConvSerialWork = 1 << 19;

// Images and channels that one job computes.
struct ConvPart {
  int64_t image, images, channel, channels;
};
// Cuts `images` into at most `most` equal runs and calls f(first, count).
template <class F>
void for_runs(int64_t size, int64_t most, int64_t unit, F&& f) {
  const int64_t each = ceil_div(ceil_div(size, most), unit) * unit;
  for (int64_t at = 0; at < size; at += each) f(at, std::min(each, size - at));
}

// A tensor as a step of a job reads it: where it is, or, if the primitive wants another layout, in
// scratch memory to which `copy` brings it.
struct Arranged {
  Argument argument;
  std::vector<Step> copy;
};
// The input `name` of `primitive`, which lies at `from`.
Arranged arranged_input(Work& work, const Primitive& primitive, int name, const Argument& from);
// The result: `copy` brings it from scratch memory to that at `to`.
Arranged arranged_output(Work& work, const Primitive& primitive, int name, const Argument& to);

tn_plan* make_backward_weight(const Conv& conv);

}  // namespace tenon::onednn
