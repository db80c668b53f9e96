// The operators matmul and linear: from row-major tensors with strides to products as cuBLASLt
// counts them.
#include <limits>
#include <memory>
#include <string>

#include <tenon/plugins/sdk/requests/linalg.h>

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
int64_t batch_stride(const sdk::ProductRequest& r, const int64_t* strides) {
  const auto step = r.step_of(strides);
  if (!step) sdk::unsupported("not contiguous");
  return *step;
}

Product product_of(const Request& request, const sdk::ProductRequest& r) {
  Product p{.dtype = r.dtype, .m = r.m, .n = r.n, .k = r.k, .a = {}, .b = {}};
  p.batch = r.batch;
  p.bias = r.bias;
  p.relu = request.op() == "linear_relu";
  if (sdk::numel(request.output(0)) == 0 || p.k == 0) return p;
  p.tf32 = r.tf32;
  const int64_t a_batch = batch_stride(r, r.a_batch), b_batch = batch_stride(r, r.b_batch);
  // One right operand for all, and rows that go on from one matrix to the next: a single tall
  // product.
  if (p.batch > 1 && b_batch == 0 && r.a_col == 1 && a_batch == p.m * r.a_row) {
    p.m *= p.batch;
    p.batch = 1;
  }
  p.a = transpose_of(p.m, p.k, r.a_row, r.a_col);
  p.b = transpose_of(p.k, p.n, r.b_row, r.b_col);
  p.a.batch_stride = a_batch;
  p.b.batch_stride = b_batch;
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
  const auto r = sdk::ProductRequest::from(request);
  if (!sdk::is_float(r.dtype)) refuse_dtype(r.dtype);
  const Product p = product_of(request, r);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  if (p.k == 0) return plan_without_products(p, request.output(0));
  if (p.batch > std::numeric_limits<int32_t>::max())
    sdk::unsupported("a batch of more than 2^31 - 1 matrices");
  auto gemm = std::make_unique<const Gemm>(device, p);
  const uint64_t workspace = gemm->workspace_bytes();
  return make_plan([gemm = std::move(gemm)](const tn_run& run) { gemm->run(run); }, workspace);
}

const sdk::Kernel matrix_products({"matmul", "linear", "linear_relu"}, make_product);

}  // namespace
}  // namespace tenon::cuda
