// Singular values (core/ops/decomposition.h).
#include <algorithm>

#include <tenon/core/format.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/decomposition.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/linalg/spectrum.h>
#include <tenon/core/ops/pointwise.h>

namespace tenon {

namespace {

void infer_svd(Infer& infer) {
  const Shape& shape = shape_of(infer.in(0));
  const DType dtype = dtype_of(infer.in(0));
  const int64_t m = shape[-2], n = shape[-1], k = std::min(m, n);
  const bool full = infer.attrs.get_bool("full_matrices");
  const Shape batch(shape.span().first(shape.size() - 2));
  Shape values = batch;
  values.push_back(k);
  infer.output(dtype, matrices_of(batch, m, full ? m : k));
  infer.output(dtype, values);
  infer.output(dtype, matrices_of(batch, full ? n : k, n));
}

// With E[i, j] = S[j]^2 - S[i]^2, U ([skew(U^T gU) / E] S + S [skew(V^T gV) / E] + gS) V^T, and the
// parts of gU / S and gV / S that are orthogonal to U and V (Townsend 2016, eq. 17).
void svd_gradient(const GradContext& c, Grads g) {
  const Tensor& s = c.output(1);
  const int64_t m = c.input_shape(0)[-2], n = c.input_shape(0)[-1], k = shape_of(s).back();
  const Tensor u = c.output(0).narrow(-1, 0, k), vh = c.output(2).narrow(-2, 0, k);
  const Tensor& gs = c.grad(1);
  if (!c.grad(0).defined() && !c.grad(2).defined()) {
    g[0] = m >= n ? matmul(u, times_rows(gs, vh)) : matmul(times_columns(u, gs), vh);
    return;
  }
  const Tensor gu = c.grad(0).defined() ? c.grad(0).narrow(-1, 0, k) : Tensor(),
               gvh = c.grad(2).defined() ? c.grad(2).narrow(-2, 0, k) : Tensor();
  const Tensor e = differences(s * s);
  Tensor inner;
  const auto add = [&](const Tensor& part) { inner = inner.defined() ? inner + part : part; };
  if (gu.defined()) add(times_columns(skew(matmul(turned(u), gu)) / e, s));
  if (gvh.defined()) add(times_rows(s, skew(matmul(vh, turned(gvh))) / e));
  if (gs.defined()) add(diag_embed(gs));
  if (m > k && gu.defined()) {
    const Tensor rest = gu / unsqueeze(s, -2);
    g[0] = matmul(matmul(u, inner) + rest - matmul(u, matmul(turned(u), rest)), vh);
  } else if (n > k && gvh.defined()) {
    const Tensor rest = gvh / unsqueeze(s, -1);
    g[0] = matmul(u, matmul(inner, vh) + rest - matmul(matmul(rest, turned(vh)), vh));
  } else {
    g[0] = matmul(u, matmul(inner, vh));
  }
}
// | `svd` | a(…,m,n) -> u?, s(…,k), vh? | `full_matrices` bool | s falls. NaN, infinities and no
//   convergence: TN_CODE_INVALID_ARGUMENT, naming the matrix |
const Op svd_op{{
    .name = "svd",
    .infer = infer_svd,
    .gradient = svd_gradient,
    .saves_outputs = 7,
    .differentiable = 7,
    .offered_by_cpu = true,
}};

}  // namespace

SVD svd(const Tensor& x, bool full_matrices) {
  require_matrices("svd", x);
  const Tensor* input = &x;
  const Attrs attrs = Attrs().set("full_matrices", full_matrices);
  const Outputs y = run_all({svd_op, {&input, 1}, attrs});
  return {y[0], y[1], y[2]};
}

Tensor svdvals(const Tensor& x) {
  require_matrices("svdvals", x);
  const Tensor* input = &x;
  const Attrs attrs = Attrs().set("full_matrices", false);
  return run_all({svd_op, {&input, 1}, attrs, {}, wants_gradient(x) ? 7u : 2u})[1];
}

}  // namespace tenon
