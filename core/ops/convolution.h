// Convolution, which does not flip the kernel (cross-correlation), as in PyTorch, and its
// transpose. All tensors of a call have one floating dtype, which the result has, too; otherwise it
// is a DTypeError. Every function throws a ShapeError for tensors that do not fit, and a ValueError
// for options outside their range or for an undefined x or weight.
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

// What a convolution adds on each side of its input: the given number of elements, none for
// "valid", or for "same" as many as give the result the size of the input. Where "same" adds an odd
// number, one more goes behind the input than in front of it. "same" needs a stride of 1; with
// another one the convolution throws a ValueError.
template <class Size>
struct ConvPadding : Size {
  const char* word = nullptr;  // "same" or "valid", unless it was given in numbers

  // Makes a padding of 0, of one number for all dimensions, or of a number for each of them.
  constexpr ConvPadding() = default;
  using Size::Size;
  constexpr ConvPadding(const Size& size) : Size(size) {}
  // Makes a padding of the word "same" or "valid". Throws a ValueError for any other word.
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  ConvPadding(const Text& text) : Size(0), word(detail::padding_word(text)) {}
};

// The options of conv1d, conv2d and conv3d. A size is one number for all dimensions, or one for
// each of them; numbers above 2^31 - 1 are a ValueError.
template <class Size>
struct ConvOptions {
  Size stride = 1;                // the distance between neighboring windows, at least 1
  ConvPadding<Size> padding = 0;  // what is added on each side, at least 0, or "same" or "valid"
  Size dilation = 1;              // the distance between the kernel's elements, at least 1
  int64_t groups = 1;             // the channels are convolved in this many separate groups
  // What the padding consists of: "zeros", or what pad gives with mode "reflect", "replicate" or
  // "circular", whose errors it then has.
  std::string padding_mode = "zeros";
};
using Conv1dOptions = ConvOptions<Single>;
using Conv2dOptions = ConvOptions<Pair>;
using Conv3dOptions = ConvOptions<Triple>;

// Convolves x (n, c, l) or (c, l) with a weight (o, c / groups, k), adds a bias (o) unless it is
// undefined, and returns shape (n, o, l') or (o, l'), where
// l' = (l + 2 padding - dilation (k - 1) - 1) / stride + 1, rounded down. Throws a ShapeError for
// other shapes, unless groups divides c and o, or if the kernel is larger than the padded input,
// and a DTypeError unless all tensors have one floating dtype.
TENON_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor(),
                        const Conv1dOptions& options = {});
// The same with the stride and the padding behind the bias, as PyTorch has them.
template <std::integral S>
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, S stride,
              const ConvPadding<Single>& padding = 0) {
  return conv1d(x, weight, bias, {.stride = stride, .padding = padding});
}

// Convolves x (n, c, h, w) or (c, h, w) with a weight (o, c / groups, kh, kw), adds a bias (o)
// unless it is undefined, and returns shape (n, o, h', w') or (o, h', w'), where h' = (h + 2
// padding - dilation (kh - 1) - 1) / stride + 1, rounded down, and w' likewise. Dtypes and errors
// are those of conv1d.
TENON_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor(),
                        const Conv2dOptions& options = {});
// The same with the stride and the padding behind the bias, as PyTorch has them.
template <std::integral S>
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, S stride,
              const ConvPadding<Pair>& padding = 0) {
  return conv2d(x, weight, bias, {.stride = stride, .padding = padding});
}

// Convolves x (n, c, d, h, w) or (c, d, h, w) with a weight (o, c / groups, kd, kh, kw), adds a
// bias (o) unless it is undefined, and returns shape (n, o, d', h', w') or (o, d', h', w') with
// sizes as those of conv2d. Dtypes and errors are those of conv1d. Where windows overlap along the
// depth, it needs memory for up to kd copies of x.
TENON_API Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor(),
                        const Conv3dOptions& options = {});
// The same with the stride and the padding behind the bias, as PyTorch has them.
template <std::integral S>
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, S stride,
              const ConvPadding<Triple>& padding = 0) {
  return conv3d(x, weight, bias, {.stride = stride, .padding = padding});
}

// The options of conv_transpose1d, conv_transpose2d and conv_transpose3d, in PyTorch's order. A
// size is one number for all dimensions, or one for each of them.
template <class Size>
struct ConvTransposeOptions {
  Size stride = 1;   // the distance in the result of what neighboring elements add, at least 1
  Size padding = 0;  // how much of the result is cut off on each side, at least 0
  // How many elements the result gets in addition behind its end, at least 0 and smaller than the
  // stride or the dilation.
  Size output_padding = 0;
  int64_t groups = 1;  // the channels are convolved in this many separate groups
  Size dilation = 1;   // the distance between the kernel's elements, at least 1
};
using ConvTranspose1dOptions = ConvTransposeOptions<Single>;
using ConvTranspose2dOptions = ConvTransposeOptions<Pair>;
using ConvTranspose3dOptions = ConvTransposeOptions<Triple>;

// Returns the transposed convolution, which is the gradient of conv1d by its input as a function:
// each element of x (n, c, l) or (c, l) adds its multiple of a weight (c, o / groups, k) to the
// result, to which a bias (o) is added unless it is undefined. The result has shape (n, o, l') or
// (o, l'), where l' = (l - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1. Throws a
// ShapeError for other shapes, unless groups divides c, or if a size of x, the weight or the result
// is less than 1, and a DTypeError unless all tensors have one floating dtype.
TENON_API Tensor conv_transpose1d(const Tensor& x, const Tensor& weight,
                                  const Tensor& bias = Tensor(),
                                  const ConvTranspose1dOptions& options = {});

// The same for x (n, c, h, w) or (c, h, w) and a weight (c, o / groups, kh, kw): returns shape
// (n, o, h', w') or (o, h', w').
TENON_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight,
                                  const Tensor& bias = Tensor(),
                                  const ConvTranspose2dOptions& options = {});

// The same for x (n, c, d, h, w) or (c, d, h, w) and a weight (c, o / groups, kd, kh, kw): returns
// shape (n, o, d', h', w') or (o, d', h', w').
TENON_API Tensor conv_transpose3d(const Tensor& x, const Tensor& weight,
                                  const Tensor& bias = Tensor(),
                                  const ConvTranspose3dOptions& options = {});

}  // namespace tenon
