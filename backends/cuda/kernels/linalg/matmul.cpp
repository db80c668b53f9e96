// The operators matmul and linear: from row-major tensors with strides to products as cuBLASLt
// counts them.
#include <limits>
#include <memory>
#include <string>

#include "kernels/linalg/bias.h"
#include "kernels/linalg/gemm.h"
#include "runtime/common.h"

namespace tenon::cuda {
namespace {

// The transpose of a row-major matrix of r rows and c columns with strides (sr, sc), of which one
// must be 1.
Matrix transpose_of(int64_t r, int64_t c, int64_t sr, int64_t sc) {
  const auto rows = static_cast<uint64_t>(r), cols = static_cast<uint64_t>(c);
  const Matrix by_rows{cols, rows, r == 1 ? c : sr, 0, CUBLAS_OP_N},
      by_columns{rows, cols, c == 1 ? r : sc, 0, CUBLAS_OP_T};
  const bool fits_rows = (sc == 1 || c == 1) && by_rows.ld >= c,
             fits_columns = (sr == 1 || r == 1) && by_columns.ld >= r;
  if (!fits_rows && !fits_columns) sdk::unsupported("not contiguous");
  // A vector is both: as one long column it may be read in wide loads.
  return fits_rows && (!fits_columns || by_rows.ld >= by_columns.ld) ? by_rows : by_columns;
}

// The stride from one matrix of the batch to the next, where that is one number.
int64_t batch_stride(const tn_tensor_desc& d) {
  int64_t stride = 0, expected = 0;
  bool first = true;
  for (uint32_t i = d.rank - 2; i-- > 0;) {
    if (d.shape[i] == 1) continue;
    if (first) {
      stride = expected = d.strides[i];
    } else if (d.strides[i] != expected) {
      sdk::unsupported("not contiguous");
    }
    expected *= d.shape[i];
    first = false;
  }
  return stride;
}

void check_dtypes(const Request& request, const tn_tensor_desc& a, const tn_tensor_desc& b,
                  const tn_tensor_desc& y) {
  if (a.dtype != b.dtype || a.dtype != y.dtype) sdk::invalid("all tensors have one dtype");
  if (a.dtype > TN_BF16) refuse_dtype(request, a.dtype);
  require_contiguous(request, y);
}

bool wants_tf32(const Request& request, tn_dtype dtype) {
  return dtype == TN_F32 && request.find("precision") && request.get_string("precision") == "high";
}

Product matmul_product(const Request& request) {
  auto &a = request.input(0), &b = request.input(1), &y = request.output(0);
  const auto found = shape_text(a) + " and " + shape_text(b) + " to " + shape_text(y);
  const uint32_t r = a.rank;
  if (r < 2 || b.rank != r || y.rank != r)
    sdk::invalid("operands need one rank of at least 2; found " + found);
  check_dtypes(request, a, b, y);
  Product p{.dtype = a.dtype,
            .m = a.shape[r - 2],
            .n = b.shape[r - 1],
            .k = a.shape[r - 1],
            .a = {},
            .b = {}};
  bool fits = b.shape[r - 2] == p.k && y.shape[r - 2] == p.m && y.shape[r - 1] == p.n;
  for (uint32_t d = 0; d + 2 < r; ++d) {
    fits = fits && a.shape[d] == b.shape[d] && a.shape[d] == y.shape[d];
    p.batch *= a.shape[d];
  }
  if (!fits) sdk::invalid("shapes do not fit together; found " + found);
  if (sdk::numel(y) == 0 || p.k == 0) return p;
  p.tf32 = wants_tf32(request, a.dtype);
  int64_t a_batch = batch_stride(a), b_batch = batch_stride(b);
  // One right operand for all, and rows that go on from one matrix to the next: a single tall
  // product.
  if (p.batch > 1 && b_batch == 0 && a.strides[r - 1] == 1 && a_batch == p.m * a.strides[r - 2]) {
    p.m *= p.batch;
    p.batch = 1;
  }
  p.a = transpose_of(p.m, p.k, a.strides[r - 2], a.strides[r - 1]);
  p.b = transpose_of(p.k, p.n, b.strides[r - 2], b.strides[r - 1]);
  p.a.batch_stride = a_batch;
  p.b.batch_stride = b_batch;
  return p;
}

Product linear_product(const Request& request) {
  auto &x = request.input(0), &weight = request.input(1), &y = request.output(0);
  const auto found = shape_text(x) + " and weight " + shape_text(weight) + " to " + shape_text(y);
  if (x.rank != 2 || weight.rank != 2 || y.rank != 2)
    sdk::invalid("operands have 2 dimensions; found " + found);
  check_dtypes(request, x, weight, y);
  Product p{
      .dtype = x.dtype, .m = x.shape[0], .n = weight.shape[0], .k = x.shape[1], .a = {}, .b = {}};
  if (weight.shape[1] != p.k || y.shape[0] != p.m || y.shape[1] != p.n)
    sdk::invalid("shapes do not fit together; found " + found);
  if (request.has_input(2)) {
    auto& bias = request.input(2);
    if (bias.rank != 1 || bias.shape[0] != p.n || bias.dtype != x.dtype)
      sdk::invalid("bias must be (" + std::to_string(p.n) + ") of the input's dtype; found " +
                   shape_text(bias));
    require_contiguous(request, bias);
    p.bias = true;
  }
  p.relu = request.op() == "linear_relu";
  if (sdk::numel(y) == 0 || p.k == 0) return p;
  p.tf32 = wants_tf32(request, x.dtype);
  p.a = transpose_of(p.m, p.k, x.strides[0], x.strides[1]);
  p.b = transpose_of(p.k, p.n, weight.strides[1], weight.strides[0]);
  return p;
}

// No products to sum: zeros, or the bias alone.
tn_plan* plan_without_products(const Product& p, const tn_tensor_desc& out) {
  if (p.relu) sdk::unsupported("an inner size of 0");
  if (!p.bias) return zero_plan(out);
  return make_plan([p](const tn_run& run) {
    apply_bias(run.stream, BiasMode::set, run.inputs[2], run.outputs[0], p.m, p.n, 1, p.dtype);
  });
}

tn_plan* make_product(tn_device* device, const Request& request) {
  const Product p = request.op() == "matmul" ? matmul_product(request) : linear_product(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  if (p.k == 0) return plan_without_products(p, request.output(0));
  if (p.batch > std::numeric_limits<int32_t>::max())
    sdk::unsupported("a batch of more than 2^31 - 1 matrices");
  auto gemm = std::make_unique<const Gemm>(device, p);
  const uint64_t workspace = gemm->workspace_bytes();
  return make_plan([gemm = std::move(gemm)](const tn_run& run) { gemm->run(run); }, workspace);
}

const sdk::Kernel registration({"matmul", "linear", "linear_relu"}, make_product);

}  // namespace
}  // namespace tenon::cuda
