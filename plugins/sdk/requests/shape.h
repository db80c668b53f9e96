// "cat" and "slice_backward", which are made of copies to parts of their outputs: read and checked
// once for every plugin.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/plugins/sdk/dims.h>
#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// The part of an output to which an input is copied.
struct CopyPart {
  // The number of the input.
  size_t input;
  // The part, and how many bytes behind the output's first element it begins.
  tn_tensor_desc to;
  int64_t byte_offset;

  // Returns where the part begins in a run.
  void* destination(const tn_run& run) const {
    return static_cast<char*>(run.outputs[0]) + byte_offset;
  }
  // Returns where the input begins in a run.
  const void* source(const tn_run& run) const { return run.inputs[input]; }
};

// Returns the parts of "cat", one for each input that has elements, with the strides of the output.
// Throws TN_CODE_INVALID_ARGUMENT if the inputs do not fill the output.
inline std::vector<CopyPart> cat_parts(const Request& request) {
  auto& y = request.output(0);
  if (y.rank == 0) invalid("a scalar has no dimension");
  const size_t dim = dim_of(request, y);
  const int64_t unit = y.strides[dim] * static_cast<int64_t>(dtype_size(y.dtype));
  std::vector<CopyPart> parts;
  int64_t start = 0;
  for (size_t i = 0; i < request.num_inputs(); ++i) {
    auto& x = request.input(i);
    if (x.dtype != y.dtype || !same_shape_but(x, y, dim))
      invalid("an input {} and the output {} differ in dtype, or in shape beyond dim {}",
              shape_text(x), shape_text(y), dim);
    if (numel(x) > 0) {
      parts.push_back({i, x, start * unit});
      std::copy_n(y.strides, y.rank, parts.back().to.strides);
    }
    start += x.shape[dim];
  }
  if (start != y.shape[dim]) invalid("the inputs do not fill the output");
  return parts;
}

// Returns the part of the output of "slice_backward" to which the gradient is copied; the rest is
// zero. Throws TN_CODE_INVALID_ARGUMENT if the slice does not fit its output, and
// TN_CODE_UNSUPPORTED if the output is not contiguous.
inline CopyPart slice_part(const Request& request) {
  auto &g = request.input(0), &y = request.output(0);
  require_contiguous(y);
  if (y.rank == 0) invalid("a scalar has no dimension");
  const size_t dim = dim_of(request, y);
  if (!same_shape_but(g, y, dim))
    invalid("a slice {} and its output {} differ beyond dim {}", shape_text(g), shape_text(y), dim);
  const int64_t start = request.get_int("start"), step = request.get_int("step"),
                count = g.shape[dim];
  // The last row lies at start + (count - 1) * step, which may not fit any integer.
  const bool fits = count == 0 || (start < y.shape[dim] &&
                                   (step < 1 || count - 1 <= (y.shape[dim] - 1 - start) / step));
  if (start < 0 || step < 1 || !fits || g.dtype != y.dtype)
    invalid("the slice does not fit its output");
  return {0, section(y, g, dim, step),
          start * stride_of(y, dim) * static_cast<int64_t>(dtype_size(y.dtype))};
}

}  // namespace tenon::sdk
