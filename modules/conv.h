// The layers of convolutions and of transposed convolutions. Each has three constructors. The first
// takes the options of the convolution and, separately, what the layer learns:
//   nn::Conv2d(3, 64, 3, {.stride = 2, .padding = 1})
//   nn::Conv2d(3, 64, 3, {.padding = "same"}, {.bias = false})
//   nn::ConvTranspose2d(64, 3, 4, {.stride = 2, .padding = 1})
// The second takes only what the layer learns:
//   nn::Conv2d(3, 64, 3, {.bias = false})
// The third takes stride and padding directly behind the kernel, as in PyTorch, and for transposed
// convolutions the output_padding too:
//   nn::Conv2d(3, 64, 3, 2, 1, {.bias = false})
// Constructors throw a ValueError for an option outside its range and for channels that are
// negative or not a multiple of `groups`; calls throw a ShapeError or DTypeError for an input that
// does not fit. The input and the weight have one dtype, which is that of the result.
#pragma once

#include <concepts>
#include <string>

#include <tenon/core/ops/convolution.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

// The part that all layers have. Weight and bias (out_channels) start uniform in (-k, k), where
// k = 1 / sqrt(weight.size(1) * kernel elements).
template <class Size, class Options>
struct TENON_API ConvState {
  // Checks the options and makes the parameters; errors begin with `layer`.
  ConvState(const char* layer, int64_t in_channels, int64_t out_channels, const Size& kernel_size,
            const Options& options, const WeightOptions& weights);

  int64_t in_channels, out_channels;
  Size kernel_size;
  Options options;
  Parameter weight, bias;  // the bias is undefined if the layer has none

 protected:
  void visit(FieldVisitor& v);
  std::string repr_text() const;
};

extern template struct TENON_API ConvState<Single, Conv1dOptions>;
extern template struct TENON_API ConvState<Pair, Conv2dOptions>;
extern template struct TENON_API ConvState<Triple, Conv3dOptions>;
extern template struct TENON_API ConvState<Single, ConvTranspose1dOptions>;
extern template struct TENON_API ConvState<Pair, ConvTranspose2dOptions>;
extern template struct TENON_API ConvState<Triple, ConvTranspose3dOptions>;

// ---- convolutions: the weight has shape (out_channels, in_channels / groups, kernel…) ----

// Convolves sequences of shape (N, in_channels, L) or (in_channels, L) and returns shape
// (N, out_channels, L') or (out_channels, L'), where
// L' = (L + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down.
struct TENON_API Conv1d final : Module<Conv1d>, ConvState<Single, Conv1dOptions> {
  // Makes the layer with these options.
  Conv1d(int64_t in_channels, int64_t out_channels, Single kernel_size,
         const Conv1dOptions& options = {}, const WeightOptions& weights = {})
      : ConvState("Conv1d", in_channels, out_channels, kernel_size, options, weights) {}
  // Makes the layer with the default options of the convolution.
  Conv1d(int64_t in_channels, int64_t out_channels, Single kernel_size,
         const WeightOptions& weights)
      : Conv1d(in_channels, out_channels, kernel_size, {}, weights) {}
  // Makes the layer with a stride and a padding.
  template <std::integral S>
  Conv1d(int64_t in_channels, int64_t out_channels, Single kernel_size, S stride,
         const ConvPadding<Single>& padding = 0, const WeightOptions& weights = {})
      : Conv1d(in_channels, out_channels, kernel_size, {.stride = stride, .padding = padding},
               weights) {}
  Tensor forward(const Tensor& x) const { return conv1d(x, weight, bias, options); }
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Convolves images of shape (N, in_channels, H, W) or (in_channels, H, W) and returns shape
// (N, out_channels, H', W') or (out_channels, H', W'), with sizes as those of Conv1d.
struct TENON_API Conv2d final : Module<Conv2d>, ConvState<Pair, Conv2dOptions> {
  // Makes the layer with these options.
  Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size,
         const Conv2dOptions& options = {}, const WeightOptions& weights = {})
      : ConvState("Conv2d", in_channels, out_channels, kernel_size, options, weights) {}
  // Makes the layer with the default options of the convolution.
  Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size, const WeightOptions& weights)
      : Conv2d(in_channels, out_channels, kernel_size, {}, weights) {}
  // Makes the layer with a stride and a padding.
  template <std::integral S>
  Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size, S stride,
         const ConvPadding<Pair>& padding = 0, const WeightOptions& weights = {})
      : Conv2d(in_channels, out_channels, kernel_size, {.stride = stride, .padding = padding},
               weights) {}
  Tensor forward(const Tensor& x) const { return conv2d(x, weight, bias, options); }
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Convolves volumes of shape (N, in_channels, D, H, W) or (in_channels, D, H, W) and returns shape
// (N, out_channels, D', H', W') or (out_channels, D', H', W'), with sizes as those of Conv1d.
struct TENON_API Conv3d final : Module<Conv3d>, ConvState<Triple, Conv3dOptions> {
  // Makes the layer with these options.
  Conv3d(int64_t in_channels, int64_t out_channels, Triple kernel_size,
         const Conv3dOptions& options = {}, const WeightOptions& weights = {})
      : ConvState("Conv3d", in_channels, out_channels, kernel_size, options, weights) {}
  // Makes the layer with the default options of the convolution.
  Conv3d(int64_t in_channels, int64_t out_channels, Triple kernel_size,
         const WeightOptions& weights)
      : Conv3d(in_channels, out_channels, kernel_size, {}, weights) {}
  // Makes the layer with a stride and a padding.
  template <std::integral S>
  Conv3d(int64_t in_channels, int64_t out_channels, Triple kernel_size, S stride,
         const ConvPadding<Triple>& padding = 0, const WeightOptions& weights = {})
      : Conv3d(in_channels, out_channels, kernel_size, {.stride = stride, .padding = padding},
               weights) {}
  Tensor forward(const Tensor& x) const { return conv3d(x, weight, bias, options); }
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// ---- transposed: the weight has shape (in_channels, out_channels / groups, kernel…) ----

// Where the stride is larger than 1, results of several sizes belong to one input. `output_size` in
// a call chooses among them, instead of options.output_padding: it has the sizes behind the
// channels, or those of all dimensions. A call throws a ValueError for a size that is not possible.

// Maps sequences of shape (N, in_channels, L) or (in_channels, L) to (N, out_channels, L') or
// (out_channels, L'), where
// L' = (L - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1.
struct TENON_API ConvTranspose1d final : Module<ConvTranspose1d>,
                                         ConvState<Single, ConvTranspose1dOptions> {
  // Makes the layer with these options.
  ConvTranspose1d(int64_t in_channels, int64_t out_channels, Single kernel_size,
                  const ConvTranspose1dOptions& options = {}, const WeightOptions& weights = {})
      : ConvState("ConvTranspose1d", in_channels, out_channels, kernel_size, options, weights) {}
  // Makes the layer with the default options of the convolution.
  ConvTranspose1d(int64_t in_channels, int64_t out_channels, Single kernel_size,
                  const WeightOptions& weights)
      : ConvTranspose1d(in_channels, out_channels, kernel_size, {}, weights) {}
  // Makes the layer with a stride, a padding and an output_padding.
  template <std::integral S>
  ConvTranspose1d(int64_t in_channels, int64_t out_channels, Single kernel_size, S stride,
                  Single padding = 0, Single output_padding = 0, const WeightOptions& weights = {})
      : ConvTranspose1d(in_channels, out_channels, kernel_size,
                        {.stride = stride, .padding = padding, .output_padding = output_padding},
                        weights) {}
  Tensor forward(const Tensor& x, const Shape& output_size = {}) const;
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Maps images of shape (N, in_channels, H, W) or (in_channels, H, W) to (N, out_channels, H', W')
// or (out_channels, H', W'), with sizes as those of ConvTranspose1d.
struct TENON_API ConvTranspose2d final : Module<ConvTranspose2d>,
                                         ConvState<Pair, ConvTranspose2dOptions> {
  // Makes the layer with these options.
  ConvTranspose2d(int64_t in_channels, int64_t out_channels, Pair kernel_size,
                  const ConvTranspose2dOptions& options = {}, const WeightOptions& weights = {})
      : ConvState("ConvTranspose2d", in_channels, out_channels, kernel_size, options, weights) {}
  // Makes the layer with the default options of the convolution.
  ConvTranspose2d(int64_t in_channels, int64_t out_channels, Pair kernel_size,
                  const WeightOptions& weights)
      : ConvTranspose2d(in_channels, out_channels, kernel_size, {}, weights) {}
  // Makes the layer with a stride, a padding and an output_padding.
  template <std::integral S>
  ConvTranspose2d(int64_t in_channels, int64_t out_channels, Pair kernel_size, S stride,
                  Pair padding = 0, Pair output_padding = 0, const WeightOptions& weights = {})
      : ConvTranspose2d(in_channels, out_channels, kernel_size,
                        {.stride = stride, .padding = padding, .output_padding = output_padding},
                        weights) {}
  Tensor forward(const Tensor& x, const Shape& output_size = {}) const;
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Maps volumes of shape (N, in_channels, D, H, W) or (in_channels, D, H, W) to (N, out_channels,
// D', H', W') or (out_channels, D', H', W'), with sizes as those of ConvTranspose1d.
struct TENON_API ConvTranspose3d final : Module<ConvTranspose3d>,
                                         ConvState<Triple, ConvTranspose3dOptions> {
  // Makes the layer with these options.
  ConvTranspose3d(int64_t in_channels, int64_t out_channels, Triple kernel_size,
                  const ConvTranspose3dOptions& options = {}, const WeightOptions& weights = {})
      : ConvState("ConvTranspose3d", in_channels, out_channels, kernel_size, options, weights) {}
  // Makes the layer with the default options of the convolution.
  ConvTranspose3d(int64_t in_channels, int64_t out_channels, Triple kernel_size,
                  const WeightOptions& weights)
      : ConvTranspose3d(in_channels, out_channels, kernel_size, {}, weights) {}
  // Makes the layer with a stride, a padding and an output_padding.
  template <std::integral S>
  ConvTranspose3d(int64_t in_channels, int64_t out_channels, Triple kernel_size, S stride,
                  Triple padding = 0, Triple output_padding = 0, const WeightOptions& weights = {})
      : ConvTranspose3d(in_channels, out_channels, kernel_size,
                        {.stride = stride, .padding = padding, .output_padding = output_padding},
                        weights) {}
  Tensor forward(const Tensor& x, const Shape& output_size = {}) const;
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

}  // namespace tenon::nn
