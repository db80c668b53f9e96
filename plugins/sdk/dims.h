// Operators along one dimension: which it is, and how the tensors look from there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// Returns the attribute "dim" of an operator on `d`. Throws TN_CODE_INVALID_ARGUMENT if there is no
// such dimension. A single number is taken for a tensor of one dimension.
inline size_t dim_of(const Request& request, const tn_tensor_desc& d) {
  const int64_t dim = request.get_int("dim");
  if (dim < 0 || dim >= std::max<int64_t>(1, d.rank))
    invalid("dim {} of a tensor of {} dimensions", dim, d.rank);
  return static_cast<size_t>(dim);
}

// A contiguous tensor seen as outer x size x inner, `size` being the dimension in question.
struct Lines {
  int64_t outer = 1, size = 1, inner = 1;

  // Returns the lines of a tensor along `dim`.
  static Lines of(const tn_tensor_desc& d, size_t dim) {
    Lines l;
    for (size_t k = 0; k < d.rank; ++k)
      (k < dim ? l.outer : k == dim ? l.size : l.inner) *= d.shape[k];
    return l;
  }
};

// Returns the stride of a contiguous tensor along `dim`, in elements.
inline int64_t stride_of(const tn_tensor_desc& whole, size_t dim) {
  return Lines::of(whole, dim).inner;
}

// Returns the part of contiguous `whole` that has the shape of `part`, every `step`th along `dim`.
inline tn_tensor_desc section(const tn_tensor_desc& whole, const tn_tensor_desc& part, size_t dim,
                              int64_t step) {
  tn_tensor_desc d = part;
  int64_t stride = 1;
  for (uint32_t k = whole.rank; k-- > 0;) {
    d.strides[k] = stride * (k == dim ? step : 1);
    stride *= whole.shape[k];
  }
  return d;
}

// Returns `d` as an index walks over it: in the index's shape, and without a step along `dim`, for
// which the index stands.
inline tn_tensor_desc without_dim(const tn_tensor_desc& d, const tn_tensor_desc& index,
                                  size_t dim) {
  tn_tensor_desc seen = d;
  std::copy_n(index.shape, index.rank, seen.shape);
  seen.strides[dim] = 0;
  return seen;
}

}  // namespace tenon::sdk
