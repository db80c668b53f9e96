// Convolution as a graph of cuDNN.
#pragma once

#include <cstdint>

#include "vendor/dnn.h"

namespace tenon::cuda {

enum class ConvKind { forward, input_grad, weight_grad };

// x (n, c, h, w), weight (o, c / groups, kh, kw), y (n, o, oh, ow): the same three tensors
// whichever of them is computed.
struct ConvShape {
  tn_dtype dtype;
  int64_t n, c, h, w, o, kh, kw, oh, ow, groups;
  int64_t stride[2], padding[2], dilation[2];
};

// Ids of the tensors in the plan, in the order in which execute takes their pointers.
enum ConvTensor : int64_t {
  kConvX = 1,
  kConvWeight,
  kConvY,
  kConvBias,
  kConvSum
};  // the last is in no memory

// The operations alone. `alignment` in bytes of every tensor's first element; with `bias` there is
// a fourth tensor.
DnnDescriptor conv_graph(const DnnTarget& target, ConvKind kind, const ConvShape& shape, bool bias,
                         int64_t alignment);

// `fast` lets f32 be multiplied
// as TF32 and by methods that trade accuracy for speed. Throws TN_CODE_UNSUPPORTED where cuDNN has
// no engine.
DnnPlan plan_conv_dnn(const DnnTarget& target, ConvKind kind, const ConvShape& shape, bool bias,
                      bool fast, int64_t alignment);

}  // namespace tenon::cuda
