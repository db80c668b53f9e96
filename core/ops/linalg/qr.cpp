// The QR decomposition (core/ops/decomposition.h).
#include <algorithm>

#include <tenon/core/format.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/decomposition.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/linalg/matrices.h>
#include <tenon/core/ops/pointwise.h>

namespace tenon {

namespace {

void infer_qr(Infer& infer) {
  const Shape& shape = shape_of(infer.in(0));
  const int64_t m = shape[-2], n = shape[-1];
  const int64_t k = infer.attrs.get_bool("complete") ? m : std::min(m, n);
  const Shape batch(shape.span().first(shape.size() - 2));
  infer.output(dtype_of(infer.in(0)), matrices_of(batch, m, k));
  infer.output(dtype_of(infer.in(0)), matrices_of(batch, k, n));
}

// With M = R gR^T - gQ^T Q, and S the symmetric matrix with M's lower triangle: (gQ + Q S) R^-T,
// for a square R (Seeger et al. 2017, eq. 3). Either gradient may be undefined.
Tensor gradient_of_square(const Tensor& q, const Tensor& r, const Tensor& gq, const Tensor& gr) {
  Tensor m;
  if (gr.defined()) m = matmul(r, turned(gr));
  if (gq.defined()) m = m.defined() ? m - matmul(turned(gq), q) : neg(matmul(turned(gq), q));
  Tensor x = matmul(q, tril(m) + turned(tril(m, -1)));
  if (gq.defined()) x = x + gq;
  return solve_triangular(turned(r), x, false, false);
}

// Where x = [X Y] = Q [U V] is wide, V = Q^T Y adds Y gV^T to the gradient of Q (Roberts and
// Roberts 2020).
void qr_gradient(const GradContext& c, Grads g) {
  const Tensor &x = c.input(0), &q = c.output(0), &r = c.output(1);
  const int64_t m = shape_of(x)[-2], n = shape_of(x)[-1];
  if (m > n && shape_of(q)[-1] > n)
    throw AutogradError(
        fmt::format("qr: mode \"complete\" has no gradient for matrices of more rows than columns, "
                    "found shape {}; use mode \"reduced\"",
                    shape_of(x)));
  Tensor gq = c.grad(0), gr = c.grad(1);
  if (m >= n) {
    g[0] = gradient_of_square(q, r, gq, gr);
    return;
  }
  if (!gr.defined()) {
    const Tensor left = gradient_of_square(q, r.narrow(-1, 0, m), gq, gr);
    g[0] = cat({left, zeros_like(x.narrow(-1, m, n - m))}, -1);
    return;
  }
  const Tensor gu = gr.narrow(-1, 0, m), gv = gr.narrow(-1, m, n - m);
  const Tensor more = matmul(x.narrow(-1, m, n - m), turned(gv));
  gq = gq.defined() ? gq + more : more;
  g[0] = cat({gradient_of_square(q, r.narrow(-1, 0, m), gq, gu), matmul(q, gv)}, -1);
}
// | `qr` | a(…,m,n) -> q(…,m,k)?, r(…,k,n) | `complete` bool | k = min(m, n), or m where `complete`
//   |
const Op qr_op{{
    .name = "qr",
    .infer = infer_qr,
    .gradient = qr_gradient,
    .saves_inputs = 1,
    .saves_outputs = 3,
    .differentiable = 3,
    .offered_by_cpu = true,
}};

}  // namespace

QR qr(const Tensor& x, std::string_view mode) {
  require_matrices("qr", x);
  if (mode != "reduced" && mode != "complete" && mode != "r")
    throw ValueError(
        fmt::format("qr: mode must be \"reduced\", \"complete\" or \"r\", found \"{}\"", mode));
  const Tensor* input = &x;
  const bool r_alone = mode == "r";
  const uint32_t wanted = r_alone && !wants_gradient(x) ? 2 : 3;
  const Attrs attrs = Attrs().set("complete", mode == "complete");
  const Outputs y = run_all({qr_op, {&input, 1}, attrs, {}, wanted});
  if (!r_alone) return {y[0], y[1]};
  const NoGrad guard;
  return {zeros({0}, {.dtype = dtype_of(x), .device = y[1].device()}), y[1]};
}

}  // namespace tenon
