// "embedding", "index_select" and "gather" with their gradients, read and checked once for every
// plugin. Indices themselves are checked by who runs it.
#pragma once

#include <cstdint>

#include <tenon/plugins/sdk/dims.h>
#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// Rows by index: x is seen as (outer, size, inner), of whose rows `count` are taken. All tensors
// are contiguous.
struct RowsRequest : Lines {
  tn_dtype dtype, index;  // of x and of the indices
  int64_t count;
  int64_t skip;  // the gradient of rows with this index goes nowhere; INT64_MIN: there are none

  // Of "embedding" or "index_select" (x, index -> y), or one of their gradients (g, index -> gx).
  static RowsRequest from(const Request& request);
};

inline RowsRequest RowsRequest::from(const Request& request) {
  require_op(request, {"embedding", "embedding_backward", "index_select", "index_select_backward"});
  const bool backward = request.op().ends_with("_backward"),
             embedding = request.op().starts_with("embedding");
  auto &x = backward ? request.output(0) : request.input(0), &index = request.input(1);
  auto& rows = backward ? request.input(0) : request.output(0);
  for (auto* d : {&request.input(0), &index, &request.output(0)}) require_contiguous(*d);
  const int64_t padding = embedding && backward ? request.get_int("padding_idx") : -1;
  const RowsRequest r{Lines::of(x, embedding ? 0 : dim_of(request, x)), x.dtype, index.dtype,
                      numel(index), padding < 0 ? INT64_MIN : padding};
  int64_t elements = 0;
  if (rows.dtype != r.dtype || __builtin_mul_overflow(r.outer * r.inner, r.count, &elements) ||
      numel(rows) != elements)
    invalid("{} rows of {} are not a tensor {}", r.count, shape_text(x), shape_text(rows));
  return r;
}

// One element an index: y = x at index, or gx at index += g. The result is contiguous.
struct GatherRequest {
  tn_dtype dtype, index;  // of x and of the indices
  size_t dim;
  int64_t size, stride;  // of x, or gx, along `dim`
  tn_tensor_desc seen;   // x, or gx, as the index walks over it: no step along `dim`

  // Of "gather" (x, index -> y) or "gather_backward" (g, index -> gx).
  static GatherRequest from(const Request& request);
};

inline GatherRequest GatherRequest::from(const Request& request) {
  require_op(request, {"gather", "gather_backward"});
  const bool backward = request.op() == "gather_backward";
  auto &x = backward ? request.output(0) : request.input(0), &index = request.input(1);
  require_contiguous(request.output(0));
  if (x.rank != index.rank) invalid("the index has as many dimensions as what it indexes");
  if (x.rank == 0) invalid("needs at least one dimension");
  const size_t dim = dim_of(request, x);
  auto& taken = backward ? request.input(0) : request.output(0);
  if (!same_shape(taken, index) || taken.dtype != x.dtype)
    invalid("what is taken by an index {} has its shape and the dtype of what it indexes; found {}",
            shape_text(index), shape_text(taken));
  for (uint32_t d = 0; d < x.rank; ++d)
    if (d != dim && index.shape[d] > x.shape[d])
      invalid("an index {} reaches beyond {} along dim {}", shape_text(index), shape_text(x), d);
  return {x.dtype, index.dtype, dim, x.shape[dim], x.strides[dim], without_dim(x, index, dim)};
}

}  // namespace tenon::sdk
