// Convolution, which does not flip the kernel (cross-correlation), as in PyTorch, and its
// transpose. All tensors of a call have one floating dtype. Every function throws a ShapeError or
// DTypeError for tensors that do not fit, and a ValueError for options outside their range.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include <tenon/core/pair.h>
#include <tenon/core/tensor.h>

namespace tenon {

namespace detail {
// Returns the word as a constant. Throws a ValueError unless it is "same" or "valid".
TENON_API const char* padding_word(std::string_view word);
}  // namespace detail

// What a convolution adds on each side of its input: so many elements, none for "valid", or for
// "same" as many as give the result the size of the input. An odd number of them has one more
// behind than in front. "same" needs a stride of 1.
template <class Size>
struct ConvPadding : Size {
  const char* word = nullptr;  // "same" or "valid", unless it was given in numbers

  constexpr ConvPadding() = default;
  using Size::Size;
  constexpr ConvPadding(const Size& size) : Size(size) {}
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  ConvPadding(const Text& text) : Size(0), word(detail::padding_word(text)) {}
};

template <class Size>
struct ConvOptions {
  Size stride = 1;                // distance between neighbouring windows, at least 1
  ConvPadding<Size> padding = 0;  // on each side, at least 0, or "same" or "valid"
  Size dilation = 1;              // distance between the kernel's elements, at least 1
  int64_t groups = 1;             // the channels are convolved in this many separate groups
  // What the padding is: "zeros", or what pad gives with mode "reflect", "replicate" or "circular".
  std::string padding_mode = "zeros";
};
using Conv1dOptions = ConvOptions<Single>;
using Conv2dOptions = ConvOptions<Pair>;
using Conv3dOptions = ConvOptions<Triple>;

// Convolves x (n, c, l) or (c, l) with a weight (o, c / groups, k), adds a bias (o) unless it is
// undefined, and returns shape (n, o, l') or (o, l'), where
// l' = (l + 2 padding - dilation (k - 1) - 1) / stride + 1, rounded down.
TENON_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor(),
                        const Conv1dOptions& options = {});
// The stride, and the padding, as PyTorch has them behind the bias.
template <std::integral S>
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, S stride,
              const ConvPadding<Single>& padding = 0) {
  return conv1d(x, weight, bias, {.stride = stride, .padding = padding});
}

// Convolves x (n, c, h, w) or (c, h, w) with a weight (o, c / groups, kh, kw), adds a bias (o)
// unless it is undefined, and returns shape (n, o, h', w') or (o, h', w'), where h' = (h + 2
// padding - dilation (kh - 1) - 1) / stride + 1, and w' likewise.
TENON_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor(),
                        const Conv2dOptions& options = {});
template <std::integral S>
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, S stride,
              const ConvPadding<Pair>& padding = 0) {
  return conv2d(x, weight, bias, {.stride = stride, .padding = padding});
}

// Convolves x (n, c, d, h, w) or (c, d, h, w) with a weight (o, c / groups, kd, kh, kw), adds a
// bias (o) unless it is undefined, and returns shape (n, o, d', h', w') or (o, d', h', w') with
// sizes as those of conv2d. It holds a copy of x for each of the kd planes that overlap.
TENON_API Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor(),
                        const Conv3dOptions& options = {});
template <std::integral S>
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, S stride,
              const ConvPadding<Triple>& padding = 0) {
  return conv3d(x, weight, bias, {.stride = stride, .padding = padding});
}

template <class Size>
struct ConvTransposeOptions {
  Size stride = 1;          // distance between neighbouring windows, at least 1
  Size padding = 0;         // what is cut off on each side, at least 0
  Size output_padding = 0;  // how much is cut off less behind; below the stride or the dilation
  int64_t groups = 1;       // the channels are convolved in this many separate groups
  Size dilation = 1;        // distance between the kernel's elements, at least 1
};
using ConvTranspose1dOptions = ConvTransposeOptions<Single>;
using ConvTranspose2dOptions = ConvTransposeOptions<Pair>;
using ConvTranspose3dOptions = ConvTransposeOptions<Triple>;

// The gradient of conv1d by its input as a function: each element of x (n, c, l) or (c, l) adds its
// multiple of a weight (c, o / groups, k) to the result, to which a bias (o) is added unless it is
// undefined. Returns shape (n, o, l') or (o, l'), where
// l' = (l - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1.
TENON_API Tensor conv_transpose1d(const Tensor& x, const Tensor& weight,
                                  const Tensor& bias = Tensor(),
                                  const ConvTranspose1dOptions& options = {});

// The same for x (n, c, h, w) or (c, h, w) and a weight (c, o / groups, kh, kw).
TENON_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight,
                                  const Tensor& bias = Tensor(),
                                  const ConvTranspose2dOptions& options = {});

// The same for x (n, c, d, h, w) or (c, d, h, w) and a weight (c, o / groups, kd, kh, kw).
TENON_API Tensor conv_transpose3d(const Tensor& x, const Tensor& weight,
                                  const Tensor& bias = Tensor(),
                                  const ConvTranspose3dOptions& options = {});

}  // namespace tenon
