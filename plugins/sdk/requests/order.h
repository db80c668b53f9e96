// Operators that go along one dimension in order: scans, sorting, and places in sorted sequences.
// They are read and checked once for every plugin. All tensors are contiguous. Each `from` throws
// TN_CODE_INVALID_ARGUMENT if tensors and attributes do not fit together.
#pragma once

#include <cstdint>

#include <tenon/plugins/sdk/dims.h>
#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

namespace detail {
// Requires that output `i` has the shape of `x` but along `dim`, and is contiguous.
inline void require_along(const Request& request, const tn_tensor_desc& x, size_t i, size_t dim,
                          tn_dtype dtype) {
  auto& y = request.output(i);
  if (!same_shape_but(x, y, dim) || y.dtype != dtype)
    invalid("output {} does not come of {}", i, shape_text(x));
  require_contiguous(y);
}
}  // namespace detail

// A request of "cumsum", "cumprod", "logcumsumexp", "cummax" or "cummin": x -> y, and the places of
// the extremes.
struct ScanRequest : Lines {
  tn_dtype dtype;
  // The attribute of "cumsum": the sums begin at the end.
  bool reverse;

  // Reads a request.
  static ScanRequest from(const Request& request) {
    require_op(request, {"cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"});
    auto& x = request.input(0);
    const size_t dim = dim_of(request, x);
    const bool places = request.op() == "cummax" || request.op() == "cummin";
    require_contiguous(x);
    for (size_t i = 0; i < (places ? 2u : 1u); ++i) {
      if (!same_shape(x, request.output(i))) invalid("the output has the shape of the input");
      detail::require_along(request, x, i, dim, i == 0 ? x.dtype : TN_I64);
    }
    return {Lines::of(x, dim), x.dtype, request.op() == "cumsum" && request.get_bool("reverse")};
  }
};

// A request of "sort" or "topk": x -> values, indices. Of each line the first `k` in order are
// wanted.
struct SortRequest : Lines {
  tn_dtype dtype;
  bool descending;
  int64_t k;

  // Reads a request.
  static SortRequest from(const Request& request) {
    require_op(request, {"sort", "topk"});
    auto& x = request.input(0);
    const size_t dim = dim_of(request, x);
    const bool top = request.op() == "topk";
    require_contiguous(x);
    for (size_t i = 0; i < 2; ++i)
      detail::require_along(request, x, i, dim, i == 0 ? x.dtype : TN_I64);
    const Lines lines = Lines::of(x, dim);
    const int64_t k = top ? request.get_int("k") : lines.size;
    if (k < 0 || k > lines.size || Lines::of(request.output(0), dim).size != k ||
        Lines::of(request.output(1), dim).size != k)
      invalid("{} of {} elements are wanted, and have other places", k, lines.size);
    return {lines, x.dtype, request.get_bool(top ? "largest" : "descending"), k};
  }
};

// A request of "searchsorted": sequence, values -> places. The sequence is a vector, or there is a
// row of it for each row of the values.
struct SearchRequest {
  tn_dtype dtype;
  // The elements of a row of the sequence.
  int64_t size;
  // Count the values that look into one row, and all of them.
  int64_t per_row;
  int64_t count;
  // The attribute "right": places are behind equal elements.
  bool right;

  // Reads a request.
  static SearchRequest from(const Request& request) {
    require_op(request, {"searchsorted"});
    auto &sequence = request.input(0), &values = request.input(1), &y = request.output(0);
    for (auto* d : {&sequence, &values, &y}) require_contiguous(*d);
    if (sequence.rank == 0) invalid("the sequence has at least one dimension");
    if (sequence.dtype != values.dtype || y.dtype != TN_I64 || !same_shape(values, y))
      invalid("both inputs have one dtype, and the places the shape of the values");
    const bool vector = sequence.rank == 1;
    if (!vector &&
        (sequence.rank != values.rank || !same_shape_but(sequence, values, sequence.rank - 1)))
      invalid("a sequence {} does not fit values {}", shape_text(sequence), shape_text(values));
    const int64_t count = numel(values);
    return {sequence.dtype, sequence.shape[sequence.rank - 1],
            vector ? std::max<int64_t>(1, count) : values.shape[values.rank - 1], count,
            request.get_bool("right")};
  }
};

}  // namespace tenon::sdk
