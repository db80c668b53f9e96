// Decompositions of matrices, read and checked once for every plugin. All tensors are contiguous.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// A request of "cholesky", "inv", "solve", "solve_triangular", "lu_factor", "qr", "svd" or "eigh"
// of `count` matrices (m, n). Outputs that nobody wants are NULL.
struct DecompositionRequest {
  tn_dtype dtype;
  int64_t count, m, n;
  // The columns of a right-hand side (n, columns).
  int64_t columns = 0;
  // The attributes of "solve_triangular".
  bool upper = false, unitriangular = false;
  // True if all columns of Q, or of U and V, are wanted.
  bool full = false;
  // True if there are dimensions before the matrices.
  bool batched = false;

  // Returns the smaller of m and n.
  int64_t k() const { return std::min(m, n); }

  // Reads a request. Throws TN_CODE_INVALID_ARGUMENT if its tensors do not fit together, and
  // TN_CODE_UNSUPPORTED for other dtypes than f32 and f64 and for tensors that are not contiguous.
  static DecompositionRequest from(const Request& request);

  // Returns what an error calls matrix i: "matrix 2 of the batch". The host names the operator.
  std::string name_of(int64_t i) const {
    return batched ? text("matrix {} of the batch", i) : "the matrix";
  }
};

namespace detail {
// Requires that a tensor has `per_matrix` elements for each matrix.
inline void require_per_matrix(const tn_tensor_desc& d, const DecompositionRequest& r,
                               int64_t per_matrix, tn_dtype dtype, const char* what) {
  require_elements(d, r.count * per_matrix, dtype, what);
}
// Requires the same of output `i`, if it is wanted.
inline void require_output(const Request& request, const DecompositionRequest& r, size_t i,
                           int64_t per_matrix, tn_dtype dtype) {
  if (request.has_output(i))
    require_per_matrix(request.output(i), r, per_matrix, dtype, "an output");
}
}  // namespace detail

inline DecompositionRequest DecompositionRequest::from(const Request& request) {
  require_op(request,
             {"cholesky", "inv", "solve", "solve_triangular", "lu_factor", "qr", "svd", "eigh"});
  auto& x = request.input(0);
  if (x.rank < 2) invalid("expects matrices, found {}", shape_text(x));
  if (x.dtype != TN_F32 && x.dtype != TN_F64) refuse_dtype(x.dtype);
  require_contiguous(x);
  DecompositionRequest r{x.dtype, 1, x.shape[x.rank - 2], x.shape[x.rank - 1]};
  for (uint32_t d = 0; d + 2 < x.rank; ++d) r.count *= x.shape[d];
  r.batched = x.rank > 2;
  using detail::require_output;
  const auto op = request.op();
  if (op == "lu_factor") {
    require_output(request, r, 0, r.m * r.n, r.dtype);
    require_output(request, r, 1, r.k(), TN_I32);
  } else if (op == "qr") {
    r.full = request.get_bool("complete");
    const int64_t k = r.full ? r.m : r.k();
    require_output(request, r, 0, r.m * k, r.dtype);
    require_output(request, r, 1, k * r.n, r.dtype);
  } else if (op == "svd") {
    r.full = request.get_bool("full_matrices");
    require_output(request, r, 0, r.m * (r.full ? r.m : r.k()), r.dtype);
    require_output(request, r, 1, r.k(), r.dtype);
    require_output(request, r, 2, r.n * (r.full ? r.n : r.k()), r.dtype);
  } else {
    if (r.m != r.n) invalid("expects square matrices, found {}", shape_text(x));
    if (op == "eigh") {
      require_output(request, r, 0, r.n, r.dtype);
      require_output(request, r, 1, r.n * r.n, r.dtype);
    } else if (op == "cholesky" || op == "inv") {
      require_output(request, r, 0, r.n * r.n, r.dtype);
    } else {
      auto& b = request.input(1);
      if (b.rank != x.rank) invalid("both inputs have one rank, found {}", shape_text(b));
      r.columns = b.shape[b.rank - 1];
      detail::require_per_matrix(b, r, r.n * r.columns, r.dtype, "the right-hand side");
      require_output(request, r, 0, r.n * r.columns, r.dtype);
    }
  }
  if (op == "solve_triangular") {
    r.upper = request.get_bool("upper");
    r.unitriangular = request.get_bool("unitriangular");
  }
  return r;
}

// A request of "lu_permutation": pivots (…, k) i32 -> places (…, rows) i64, of `count` matrices.
struct PermutationRequest {
  int64_t count, k, rows;

  // Reads a request. Throws TN_CODE_INVALID_ARGUMENT if there are more pivots than rows, or if
  // tensors do not fit.
  static PermutationRequest from(const Request& request) {
    require_op(request, {"lu_permutation"});
    auto &pivots = request.input(0), &y = request.output(0);
    if (pivots.rank == 0) invalid("expects pivots of at least one dimension");
    const int64_t k = pivots.shape[pivots.rank - 1], rows = request.get_int("rows");
    if (k < 1 || rows < k) invalid("{} rows have at most as many pivots, found {}", rows, k);
    const int64_t count = numel(pivots) / k;
    require_elements(pivots, count * k, TN_I32, "pivots");
    require_elements(y, count * rows, TN_I64, "the output");
    return {count, k, rows};
  }
};

}  // namespace tenon::sdk
