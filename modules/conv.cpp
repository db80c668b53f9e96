#include <algorithm>
#include <cmath>
#include <type_traits>

#include <tenon/core/format.h>
#include <tenon/modules/conv.h>
#include <tenon/modules/init.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

namespace {

template <class Options>
constexpr bool is_transposed = requires(const Options& o) { o.output_padding; };

void require_option(bool ok, const char* layer, const std::string& what) {
  if (!ok) throw ValueError(fmt::format("{}: {}", layer, what));
}

// What the two kinds of options do not share.
template <class Size>
void check_own(const char* layer, const ConvOptions<Size>& o) {
  for (const char* mode : {"zeros", "reflect", "replicate", "circular"})
    if (o.padding_mode == mode) {
      require_option(
          !o.padding.word || std::string_view(o.padding.word) != "same" || o.stride.is(1), layer,
          fmt::format("padding is \"same\", which needs a stride of 1, found {}",
                      o.stride.shape()));
      return;
    }
  require_option(false, layer,
                 fmt::format("padding_mode is \"{}\"; it has to be \"zeros\", \"reflect\", "
                             "\"replicate\" or \"circular\"",
                             o.padding_mode));
}
template <class Size>
void check_own(const char* layer, const ConvTransposeOptions<Size>& o) {
  require_size(o.output_padding, 0, layer, "output_padding");
  const Shape more = o.output_padding.shape(), stride = o.stride.shape(),
              dilation = o.dilation.shape();
  for (size_t d = 0; d < more.size(); ++d)
    require_option(more[d] < std::max(stride[d], dilation[d]), layer,
                   fmt::format("output_padding is {}; it has to be smaller than the stride {} or "
                               "the dilation {}",
                               more, stride, dilation));
}

template <class Size>
std::string padding_text(const ConvOptions<Size>& o) {
  return o.padding.word ? o.padding.word : o.padding.is(0) ? "" : o.padding.shape().str();
}
template <class Size>
std::string padding_text(const ConvTransposeOptions<Size>& o) {
  return o.padding.is(0) ? "" : o.padding.shape().str();
}

Single size_from(const Shape& s, const Single&) { return s[0]; }
Pair size_from(const Shape& s, const Pair&) { return {s[0], s[1]}; }
Triple size_from(const Shape& s, const Triple&) { return {s[0], s[1], s[2]}; }

// The options with the output_padding that gives an input of shape x a result of this size.
template <class Size>
ConvTransposeOptions<Size> for_output(const char* layer, const Shape& x, const Size& kernel_size,
                                      ConvTransposeOptions<Size> o, const Shape& output_size) {
  __extension__ using Wide = __int128;
  if (output_size.empty()) return o;
  const Shape kernel = kernel_size.shape(), stride = o.stride.shape(), padding = o.padding.shape(),
              dilation = o.dilation.shape();
  const size_t dims = kernel.size(), behind = output_size.size() - dims;
  if (x.size() != dims + 1 && x.size() != dims + 2) return o;  // which the convolution refuses
  require_option(output_size.size() == dims || output_size.size() == x.size(), layer,
                 fmt::format("output_size {} has to have {} sizes, or {} with those of batch and "
                             "channels",
                             output_size, dims, x.size()));
  Shape more = kernel;
  for (size_t d = 0; d < dims; ++d) {
    const Wide least = Wide{x[x.size() - dims + d] - 1} * stride[d] - 2 * Wide{padding[d]} +
                       Wide{dilation[d]} * (kernel[d] - 1) + 1,
               rest = output_size[behind + d] - least;
    require_option(rest >= 0 && rest < stride[d], layer,
                   fmt::format("output_size {} cannot be of an input of shape {}: dimension {} has "
                               "to be from {} to {}",
                               output_size, x, d, static_cast<int64_t>(least),
                               static_cast<int64_t>(least + stride[d] - 1)));
    more[d] = static_cast<int64_t>(rest);
  }
  o.output_padding = size_from(more, kernel_size);
  return o;
}

}  // namespace

template <class Size, class Options>
ConvState<Size, Options>::ConvState(const char* layer, int64_t in, int64_t out, const Size& kernel,
                                    const Options& o, const WeightOptions& weights)
    : in_channels(in), out_channels(out), kernel_size(kernel), options(o) {
  require(o.groups > 0, layer, "groups", static_cast<double>(o.groups), "at least 1");
  require(in >= 0 && in % o.groups == 0, layer, "in_channels", static_cast<double>(in),
          in < 0 ? "at least 0" : "a multiple of groups");
  require(out >= 0 && out % o.groups == 0, layer, "out_channels", static_cast<double>(out),
          out < 0 ? "at least 0" : "a multiple of groups");
  require_size(kernel, 1, layer, "kernel_size");
  require_size(o.stride, 1, layer, "stride");
  require_size(o.padding, 0, layer, "padding");
  require_size(o.dilation, 1, layer, "dilation");
  check_own(layer, o);
  Shape shape = is_transposed<Options> ? Shape{in, out / o.groups} : Shape{out, in / o.groups};
  double fan_in = static_cast<double>(shape[1]);
  for (const int64_t size : kernel.shape()) {
    shape.push_back(size);
    fan_in *= static_cast<double>(size);
  }
  const double bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
  weight = Parameter(init::uniform_(empty(shape, weights.tensor), -bound, bound));
  if (weights.bias) bias = Parameter(init::uniform_(empty({out}, weights.tensor), -bound, bound));
}

template <class Size, class Options>
void ConvState<Size, Options>::visit(FieldVisitor& v) {
  v("weight", weight)("bias", bias);
}

template <class Size, class Options>
std::string ConvState<Size, Options>::repr_text() const {
  std::string text = fmt::format("{}, {}, kernel_size={}, stride={}", in_channels, out_channels,
                                 kernel_size.shape(), options.stride.shape());
  if (const std::string padding = padding_text(options); !padding.empty())
    text += ", padding=" + padding;
  if (!options.dilation.is(1)) text += fmt::format(", dilation={}", options.dilation.shape());
  if constexpr (is_transposed<Options>) {
    if (!options.output_padding.is(0))
      text += fmt::format(", output_padding={}", options.output_padding.shape());
  }
  if (options.groups != 1) text += fmt::format(", groups={}", options.groups);
  if (!bias.defined()) text += ", bias=False";
  if constexpr (!is_transposed<Options>) {
    if (options.padding_mode != "zeros") text += ", padding_mode=" + options.padding_mode;
  }
  return text;
}

template struct ConvState<Single, Conv1dOptions>;
template struct ConvState<Pair, Conv2dOptions>;
template struct ConvState<Triple, Conv3dOptions>;
template struct ConvState<Single, ConvTranspose1dOptions>;
template struct ConvState<Pair, ConvTranspose2dOptions>;
template struct ConvState<Triple, ConvTranspose3dOptions>;

Tensor ConvTranspose1d::forward(const Tensor& x, const Shape& output_size) const {
  return conv_transpose1d(
      x, weight, bias, for_output("ConvTranspose1d", x.shape(), kernel_size, options, output_size));
}
Tensor ConvTranspose2d::forward(const Tensor& x, const Shape& output_size) const {
  return conv_transpose2d(
      x, weight, bias, for_output("ConvTranspose2d", x.shape(), kernel_size, options, output_size));
}
Tensor ConvTranspose3d::forward(const Tensor& x, const Shape& output_size) const {
  return conv_transpose3d(
      x, weight, bias, for_output("ConvTranspose3d", x.shape(), kernel_size, options, output_size));
}

}  // namespace tenon::nn
