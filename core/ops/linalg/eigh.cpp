// Eigenvalues of symmetric matrices (core/ops/decomposition.h).
#include <tenon/core/format.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/decomposition.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/linalg/spectrum.h>
#include <tenon/core/ops/pointwise.h>

namespace tenon {

namespace {

void infer_eigh(Infer& infer) {
  Shape values = shape_of(infer.in(0));
  values.erase(values.size() - 1);
  infer.output(dtype_of(infer.in(0)), values);
  infer.output(dtype_of(infer.in(0)), shape_of(infer.in(0)));
}

// With E[i, j] = w[j] - w[i], V (the symmetric part of [V^T gV] / E off the diagonal, gw on it) V^T
// (Giles 2008, 3.1).
void eigh_gradient(const GradContext& c, Grads g) {
  const Tensor &w = c.output(0), &v = c.output(1), &gw = c.grad(0), &gv = c.grad(1);
  if (!gv.defined()) {
    g[0] = matmul(times_columns(v, gw), turned(v));
    return;
  }
  Tensor inner = skew(matmul(turned(v), gv)) * 0.5 / differences(w);
  if (gw.defined()) inner = inner + diag_embed(gw);
  g[0] = matmul(v, matmul(inner, turned(v)));
}
// | `eigh` | a(…,n,n) -> w(…,n), v? | | reads the lower triangle; w rises. Errors as `svd` |
const Op eigh_op{{
    .name = "eigh",
    .infer = infer_eigh,
    .gradient = eigh_gradient,
    .saves_outputs = 3,
    .differentiable = 3,
    .offered_by_cpu = true,
}};

Outputs run_eigh(const char* function, const Tensor& x, std::string_view uplo, bool values_alone) {
  require_square(function, x);
  if (uplo != "L" && uplo != "U")
    throw ValueError(fmt::format("{}: UPLO must be \"L\" or \"U\", found \"{}\"", function, uplo));
  const Tensor lower = uplo == "U" ? turned(x) : x;
  const Tensor* input = &lower;
  return run_all(
      {eigh_op, {&input, 1}, no_attrs, {}, values_alone && !wants_gradient(x) ? 1u : 3u});
}

}  // namespace

Eigh eigh(const Tensor& x, std::string_view UPLO) {
  const Outputs y = run_eigh("eigh", x, UPLO, false);
  return {y[0], y[1]};
}

Tensor eigvalsh(const Tensor& x, std::string_view UPLO) {
  return run_eigh("eigvalsh", x, UPLO, true)[0];
}

}  // namespace tenon
