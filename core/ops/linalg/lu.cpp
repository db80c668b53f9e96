// The LU decomposition and determinants (core/ops/decomposition.h).
#include <algorithm>
#include <limits>

#include <tenon/core/format.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/decomposition.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/linalg/matrices.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/sort.h>

namespace tenon {

namespace {

// ---- permutations of rows, from the pivots

void infer_permutation(Infer& infer) {
  const Shape& pivots = shape_of(infer.in(0));
  infer.require_dtype(dtype_of(infer.in(0)) == DType::i32, 0, "i32", DType::i32);
  Shape shape = pivots;
  shape[shape.size() - 1] = infer.attrs.get_int("rows");
  infer.output(DType::i64, shape);
}
// | `lu_permutation` | pivots(…,k)(i32) -> places(…,rows)(i64) | `rows` int | where each row was
//   before the exchanges; a pivot outside [1, rows]: TN_CODE_OUT_OF_RANGE |
const Op permutation_op{{
    .name = "lu_permutation",
    .infer = infer_permutation,
    .offered_by_cpu = true,
}};

// Where each row of L U was in A, (…, rows).
Tensor permutation_of(const Tensor& pivots, int64_t rows) {
  if (shape_of(pivots).back() == 0) {  // no row was exchanged
    Shape shape = shape_of(pivots);
    shape[shape.size() - 1] = rows;
    return expand(arange(0, rows, 1, {.dtype = DType::i64, .device = pivots.device()}), shape);
  }
  return run(permutation_op, {&pivots}, Attrs().set("rows", rows));
}
// The rows of x (…, m, k) in the order that `places` (…, m) says; batches are equal.
Tensor rows_in_order(const Tensor& x, const Tensor& places) {
  return gather(x, -2, expand(unsqueeze(places, -1), shape_of(x)));
}
// P x and P^T x, where A = P L U.
Tensor permuted(const Tensor& pivots, const Tensor& x) {
  return rows_in_order(x, argsort(permutation_of(pivots, shape_of(x)[-2])));
}
Tensor permuted_back(const Tensor& pivots, const Tensor& x) {
  return rows_in_order(x, permutation_of(pivots, shape_of(x)[-2]));
}

// ---- LU

void infer_lu(Infer& infer) {
  Shape pivots = shape_of(infer.in(0));
  infer.output(dtype_of(infer.in(0)), pivots);
  const int64_t k = std::min(pivots[-1], pivots[-2]);
  pivots.erase(pivots.size() - 1);
  pivots[pivots.size() - 1] = k;
  infer.output(DType::i32, pivots);
}

// With F = tril(L^T gL - …, -1) + triu(gU U^T - …) of the square parts: P L^-T F U^-T, and
// solutions for what is beside or below them. L and U are the parts of one matrix, so their
// gradients are the triangles of c.grad().
void lu_gradient(const GradContext& c, Grads g) {
  const Tensor& lu = c.output(0);
  const int64_t m = shape_of(lu)[-2], n = shape_of(lu)[-1], k = std::min(m, n);
  const Tensor square = lu.narrow(-2, 0, k).narrow(-1, 0, k),
               gradient = c.grad().narrow(-2, 0, k).narrow(-1, 0, k);
  const Tensor l = tril(square, -1) + unit_like(lu, k), u = triu(square);
  Tensor lower = matmul(turned(l), tril(gradient, -1)), upper = matmul(triu(gradient), turned(u));
  if (n > m)  // U goes on to the right
    lower = lower - matmul(c.grad().narrow(-1, k, n - k), turned(lu.narrow(-1, k, n - k)));
  if (m > n)  // L goes on below
    upper = upper - matmul(turned(lu.narrow(-2, k, m - k)), c.grad().narrow(-2, k, m - k));
  // X L^-T from the left, Y U^-T from the right.
  const auto behind_l = [&](const Tensor& x) {
    return solve_triangular(turned(l), x, true, true, true);
  };
  const auto behind_u = [&](const Tensor& x) {
    return solve_triangular(turned(u), x, false, false);
  };
  Tensor x = behind_u(behind_l(tril(lower, -1) + triu(upper)));
  if (n > m) x = cat({x, behind_l(c.grad().narrow(-1, k, n - k))}, -1);
  if (m > n) x = cat({x, behind_u(c.grad().narrow(-2, k, m - k))}, -2);
  g[0] = permuted(c.output(1), x);
}
// | `lu_factor` | a(…,m,n) -> lu, pivots(…,k)(i32)? | | k = min(m, n); row i was exchanged with row
//   pivots[i], counted from 1. Zero pivots are no error |
const Op lu_op{{
    .name = "lu_factor",
    .infer = infer_lu,
    .gradient = lu_gradient,
    .saves_outputs = 3,
    .offered_by_cpu = true,
}};

LUFactor factor(const Tensor& x) {
  const Tensor* input = &x;
  Outputs y = run_all({lu_op, {&input, 1}});
  return {y[0], y[1]};
}

// ---- determinants

// 1 or -1, by the number of rows that were exchanged.
Tensor sign_of(const Tensor& pivots, DType dtype) {
  const Tensor own =
      arange(1, shape_of(pivots).back() + 1, 1, {.dtype = DType::i32, .device = pivots.device()});
  return (1 - remainder(sum(ne(pivots, own), -1), 2) * 2).to(dtype);
}
Tensor determinant(const Tensor& diagonal, const Tensor& pivots) {
  return prod(diagonal, -1) * sign_of(pivots, dtype_of(diagonal));
}

void execute_det(const Call& call, Outputs& out) {
  const LUFactor f = factor(call.in(0));
  out.push_back(determinant(diagonal(f.LU, 0, -2, -1), f.pivots));
  out.push_back(f.LU);
  out.push_back(f.pivots);
}
// The cofactors by singular values, which have a gradient where A = U S V^T is singular, too:
// det(U) det(V) U C V^T, with the products of all other singular values in the diagonal C.
Tensor cofactors_of_singular(const Tensor& a) {
  const int64_t n = shape_of(a)[-1];
  const auto [u, s, vh] = svd(a);
  const Tensor none = ne(unit_like(a, n), 0),
               others = prod(where(none, 1, expand(unsqueeze(s, -2), shape_of(a))), -1);
  Tensor turn;
  {
    const NoGrad guard;  // it is 1 or -1
    turn = det(u) * det(vh);
  }
  return as_matrices(turn) * matmul(u * unsqueeze(others, -2), vh);
}
// What is recorded: det A^-T, or the above for matrices that are singular. Both are computed for
// all, because the values are on the device; where one does not fit, it gets a matrix that does.
Tensor recorded_cofactors(const Tensor& a, const Tensor& value, const Tensor& pivot) {
  const int64_t n = shape_of(a)[-1];
  const Tensor unit = unit_like(a, n), singular = as_matrices(any(eq(pivot, 0), -1)),
               far = unit * arange(1, n + 1, 1, {.dtype = dtype_of(a), .device = a.device()});
  const Tensor regular = as_matrices(value) * turned(inv(where(singular, unit, a)));
  return where(singular, cofactors_of_singular(where(singular, a, far)), regular);
}
// The cofactors, det A^-T, by solving with the factors. Pivots that are 0 are replaced by tiny ones
// first: cofactors are continuous, so they are those of A up to rounding.
void det_gradient(const GradContext& c, Grads g) {
  const Tensor &lu = c.output(1), &pivots = c.output(2);
  const Tensor pivot = diagonal(lu, 0, -2, -1);
  const int64_t n = shape_of(lu)[-1];
  if (shape_of(lu).numel() == 0) {
    g[0] = zeros_like(lu);
    return;
  }
  if (grad_enabled()) {
    g[0] = as_matrices(c.grad()) * recorded_cofactors(c.input(0), c.output(0), pivot);
    return;
  }
  const Tensor size = amax(abs(pivot), -1, true),
               tiny = where(eq(size, 0), 1, size) * epsilon_of(dtype_of(lu));
  const Tensor regular = where(eq(pivot, 0), tiny, pivot);
  const Tensor factors = lu + diag_embed(regular - pivot);
  const Tensor scale = as_matrices(c.grad() * determinant(regular, pivots));
  g[0] = lu_solve(factors, pivots, expand(unit_like(lu, n), shape_of(lu)), true, true) * scale;
}
const Op det_op{{
    .name = "det",
    .gradient = det_gradient,
    .saves_inputs = 1,
    .saves_outputs = 7,
    .execute = execute_det,
}};

void execute_slogdet(const Call& call, Outputs& out) {
  const LUFactor f = factor(call.in(0));
  const Tensor pivot = diagonal(f.LU, 0, -2, -1);
  out.push_back(prod(sign(pivot), -1) * sign_of(f.pivots, dtype_of(pivot)));
  out.push_back(sum(log(abs(pivot)), -1));
  out.push_back(f.LU);
  out.push_back(f.pivots);
}
// A^-T, by solving with the factors: only the singular ones of a batch get infinities and NaN.
void slogdet_gradient(const GradContext& c, Grads g) {
  const LUFactor f =
      grad_enabled() ? factor(c.input(0)) : LUFactor{c.output(2), c.output(3)};  // or recorded
  const Tensor unit = expand(unit_like(f.LU, shape_of(f.LU)[-1]), shape_of(f.LU));
  g[0] = as_matrices(c.grad(1)) * lu_solve(f.LU, f.pivots, unit, true, true);
}
const Op slogdet_op{{
    .name = "slogdet",
    .gradient = slogdet_gradient,
    .saves_inputs = 1,
    .saves_outputs = 12,
    .differentiable = 2,
    .execute = execute_slogdet,
}};

}  // namespace

LUFactor lu_factor(const Tensor& x) {
  require_matrices("lu_factor", x);
  return factor(x);
}

Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left,
                bool adjoint) try {
  require_square("lu_solve", lu, "lu");
  require_tensor("lu_solve", pivots, "pivots");
  if (dtype_of(pivots) != DType::i32)
    throw DTypeError(fmt::format(
        "lu_solve: pivots must be i32, as lu_factor returns them; found {}", dtype_of(pivots)));
  Shape expected = shape_of(lu);
  expected.erase(expected.size() - 1);
  if (shape_of(pivots) != expected)
    throw ShapeError(fmt::format("lu_solve: factors of shape {} need pivots of shape {}, found {}",
                                 shape_of(lu), expected, shape_of(pivots)));
  require_tensor("lu_solve", b, "b");
  require_system("lu_solve", lu, b, left);
  if (!left) return turned(lu_solve(lu, pivots, turned(b), true, !adjoint));
  const Shape batch = broadcast_shapes(batches_of(lu), batches_of(b), "lu_solve");
  const int64_t n = shape_of(lu)[-1], k = shape_of(b)[-1];
  Shape rows = batch;
  rows.push_back(n);
  const Tensor x = expand(b, matrices_of(batch, n, k)), places = expand(pivots, rows);
  if (!adjoint)
    return solve_triangular(lu, solve_triangular(lu, permuted_back(places, x), false, true, true),
                            true);
  const Tensor y = solve_triangular(turned(lu), x, false);
  return permuted(places, solve_triangular(turned(lu), y, true, true, true));
} catch (const Error&) {
  rethrow_in("lu_solve");
}

Tensor det(const Tensor& x) {
  require_square("det", x);
  const Tensor* input = &x;
  return run_all({det_op, {&input, 1}})[0];
}

SlogDet slogdet(const Tensor& x) {
  require_square("slogdet", x);
  const Tensor* input = &x;
  Outputs y = run_all({slogdet_op, {&input, 1}});
  return {y[0], y[1]};
}

Tensor logdet(const Tensor& x) {
  require_square("logdet", x);
  const SlogDet found = slogdet(x);
  return where(eq(found.sign, -1), std::numeric_limits<double>::quiet_NaN(), found.logabsdet);
}

}  // namespace tenon
