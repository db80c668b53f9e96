// "matmul", "linear" and "linear_relu", read and checked once for every plugin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tenon/plugins/sdk/requests/checks.h>
#include <tenon/plugins/sdk/requests/precision.h>

namespace tenon::sdk {

// A request of `batch` products y (m, n) = a (m, k) b (k, n). The second operand of "linear" is (n,
// k), so its strides change places. y is contiguous; strides of a and b are in elements and may be
// anything.
struct ProductRequest {
  // The most dimensions of a batch.
  static constexpr uint32_t kMaxBatchRank = TN_MAX_RANK - 2;
  // The dtype of all tensors, and the sizes above.
  tn_dtype dtype;
  int64_t m, n, k, batch;
  // The strides of the rows and columns of a and b.
  int64_t a_row, a_col, b_row, b_col;
  // True if input 2 of "linear" is there: (n), added to every row.
  bool bias;
  // The dimensions of the batch, outermost first, and the strides of a and b along them.
  uint32_t batch_rank = 0;
  int64_t batch_shape[kMaxBatchRank] = {}, a_batch[kMaxBatchRank] = {}, b_batch[kMaxBatchRank] = {};
  // True if f32 factors may be rounded to TF32; no kernel has to.
  bool tf32 = false;

  // Tells where a, b and y of one product begin, in elements.
  struct Offsets {
    int64_t a = 0, b = 0, y = 0;
  };
  // Returns where product `i` begins.
  Offsets offsets(int64_t i) const {
    Offsets o{0, 0, i * m * n};
    for (uint32_t d = batch_rank; d-- > 0;) {
      const int64_t rest = d == 0 ? 0 : i / batch_shape[d], at = i - rest * batch_shape[d];
      o.a += at * a_batch[d], o.b += at * b_batch[d];
      i = rest;
    }
    return o;
  }

  // Returns the step from one matrix of the batch to the next, if it is always the same; `strides`
  // are a_batch or b_batch. It is 0 if there is only one matrix.
  std::optional<int64_t> step_of(const int64_t* strides) const {
    int64_t step = 0, expected = 0;
    bool first = true;
    for (uint32_t d = batch_rank; d-- > 0;) {
      if (batch_shape[d] == 1) continue;
      if (first) step = strides[d];
      if (!first && strides[d] != expected) return std::nullopt;
      first = false;
      expected = strides[d] * batch_shape[d];
    }
    return step;
  }

  // Reads "matmul", "linear" or "linear_relu". Throws TN_CODE_INVALID_ARGUMENT if tensors do not
  // fit together, and TN_CODE_UNSUPPORTED if y is not contiguous.
  static ProductRequest from(const Request& request);
};

inline ProductRequest ProductRequest::from(const Request& request) {
  require_op(request, {"matmul", "linear", "linear_relu"});
  auto &a = request.input(0), &b = request.input(1), &y = request.output(0);
  const bool linear = request.op() != "matmul";
  const auto found =
      shape_text(a) + (linear ? " and weight " : " and ") + shape_text(b) + " to " + shape_text(y);
  const uint32_t r = a.rank;
  if (linear ? r != 2 || b.rank != 2 || y.rank != 2 : r < 2 || b.rank != r || y.rank != r)
    invalid((linear ? "operands have 2 dimensions; found "
                    : "operands need one rank of at least 2; found ") +
            found);
  require_one_dtype(a, b, y);
  require_contiguous(y);
  const uint32_t b_rows = linear ? r - 1 : r - 2, b_cols = linear ? r - 2 : r - 1;
  ProductRequest p{a.dtype,
                   a.shape[r - 2],
                   b.shape[b_cols],
                   a.shape[r - 1],
                   1,
                   a.strides[r - 2],
                   a.strides[r - 1],
                   b.strides[b_rows],
                   b.strides[b_cols],
                   linear && request.has_input(2),
                   r - 2};
  bool fits = b.shape[b_rows] == p.k && y.shape[r - 2] == p.m && y.shape[r - 1] == p.n;
  for (uint32_t d = 0; d + 2 < r; ++d) {
    fits = fits && a.shape[d] == b.shape[d] && a.shape[d] == y.shape[d];
    p.batch *= a.shape[d];
    p.batch_shape[d] = a.shape[d], p.a_batch[d] = a.strides[d], p.b_batch[d] = b.strides[d];
  }
  if (!fits) invalid("shapes do not fit together; found " + found);
  if (p.bias) require_bias(request.input(2), p.n, p.dtype);
  p.tf32 = may_use_tf32(request, p.dtype);
  return p;
}

}  // namespace tenon::sdk
