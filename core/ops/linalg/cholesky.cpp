// Positive definite matrices (core/ops/decomposition.h).
#include <tenon/core/ops/decomposition.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/linalg/matrices.h>
#include <tenon/core/ops/pointwise.h>

namespace tenon {

namespace {

void infer_same_matrices(Infer& infer) {
  infer.output(dtype_of(infer.in(0)), shape_of(infer.in(0)));
}

// With P = L^T gL: L^-T S L^-1, where S is symmetric with half of P's lower triangle (Murray 2016,
// eq. 10).
void cholesky_gradient(const GradContext& c, Grads g) {
  const Tensor& l = c.output(0);
  const Tensor p = matmul(turned(l), c.grad());
  const Tensor s = (tril(p) + turned(tril(p, -1))) * 0.5;
  g[0] = solve_triangular(l, solve_triangular(turned(l), s, true), false, false);
}
// | `cholesky` | a(…,n,n) -> l | | lower triangular, zeros above; reads the lower triangle. A pivot
//   that is not positive: TN_CODE_INVALID_ARGUMENT, naming matrix and minor |
const Op cholesky_op{{
    .name = "cholesky",
    .infer = infer_same_matrices,
    .gradient = cholesky_gradient,
    .saves_outputs = 1,
    .offered_by_cpu = true,
}};

}  // namespace

Tensor cholesky(const Tensor& x, bool upper) {
  require_square("cholesky", x);
  const Tensor lower = upper ? turned(x) : x;
  const Tensor l = run(cholesky_op, {&lower});
  return upper ? turned(l) : l;
}

Tensor cholesky_solve(const Tensor& b, const Tensor& l, bool upper) try {
  require_tensor("cholesky_solve", b, "b");
  require_square("cholesky_solve", l, "l");
  require_system("cholesky_solve", l, b, true);
  const Tensor lower = upper ? turned(l) : l;
  const Tensor y = run_system(solve_triangular_op, lower, b,
                              Attrs().set("upper", false).set("unitriangular", false));
  return run_system(solve_triangular_op, turned(lower), y,
                    Attrs().set("upper", true).set("unitriangular", false));
} catch (const Error&) {
  rethrow_in("cholesky_solve");
}

}  // namespace tenon
