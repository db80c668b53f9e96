// Convolution as a graph of cuDNN.
#pragma once

#include <cstdint>

#include <tenon/plugins/sdk/requests/convolution.h>

#include "vendor/dnn.h"

namespace tenon::cuda {

using sdk::ConvKind;
using ConvShape = sdk::ConvRequest;

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

// Throws TN_CODE_UNSUPPORTED where cuDNN has no engine.
DnnPlan plan_conv_dnn(const DnnTarget& target, ConvKind kind, const ConvShape& shape, bool bias,
                      int64_t alignment);

}  // namespace tenon::cuda
