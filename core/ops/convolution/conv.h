// What the convolutions over one, two and three dimensions share: their checks, and the operators
// of images by which all of them are computed.
#pragma once

#include <tenon/core/dispatch/op.h>
#include <tenon/core/ops/convolution.h>

namespace tenon {

// The windows of a convolution: stride, padding and dilation have one number for each of their 1 to
// 3 dimensions.
struct ConvWindows {
  Shape stride, padding, dilation;
  int64_t groups;

  // Whether a kernel of this weight's shape, over volumes, extends only along the depth and moves
  // over all columns. Then a volume is treated as an image of depth x columns.
  bool along_depth(const Shape& weight) const {
    return weight[3] == 1 && weight[4] == 1 && stride[1] == 1 && stride[2] == 1 &&
           padding[1] == 0 && padding[2] == 0;
  }
  // Returns the windows for such an image.
  ConvWindows of_depth() const {
    return {{stride[0], 1}, {padding[0], 0}, {dilation[0], 1}, groups};
  }
  // The attributes of conv2d for tensors of this dtype; there must be two dimensions.
  Attrs attrs(DType dtype) const;
};

// Checks dimensions and dtypes of the tensors of a convolution over windows of `dims` dimensions.
// Returns whether x has a batch dimension.
bool check_conv_tensors(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        size_t dims, bool transposed = false);

// Throws a ShapeError unless the bias has this many elements or is undefined.
void check_conv_bias(const char* op, const Tensor& bias, int64_t channels, const Shape& weight);

// Returns the shape of a convolution's result. Throws the ShapeError "<op>: …" if input (with a
// batch dimension) and weight do not fit.
Shape convolved_shape(const char* op, const Shape& x, const Shape& weight,
                      const ConvWindows& windows);

// A convolution's arguments, brought into one form.
struct ConvArguments {
  template <class Size>
  ConvArguments(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                const ConvOptions<Size>& o)
      : ConvArguments(op, x, weight, bias, o.stride.shape(), o.padding.shape(), o.padding.word,
                      o.dilation.shape(), o.groups, o.padding_mode) {}
  ConvArguments(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                const Shape& stride, const Shape& padding, const char* padding_word,
                const Shape& dilation, int64_t groups, const std::string& padding_mode);

  Tensor x;  // with a batch dimension, and padded where that is more than zeros on each side
  ConvWindows windows;
  bool batched;  // whether the input had a batch dimension
  // The result in the form of the input.
  Tensor result(const Tensor& y) const;
};

// The operators of images. Attributes are those of conv2d; the bias may be undefined.
Tensor run_conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Attrs& attrs);
Tensor run_conv2d_backward_input(const Tensor& gradient, const Tensor& weight, const Attrs& attrs,
                                 const Shape& shape);

}  // namespace tenon
