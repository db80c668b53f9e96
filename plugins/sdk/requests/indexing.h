// "embedding", "index_select" and "gather" with their gradients, and "scatter": read and checked
// once for every plugin. A plan checks the indices themselves when it runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include <tenon/plugins/sdk/dims.h>
#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// A request that takes rows by index: x is seen as (outer, size, inner), of whose rows `count` are
// taken. All tensors are contiguous.
struct RowsRequest : Lines {
  // The dtypes of x and of the indices.
  tn_dtype dtype, index;
  // Counts the rows that are taken.
  int64_t count;
  // The gradient of rows with this index goes nowhere; INT64_MIN stands for none.
  int64_t skip;

  // Reads "embedding" or "index_select" (x, index -> y) or their gradients (g, index -> gx).
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

// A request with one element for each index: y = x at index, or gx at index += g. The result is
// contiguous.
struct GatherRequest {
  // The dtypes of x and of the indices, and the dimension.
  tn_dtype dtype, index;
  size_t dim;
  // The size of x, or gx, along `dim`, and its stride there.
  int64_t size, stride;
  // x, or gx, as the index walks over it: without a step along `dim`.
  tn_tensor_desc seen;

  // Reads "gather" (x, index -> y) or "gather_backward" (g, index -> gx).
  static GatherRequest from(const Request& request);
};

// Requires that an index is no larger than x but along `dim`.
inline void require_within(const tn_tensor_desc& index, const tn_tensor_desc& x, size_t dim) {
  for (uint32_t d = 0; d < x.rank; ++d)
    if (d != dim && index.shape[d] > x.shape[d])
      invalid("an index {} reaches beyond {} along dim {}", shape_text(index), shape_text(x), d);
}

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
  require_within(index, x, dim);
  return {x.dtype, index.dtype, dim, x.shape[dim], x.strides[dim], without_dim(x, index, dim)};
}

// Says what happens to elements that are written to one place.
enum class ScatterReduce { assign, sum, prod, amax, amin };
// A request of "scatter" or "scatter_reduce": x, index, src -> y, which may be x in place. Index
// and src have one shape.
struct ScatterRequest {
  // The dtypes of x and of the indices, and the dimension.
  tn_dtype dtype, index;
  size_t dim;
  // The size and the stride of y along `dim`.
  int64_t size, stride;
  // y as the index walks over it: without a step along `dim`.
  tn_tensor_desc seen;
  // Say what happens at a place, and whether the value of x there takes part.
  ScatterReduce reduce;
  bool include_self;

  // Reads a request. Throws TN_CODE_INVALID_ARGUMENT if tensors do not fit together, and
  // TN_CODE_UNSUPPORTED for another "reduce" or if x or y is not contiguous.
  static ScatterRequest from(const Request& request);
};

// Returns what the attribute "reduce" names, and `assign` for "scatter".
inline ScatterReduce scatter_reduce_of(const Request& request) {
  if (request.op() == "scatter") return ScatterReduce::assign;
  const auto name = request.get_string("reduce");
  if (name == "sum") return ScatterReduce::sum;
  if (name == "prod") return ScatterReduce::prod;
  if (name == "amax") return ScatterReduce::amax;
  if (name == "amin") return ScatterReduce::amin;
  unsupported("reduce is \"sum\", \"prod\", \"amax\" or \"amin\", found \"" + std::string(name) +
              "\"");
}

inline ScatterRequest ScatterRequest::from(const Request& request) {
  require_op(request, {"scatter", "scatter_reduce"});
  auto &x = request.input(0), &index = request.input(1), &src = request.input(2),
       &y = request.output(0);
  require_contiguous(x);
  require_contiguous(y);
  if (!same_shape(x, y) || x.dtype != y.dtype || x.dtype != src.dtype)
    invalid("x, src and the output have one dtype, and the output the shape of x");
  if (y.rank == 0 || y.rank != index.rank || !same_shape(index, src))
    invalid("index and src have one shape, and as many dimensions as x");
  const size_t dim = dim_of(request, y);
  require_within(index, y, dim);
  const auto reduce = scatter_reduce_of(request);
  return {x.dtype,
          index.dtype,
          dim,
          y.shape[dim],
          y.strides[dim],
          without_dim(y, index, dim),
          reduce,
          reduce == ScatterReduce::assign || request.get_bool("include_self")};
}

// A request of "nonzero": mask, counts -> y. For each element `counts` says how many are true up to
// it; y has a row for each that is.
struct NonzeroRequest {
  // The elements of the mask, and the rows of y.
  int64_t elements, count;
  // The shape of the mask.
  size_t rank;
  std::array<int64_t, TN_MAX_RANK> shape;

  // Reads a request. Throws TN_CODE_INVALID_ARGUMENT if tensors do not fit together, and
  // TN_CODE_UNSUPPORTED for other dtypes or tensors that are not contiguous.
  static NonzeroRequest from(const Request& request) {
    require_op(request, {"nonzero"});
    auto &mask = request.input(0), &counts = request.input(1), &y = request.output(0);
    if (mask.dtype != TN_BOOL) refuse_dtype(mask.dtype);
    if (y.dtype != TN_I64) invalid("the places are {}, but must be i64", dtype_name(y.dtype));
    require_contiguous(mask);
    require_elements(counts, numel(mask), TN_I64, "counts");
    if (y.rank != 2 || y.shape[1] != mask.rank || y.shape[0] > numel(mask))
      invalid("{} does not list places in {}", shape_text(y), shape_text(mask));
    require_contiguous(y);
    NonzeroRequest r{numel(mask), y.shape[0], mask.rank, {}};
    std::copy_n(mask.shape, mask.rank, r.shape.begin());
    return r;
  }
};

// A request of "ravel_index": as many i64 indices as `sizes` -> the number of the element that they
// meet in.
struct RavelRequest {
  // The number of indices, and of elements of each.
  size_t indices;
  int64_t count;
  std::array<int64_t, TN_MAX_RANK> sizes;

  // Reads a request. Throws TN_CODE_INVALID_ARGUMENT if tensors and sizes do not fit together.
  static RavelRequest from(const Request& request) {
    require_op(request, {"ravel_index"});
    const auto sizes = request.get_ints("sizes");
    auto& y = request.output(0);
    if (sizes.empty() || sizes.size() > TN_MAX_RANK || sizes.size() != request.num_inputs())
      invalid("{} sizes for {} indices", sizes.size(), request.num_inputs());
    RavelRequest r{sizes.size(), numel(y), {}};
    for (size_t k = 0; k < r.indices; ++k) {
      require_elements(request.input(k), r.count, TN_I64, "an index");
      r.sizes[k] = sizes[k];
    }
    require_elements(y, r.count, TN_I64, "the output");
    return r;
  }
};

}  // namespace tenon::sdk
