#include "kernels/convolution/conv_dnn.h"

#include <vector>

namespace tenon::cuda {
namespace {

constexpr int64_t kWorkspaceLimit = int64_t{512} << 20;

constexpr uint32_t note(cudnnBackendNumericalNote_t n) { return 1u << n; }
// They spread a NaN or an infinity beyond the window that holds it, and round more than a plain sum
// does.
constexpr uint32_t kTransforms =
    note(CUDNN_NUMERICAL_NOTE_FFT) | note(CUDNN_NUMERICAL_NOTE_WINOGRAD) |
    note(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4) | note(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6) |
    note(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);

DnnRules rules_for(tn_dtype dtype, bool fast) {
  uint32_t refused = note(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) |
                     note(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  if (!fast) refused |= kTransforms;
  // Tensor cores multiply f32 as TF32; f64, f16 and bf16 as what they are.
  if (!fast && dtype == TN_F32) refused |= note(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  return {refused, kWorkspaceLimit};
}

DnnDescriptor convolution(const ConvShape& s) {
  DnnDescriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  d.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, dnn_compute_type(s.dtype))
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  d.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::vector{s.dh, s.dw});
  d.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::vector{s.sh, s.sw})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::vector{s.ph, s.pw});
  return d.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::vector{s.ph, s.pw}).finalize();
}

// The attributes of one of the three operations: they differ in name only.
struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, convolution, x, weight, y;
};
constexpr Names kNames[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};

DnnDescriptor operation(ConvKind kind, const ConvShape& s, const DnnDescriptor& x,
                        const DnnDescriptor& weight, const DnnDescriptor& y) {
  const Names& names = kNames[static_cast<int>(kind)];
  DnnDescriptor d(names.type);
  d.set(names.convolution, convolution(s))
      .set(names.x, x)
      .set(names.weight, weight)
      .set(names.y, y);
  if (s.dtype == TN_F64)
    d.set(names.alpha, 1.0).set(names.beta, 0.0);
  else
    d.set(names.alpha, 1.0f).set(names.beta, 0.0f);
  return d.finalize();
}

DnnDescriptor bias_operation(const ConvShape& s, const DnnDescriptor& sum,
                             const DnnDescriptor& bias, const DnnDescriptor& y) {
  DnnDescriptor add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  add.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, dnn_compute_type(s.dtype))
      .finalize();
  DnnDescriptor d(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, sum);
  return d.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, bias)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y)
      .finalize();
}

}  // namespace

DnnDescriptor conv_graph(const DnnTarget& target, ConvKind kind, const ConvShape& s, bool bias,
                         int64_t alignment) {
  const auto type = dnn_data_type(s.dtype);
  const auto x = DnnTensor{kConvX, type, {s.n, s.c, s.h, s.w}, alignment}.descriptor();
  const auto weight =
      DnnTensor{kConvWeight, type, {s.o, s.c / s.groups, s.kh, s.kw}, alignment}.descriptor();
  const auto y = DnnTensor{kConvY, type, {s.n, s.o, s.oh, s.ow}, alignment}.descriptor();
  if (!bias) return dnn_graph(target, {operation(kind, s, x, weight, y)});
  const auto sum =
      DnnTensor{kConvSum, dnn_compute_type(s.dtype), {s.n, s.o, s.oh, s.ow}, 16, true}.descriptor();
  const auto b = DnnTensor{kConvBias, type, {1, s.o, 1, 1}, alignment}.descriptor();
  return dnn_graph(target, {operation(kind, s, x, weight, sum), bias_operation(s, sum, b, y)});
}

DnnPlan plan_conv_dnn(const DnnTarget& target, ConvKind kind, const ConvShape& s, bool bias,
                      int64_t alignment) {
  std::vector<int64_t> ids = {kConvX, kConvWeight, kConvY};
  if (bias) ids.push_back(kConvBias);
  return DnnPlan(target, conv_graph(target, kind, s, bias, alignment), rules_for(s.dtype, s.tf32),
                 ids);
}

}  // namespace tenon::cuda
