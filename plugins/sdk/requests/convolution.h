// "conv2d", "conv2d_backward_input" and "conv2d_backward_weight": one geometry, read and checked
// once for every plugin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include <tenon/plugins/abi/windows.h>
#include <tenon/plugins/sdk/requests/checks.h>
#include <tenon/plugins/sdk/requests/precision.h>

namespace tenon::sdk {

// Says which of the three tensors of a convolution is computed.
enum class ConvKind { forward, backward_input, backward_weight };

// A request of a convolution: x (n, c, h, w), weight (o, c / groups, kh, kw), y (n, o, oh, ow).
// They are the same three tensors whichever of them is computed.
struct ConvRequest {
  // The dtype of all tensors, and the sizes above.
  tn_dtype dtype;
  int64_t n, c, h, w, o, kh, kw, oh, ow;
  // The number of groups, and the channels of one group that go in and come out.
  int64_t groups, cg, og;
  // Stride, padding and dilation of rows and columns.
  int64_t sh, sw, ph, pw, dh, dw;
  // Says what is computed.
  ConvKind kind = ConvKind::forward;
  // True if a forward request has a bias (o), input 2.
  bool bias = false;
  // True if f32 factors may be rounded to TF32, and methods may trade accuracy for speed; no kernel
  // has to.
  bool tf32 = false;

  // Returns whether each channel is convolved with taps of its own.
  bool is_depthwise() const { return groups > 1 && cg == 1 && og == 1; }

  // Reads "conv2d" or one of its gradients. Throws TN_CODE_INVALID_ARGUMENT if tensors and
  // attributes do not fit together, and TN_CODE_UNSUPPORTED if the output is not row-major. Strides
  // of the inputs but the bias are for the plugin to look at.
  static ConvRequest from(const Request& request);
  // Reads the same for a plugin that looks at the strides of the output, too.
  static ConvRequest from_any_order(const Request& request);
};

// Returns which tensor the operator of a request computes.
inline ConvKind conv_kind(const Request& request) {
  require_op(request, {"conv2d", "conv2d_backward_input", "conv2d_backward_weight"});
  return request.op() == "conv2d"                  ? ConvKind::forward
         : request.op() == "conv2d_backward_input" ? ConvKind::backward_input
                                                   : ConvKind::backward_weight;
}

inline ConvRequest ConvRequest::from(const Request& request) {
  const ConvRequest r = from_any_order(request);
  require_row_major_outputs(request);
  return r;
}

inline ConvRequest ConvRequest::from_any_order(const Request& request) {
  const ConvKind kind = conv_kind(request);
  auto &first = request.input(0), &second = request.input(1), &out = request.output(0);
  auto& x = kind == ConvKind::forward ? first : kind == ConvKind::backward_input ? out : second;
  auto& weight = kind == ConvKind::backward_weight ? out : second;
  auto& y = kind == ConvKind::forward ? out : first;
  const auto found =
      "input " + shape_text(x) + ", weight " + shape_text(weight) + ", output " + shape_text(y);
  if (x.rank != 4 || weight.rank != 4 || y.rank != 4)
    invalid("all tensors have 4 dimensions; found " + found);
  require_one_dtype(x, weight, y);
  const auto stride = get_pair(request, "stride", 1), padding = get_pair(request, "padding", 0),
             dilation = get_pair(request, "dilation", 1);
  const int64_t groups = request.get_int("groups"), c = x.shape[1], o = weight.shape[0];
  if (groups < 1 || o % groups || c % groups || weight.shape[1] != c / groups)
    invalid("channels do not divide into {} groups; found {}", groups, found);
  const ConvRequest r{x.dtype,
                      x.shape[0],
                      c,
                      x.shape[2],
                      x.shape[3],
                      o,
                      weight.shape[2],
                      weight.shape[3],
                      y.shape[2],
                      y.shape[3],
                      groups,
                      c / groups,
                      o / groups,
                      stride[0],
                      stride[1],
                      padding[0],
                      padding[1],
                      dilation[0],
                      dilation[1],
                      kind,
                      kind == ConvKind::forward && request.has_input(2),
                      may_use_tf32(request, x.dtype)};
  const auto [least, most] = std::minmax(r.kh, r.kw);  // of a weight that may be expanded
  if (least < 1 || most > std::numeric_limits<int32_t>::max())
    invalid("a kernel has 1 to 2^31 - 1 rows and columns; found " + found);
  if (y.shape[0] != r.n || y.shape[1] != o || r.oh < 1 || r.ow < 1 ||
      r.oh != tn_window_positions(r.h, r.kh, r.sh, r.ph, r.dh, 0) ||
      r.ow != tn_window_positions(r.w, r.kw, r.sw, r.pw, r.dw, 0))
    invalid("shapes do not fit together; found " + found);
  if (r.bias) require_bias(request.input(2), o, r.dtype);
  return r;
}

}  // namespace tenon::sdk
