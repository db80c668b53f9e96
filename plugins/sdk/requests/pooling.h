// Pooling operators and their gradients: planes and windows, read and checked once for every
// plugin.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/plugins/abi/windows.h>
#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// Says which attributes a request has.
enum class PoolWindows {
  none,      // of adaptive pooling
  averaged,  // kernel_size, stride, padding, ceil_mode, count_include_pad
  dilated,   // kernel_size, stride, padding, ceil_mode, dilation
};

// A request that pools n x c planes of h x w to oh x ow. Strides of inputs are not looked at, and
// max pooling's indices are checked by require_indices.
struct PoolRequest {
  int64_t planes, h, w, oh, ow;
  // Kernel size, stride, padding and dilation of rows and columns.
  int64_t kh = 0, kw = 0, sh = 1, sw = 1, ph = 0, pw = 0, dh = 1, dw = 1;
  // The attribute "count_include_pad".
  bool count_pad = false;

  // Reads a request. `large` is the tensor that is pooled, `small` the result, whichever of them is
  // computed. Throws TN_CODE_INVALID_ARGUMENT if tensors and attributes do not fit together, and
  // TN_CODE_UNSUPPORTED if an output is not row-major.
  static PoolRequest from(const Request& request, const tn_tensor_desc& large,
                          const tn_tensor_desc& small, PoolWindows windows);
  // Reads the same for a plugin that looks at the strides of the outputs, too.
  static PoolRequest from_any_order(const Request& request, const tn_tensor_desc& large,
                                    const tn_tensor_desc& small, PoolWindows windows);

  // Returns the number of elements of a plane of the tensor that is pooled.
  int64_t in_size() const { return h * w; }
  // Returns the number of elements of a plane of the result.
  int64_t out_size() const { return oh * ow; }

 private:
  void read_windows(const Request& request, PoolWindows windows);
};

inline void PoolRequest::read_windows(const Request& request, PoolWindows windows) {
  const auto kernel = get_pair(request, "kernel_size", 1), stride = get_pair(request, "stride", 1),
             padding = get_pair(request, "padding", 0);
  kh = kernel[0], kw = kernel[1], sh = stride[0], sw = stride[1], ph = padding[0], pw = padding[1];
  if (windows == PoolWindows::averaged) {
    count_pad = request.get_bool("count_include_pad");
  } else {
    const auto dilation = get_pair(request, "dilation", 1);
    dh = dilation[0], dw = dilation[1];
  }
  if (ph * 2 > kh || pw * 2 > kw) invalid("padding is at most half of the kernel");
  const bool ceil_mode = request.get_bool("ceil_mode");
  if (oh != tn_window_positions(h, kh, sh, ph, dh, ceil_mode) ||
      ow != tn_window_positions(w, kw, sw, pw, dw, ceil_mode))
    invalid("an output of {} x {} does not fit an input of {} x {}", oh, ow, h, w);
}

inline PoolRequest PoolRequest::from(const Request& request, const tn_tensor_desc& large,
                                     const tn_tensor_desc& small, PoolWindows windows) {
  const PoolRequest p = from_any_order(request, large, small, windows);
  require_row_major_outputs(request);
  return p;
}

inline PoolRequest PoolRequest::from_any_order(const Request& request, const tn_tensor_desc& large,
                                               const tn_tensor_desc& small, PoolWindows windows) {
  if (large.rank != 4 || small.rank != 4 || large.shape[0] != small.shape[0] ||
      large.shape[1] != small.shape[1])
    invalid("input and output have 4 dimensions, with equal batch and channels");
  if (large.dtype != small.dtype) invalid("input and output have one dtype");
  PoolRequest p{large.shape[0] * large.shape[1], large.shape[2], large.shape[3], small.shape[2],
                small.shape[3]};
  if (windows != PoolWindows::none)
    p.read_windows(request, windows);
  else if (numel(small) > 0 && p.in_size() == 0)
    invalid("the planes have no elements to average");
  return p;
}

// Requires that the indices that max pooling writes, and its gradient reads, are i64 of the
// result's shape.
inline void require_indices(const tn_tensor_desc& indices, const tn_tensor_desc& like) {
  bool fits = indices.dtype == TN_I64 && indices.rank == like.rank;
  for (uint32_t i = 0; fits && i < like.rank; ++i) fits = indices.shape[i] == like.shape[i];
  if (!fits)
    invalid("indices are i64 of shape " + shape_text(like) + ", found " +
            dtype_name(indices.dtype) + " of shape " + shape_text(indices));
}

}  // namespace tenon::sdk
