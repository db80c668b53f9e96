// Systems of linear equations (core/ops/decomposition.h).
#include <tenon/core/format.h>
#include <tenon/core/ops/decomposition.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/linalg/matrices.h>
#include <tenon/core/ops/pointwise.h>

namespace tenon {

namespace {

void infer_solution(Infer& infer) { infer.output(dtype_of(infer.in(1)), shape_of(infer.in(1))); }

// Where A X = B, gB = A^-T gX and gA = -gB X^T (Giles 2008, 2.3.1).
void solve_gradient(const GradContext& c, Grads g) {
  const Tensor b = run_system(c.op, turned(c.input(0)), c.grad());
  if (c.needs(0)) g[0] = neg(matmul(b, turned(c.output(0))));
  if (c.needs(1)) g[1] = b;
}
// | `solve` | a(…,n,n), b(…,n,k) -> x(…,n,k) | | equal batches. A pivot that is exactly 0:
//   TN_CODE_INVALID_ARGUMENT, naming matrix and pivot |
const Op solve_op{{
    .name = "solve",
    .inputs = "a b",
    .infer = infer_solution,
    .gradient = solve_gradient,
    .saves_inputs = 1,
    .saves_outputs = 1,
    .offered_by_cpu = true,
}};

void infer_inverse(Infer& infer) { infer.output(dtype_of(infer.in(0)), shape_of(infer.in(0))); }
// -X^T gX X^T (Giles 2008, 2.2.3).
void inverse_gradient(const GradContext& c, Grads g) {
  const Tensor x = turned(c.output(0));
  g[0] = neg(matmul(matmul(x, c.grad()), x));
}
// | `inv` | a(…,n,n) -> x | | as `solve` |
const Op inverse_op{{
    .name = "inv",
    .infer = infer_inverse,
    .gradient = inverse_gradient,
    .saves_outputs = 1,
    .offered_by_cpu = true,
}};

Attrs triangle(bool upper, bool unitriangular) {
  return Attrs().set("upper", upper).set("unitriangular", unitriangular);
}
// That of solve; only what is read of A has a gradient.
void solve_triangular_gradient(const GradContext& c, Grads g) {
  const bool upper = c.attrs.get_bool("upper"), unit = c.attrs.get_bool("unitriangular");
  const Tensor b = run_system(c.op, turned(c.input(0)), c.grad(), triangle(!upper, unit));
  if (c.needs(1)) g[1] = b;
  if (!c.needs(0)) return;
  const Tensor a = neg(matmul(b, turned(c.output(0))));
  g[0] = upper ? triu(a, unit ? 1 : 0) : tril(a, unit ? -1 : 0);
}

}  // namespace

// | `solve_triangular` | a(…,n,n), b(…,n,k) -> x(…,n,k) | `upper unitriangular` bool | reads one
//   triangle of a, and its diagonal unless `unitriangular`; zeros there give infinities |
const Op solve_triangular_op{{
    .name = "solve_triangular",
    .inputs = "a b",
    .infer = infer_solution,
    .gradient = solve_triangular_gradient,
    .saves_inputs = 1,
    .saves_outputs = 1,
    .offered_by_cpu = true,
}};

Tensor solve(const Tensor& a, const Tensor& b, bool left) {
  require_square("solve", a, "a");
  require_tensor("solve", b, "b");
  if (is_vector_for(a, b)) {
    if (!left)
      throw ValueError(fmt::format("solve: a vector of shape {} needs left = true", shape_of(b)));
    const Tensor columns = unsqueeze(b, -1);
    require_system("solve", a, columns, true);
    return squeeze(run_system(solve_op, a, columns), -1);
  }
  require_system("solve", a, b, left);
  return left ? run_system(solve_op, a, b) : turned(run_system(solve_op, turned(a), turned(b)));
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left,
                        bool unitriangular) {
  require_square("solve_triangular", a, "a");
  require_system("solve_triangular", a, b, left);
  if (left) return run_system(solve_triangular_op, a, b, triangle(upper, unitriangular));
  return turned(
      run_system(solve_triangular_op, turned(a), turned(b), triangle(!upper, unitriangular)));
}

Tensor inv(const Tensor& x) {
  require_square("inv", x);
  return run(inverse_op, {&x});
}
Tensor inverse(const Tensor& x) try { return inv(x); } catch (const Error&) {
  rethrow_in("inverse");
}

}  // namespace tenon
