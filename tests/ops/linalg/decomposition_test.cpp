// Decompositions: products of the factors for all shapes, values at the edges, and errors, beside
// the table.
#include <cmath>
#include <limits>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/decomposition.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/runtime/dispatch_stats.h>

#include "ops/check.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(linalg)

using namespace tenon;
using namespace tenon::test;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN(),
             kInfinity = std::numeric_limits<double>::infinity();

Tensor turn(const Tensor& x) { return x.transpose(-1, -2); }
Tensor unit(int64_t n, DType dtype = f64) { return eye(n, {.dtype = dtype}); }
double difference_of(const Tensor& a, const Tensor& b) {
  BOOST_REQUIRE_EQUAL(a.shape().str(), b.shape().str());
  return a.numel() ? amax(abs(a - b)).item() : 0;
}
// As exact as `scale` is large.
void require_near(const Tensor& a, const Tensor& b, double scale, const std::string& what) {
  const double epsilon = a.dtype() == f64 ? 1e-14 : 1e-5;
  const double found = difference_of(a, b);
  BOOST_TEST(found <= epsilon * scale, what << " differs by " << found);
}

// Matrices that decompositions find hard: of low rank, graded over many powers of ten, with equal
// singular values, nothing but zeros, and very large or small.
std::vector<Tensor> hard_matrices(int64_t m, int64_t n, DType dtype) {
  const Tensor x = sample({m, n}, 0.7);
  std::vector<Tensor> all = {x, zeros({m, n}, f64), ones({m, n}, f64), eye(m, n, {.dtype = f64})};
  all.push_back(matmul(sample({m, 2}, 0.1), sample({2, n}, 0.4)));
  all.push_back(x * pow(10, arange(0, n, 1, {.dtype = f64}) * (-12.0 / static_cast<double>(n))));
  all.push_back(x * (dtype == f64 ? 1e200 : 1e30));
  all.push_back(x * (dtype == f64 ? 1e-200 : 1e-30));
  for (Tensor& a : all) a = a.to(dtype);
  return all;
}

double size_of(const Tensor& x) {
  return amax(abs(x)).item() * static_cast<double>(x.numel()) + 1e-300;
}

}  // namespace

BOOST_AUTO_TEST_CASE(products_of_orthogonal_factors) {
  for (DType dtype : {f32, f64})
    for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {5, 5}, {7, 3}, {3, 8}, {40, 33}})
      for (const Tensor& x : hard_matrices(m, n, dtype)) {
        const std::string what = x.shape().str();
        const double scale = size_of(x), exact = static_cast<double>(m + n);
        for (const char* mode : {"reduced", "complete"}) {
          const auto [q, r] = qr(x, mode);
          require_near(matmul(q, r), x, scale, "Q R of " + what);
          require_near(matmul(turn(q), q), unit(q.size(1), dtype), exact, "Q^T Q of " + what);
          BOOST_TEST(difference_of(r, triu(r)) == 0);
        }
        for (bool full : {false, true}) {
          const auto [u, s, vh] = svd(x, full);
          const int64_t k = s.size(0);
          require_near(matmul(u.narrow(1, 0, k) * s, vh.narrow(0, 0, k)), x, scale,
                       "U S V^T of " + what);
          require_near(matmul(turn(u), u), unit(u.size(1), dtype), exact, "U^T U of " + what);
          require_near(matmul(vh, turn(vh)), unit(vh.size(0), dtype), exact, "V^T V of " + what);
          require_near(svdvals(x), s, scale, "the values alone of " + what);
          BOOST_TEST(amin(s).item() >= 0);
          if (k > 1) BOOST_TEST(amin(s.narrow(0, 0, k - 1) - s.narrow(0, 1, k - 1)).item() >= 0);
        }
      }
}

BOOST_AUTO_TEST_CASE(eigenvalues_of_hard_matrices) {
  for (DType dtype : {f32, f64})
    for (int64_t n : {1, 2, 5, 33})
      for (const Tensor& a : hard_matrices(n, n, dtype)) {
        const Tensor x = a + turn(a);
        const auto [w, v] = eigh(x);
        const double scale = size_of(x);
        require_near(matmul(v * w, turn(v)), x, scale, "V w V^T");
        require_near(matmul(turn(v), v), unit(n, dtype), static_cast<double>(n), "V^T V");
        require_near(eigvalsh(x, "U"), w, scale, "the values alone");
        if (n > 1) BOOST_TEST(amin(w.narrow(0, 1, n - 1) - w.narrow(0, 0, n - 1)).item() >= 0);
      }
}

// Rounding leaves columns behind whose squares are too small for a double.
BOOST_AUTO_TEST_CASE(remainders_of_low_rank) {
  const int64_t n = kSanitized ? 40 : 400;
  const Tensor x = ones({n, n}, f64);
  const auto require_orthogonal = [&](const Tensor& q, const char* what) {
    require_near(matmul(turn(q), q), unit(n), static_cast<double>(n), what);
  };
  require_orthogonal(qr(x).Q, "Q");
  require_orthogonal(svd(x).U, "U");
  require_orthogonal(eigh(x).eigenvectors, "V");
}

// Sizes at which blocks are divided, and where all rows have to be exchanged.
BOOST_AUTO_TEST_CASE(factors_of_many_sizes) {
  for (int64_t n : {1, 15, 16, 17, 31, 32, 33, 64, 65, 130, kSanitized ? 260 : 600}) {
    const Tensor x = flip(sample({n, n}, 0.3) + unit(n) * static_cast<double>(n), 0);
    const auto near = [&](const Tensor& a, const Tensor& b, const char* what) {
      require_near(a, b, static_cast<double>(n * n), std::string(what) + std::to_string(n));
    };
    const Tensor b = sample({n, 3}, 0.2);
    near(matmul(x, solve(x, b)), b, "solve ");
    near(matmul(x, inv(x)), unit(n), "inv ");
    const Tensor definite = matmul(x, turn(x)) / static_cast<double>(n);
    // What is not to be read is NaN.
    const Tensor above = triu(ones({n, n}, f64), 1).to(boolean);
    const Tensor l = cholesky(where(above, kNaN, definite));
    near(matmul(l, turn(l)), definite, "cholesky ");
    BOOST_TEST(difference_of(l, tril(l)) == 0);
    near(turn(cholesky(definite, true)), l, "cholesky, upper ");
    near(matmul(definite, cholesky_solve(b, l)), b, "cholesky_solve ");
    for (bool upper : {false, true})
      for (bool unit_diagonal : {false, true}) {
        Tensor t = upper ? triu(x) : tril(x);
        t = t / static_cast<double>(n * n) + unit(n);
        const Tensor read = unit_diagonal ? t - diag(diagonal(t)) + unit(n) : t;
        const Tensor other = where(upper ? turn(above) : above, kNaN, t);
        for (const Tensor& right : {b, b.narrow(1, 0, 1)})
          near(matmul(read, solve_triangular(other, right, upper, true, unit_diagonal)), right,
               "triangular ");
      }
  }
}

BOOST_AUTO_TEST_CASE(lu_of_all_shapes) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{4, 4}, {40, 40}, {50, 20}, {20, 50}, {3, 1}}) {
    const Tensor x = sample({m, n}, 0.9);
    const auto [lu, pivots] = lu_factor(x);
    const int64_t k = std::min(m, n);
    BOOST_REQUIRE_EQUAL(pivots.shape().str(), Shape(k).str());
    Tensor rows = x.clone();
    const auto exchanged = pivots.to_vector<int64_t>();
    for (int64_t i = 0; i < k; ++i) {
      const int64_t j = exchanged[static_cast<size_t>(i)] - 1;
      const Tensor row = rows[i].clone();
      rows[i].copy_(rows[j]);
      rows[j].copy_(row);
    }
    const Tensor l = tril(lu.narrow(1, 0, k), -1) + eye(m, k, {.dtype = f64}),
                 u = triu(lu.narrow(0, 0, k));
    require_near(matmul(l, u), rows, static_cast<double>(m * n), "L U");
    BOOST_TEST(amax(abs(l)).item() <= 1);
  }
  const auto [lu, pivots] = lu_factor(doubles({1, 2, 2, 4}, {2, 2}));
  require_values(lu, {2, 2}, {2, 4, 0.5, 0});
  require_values(pivots, {2}, {2, 2});
  BOOST_CHECK(pivots.dtype() == i32);
  // The first of the largest elements leads, and a NaN only where no row has to be exchanged.
  for (int64_t n : {12, 40}) {
    Tensor x = sample({n, n}, 0.9);
    const auto first = [&] { return lu_factor(x).pivots[0].item(); };
    for (int64_t row : {9, 7}) x[row][0].fill_(row - 20);
    for (int64_t row : {10, 11}) x[row][0].fill_(13);
    BOOST_TEST(first() == 8);
    x[1][0].fill_(kNaN);
    BOOST_TEST(first() == 8);
    x[7][0].fill_(-11);
    BOOST_TEST(first() == 11);
    x[0][0].fill_(kNaN);
    BOOST_TEST(first() == 1);
  }
  require_error<IndexError>(
      [&] {
        lu_solve(lu, ints({1, 3}, {2}).to(i32), unit(2)).to_vector<double>();
      },
      "pivot 3 at position 1 lies outside [1, 2]");
}

BOOST_AUTO_TEST_CASE(empty_matrices) {
  const Tensor none = zeros({0, 0}, f64), tall = zeros({3, 0}, f64), wide = zeros({2, 0, 3}, f64);
  BOOST_TEST(cholesky(none).shape().str() == "(0, 0)");
  BOOST_TEST(inv(zeros({0, 3, 3}, f64)).shape().str() == "(0, 3, 3)");
  BOOST_TEST(solve(none, zeros({0, 4}, f64)).shape().str() == "(0, 4)");
  BOOST_TEST(solve(zeros({2, 1, 0, 0}, f64), zeros({3, 0, 4}, f64)).shape().str() ==
             "(2, 3, 0, 4)");
  require_equal(qr(tall, "complete").Q, unit(3));
  BOOST_TEST(qr(tall).Q.shape().str() == "(3, 0)");
  BOOST_TEST(qr(wide).R.shape().str() == "(2, 0, 3)");
  require_equal(svd(tall).U, unit(3));
  require_equal(svd(wide).Vh[1], unit(3));
  BOOST_TEST(svd(wide, false).Vh.shape().str() == "(2, 0, 3)");
  BOOST_TEST(svdvals(wide).shape().str() == "(2, 0)");
  BOOST_TEST(eigh(none).eigenvalues.shape().str() == "(0,)");
  BOOST_TEST(pinv(wide).shape().str() == "(2, 3, 0)");
  require_values(matrix_rank(wide), {2}, {0, 0});
  BOOST_TEST(lstsq(tall, zeros({3, 2}, f64)).solution.shape().str() == "(0, 2)");
  BOOST_TEST(lu_factor(tall).pivots.shape().str() == "(0,)");
}

BOOST_AUTO_TEST_CASE(matrices_of_low_rank) {
  const Tensor x = doubles({1, 2, 2, 4, 3, 6}, {3, 2});
  require_values(matrix_rank(x), {}, {1});
  require_values(matrix_rank(unit(3) * 1e-3, {.atol = 1e-2}), {}, {0});
  require_values(matrix_rank(doubles({1, 1, 1, 1}, {2, 2}), {.hermitian = true}), {}, {1});
  const Tensor p = pinv(x);
  require_equal(matmul(matmul(x, p), x), x, 1e-12);
  require_equal(matmul(matmul(p, x), p), p, 1e-12);
  require_equal(pinv(doubles({2, 2, 2, 2}, {2, 2}), {.hermitian = true}),
                doubles({0.125, 0.125, 0.125, 0.125}, {2, 2}), 1e-12);
  // It is the smallest of all solutions.
  const Lstsq found = lstsq(x, doubles({1, 2, 3}, {3}));
  require_values(found.solution, {2}, {0.2, 0.4}, 1e-12);
  require_values(found.residuals, {1}, {0}, 1e-12);
  require_values(found.rank, {}, {1});
  require_values(found.singular_values, {2}, {std::sqrt(70.0), 0}, 1e-12);
  require_values(
      lstsq(doubles({1, 1, 1}, {3, 1}), doubles({1, 2, 6}, {3, 1}), {}, "gels").residuals, {1},
      {14}, 1e-12);
  require_values(lstsq(unit(2), ones({2, 1}, f64)).residuals, {0}, {});
  require_values(cond(doubles({1, 2, 2, 4}, {2, 2}), 1), {}, {kInfinity});
  require_values(cond(doubles({1, 0, 0, 4}, {2, 2}), 1), {}, {4});
  require_values(cond(doubles({1, 0, 0, 4}, {2, 2})), {}, {4});
}

// The inverse of a Hilbert matrix has whole numbers; its condition number is 5e5.
BOOST_AUTO_TEST_CASE(ill_conditioned_systems) {
  std::vector<double> values;
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 5; ++j) values.push_back(1.0 / (i + j + 1));
  const Tensor x = doubles(values, {5, 5});
  require_values(inv(x)[0], {5}, {25, -300, 1050, -1400, 630}, 1e-8);
  require_values(matmul(x, solve(x, ones(5, f64))), {5}, {1, 1, 1, 1, 1}, 1e-11);
  require_values(cond(x), {}, {476607.25024222}, 1e-8);
  require_values(det(x), {}, {1 / 266716800000.0}, 1e-20);
  // A small singular value next to large ones: one-sided rotations find all of its digits.
  const Tensor graded = doubles({1, 1, 1, 1 + 1e-8}, {2, 2}) * doubles({1, 1e-6}, {2});
  BOOST_TEST(std::abs(svdvals(graded)[1].item() / 1e-14 * std::sqrt(2) - 1) < 1e-6);
  require_error<ValueError>(
      [] {
        matrix_norm(zeros({0, 3}, f64), -2.0);
      },
      "matrix_norm: the order -2 has nothing to choose from in shape (0, 3)");
}

namespace {
void require_failure(const Tensor& y, const auto&... parts) {
  require_error<ValueError>([&] { y.to_vector<double>(); }, parts...);
}
}  // namespace

// Errors of values come where a result is read, and name the matrix.
BOOST_AUTO_TEST_CASE(matrices_that_cannot_be_decomposed) {
  const Tensor singular = doubles({1, 2, 2, 4}, {2, 2}),
               batch = stack({unit(2), unit(2), singular, zeros({2, 2}, f64)});
  require_failure(inv(singular), "inv", "the matrix is singular: pivot 2");
  require_failure(inv(batch), "inv: matrix 2 of the batch is singular: pivot 2");
  require_failure(solve(batch, unit(2)), "solve: matrix 2 of the batch is singular");
  require_failure(solve(singular, ones(2, f64)), "solve: the matrix is singular");
  require_failure(matrix_power(singular, -1), "inv: the matrix is singular");
  require_failure(cholesky(batch),
                  "cholesky: matrix 2 of the batch is not positive definite: its leading minor of "
                  "order 2 is not positive");
  const Tensor late = unit(70);
  late[50][50].fill_(-1);
  require_failure(cholesky(late), "cholesky: the matrix is not positive definite", "order 51");
  for (double odd : {kNaN, kInfinity}) {
    const Tensor x = unit(3);
    x[1][0].fill_(odd);
    require_failure(cholesky(x), "cholesky: the matrix is not positive definite");
    require_failure(svdvals(x), "svd: the matrix has NaN or infinities");
    require_failure(svd(x).U, "svd: the matrix has NaN or infinities");
    require_failure(eigh(stack({unit(3), x})).eigenvectors,
                    "eigh: matrix 1 of the batch has NaN or infinities");
    BOOST_TEST(eigvalsh(x, "U").to_vector<double>()[0] == 1.0);  // the other triangle
    require_failure(pinv(x), "svd: the matrix has NaN or infinities");
    BOOST_TEST(!std::isfinite(sum(qr(x).R).item()));
    BOOST_TEST(!std::isfinite(sum(lu_factor(x).LU).item()));
    BOOST_TEST(!std::isfinite(sum(qr(full({4, 3}, odd, {.dtype = f64})).Q).item()));
  }
  // As in PyTorch, a triangular system is not looked at.
  require_values(solve_triangular(doubles({1, 0, 0, 0}, {2, 2}), ones({2, 1}, f64), false), {2, 1},
                 {1, kInfinity});
}

// Systems of many rows multiply by the inverses of the diagonal, if these are numbers.
BOOST_AUTO_TEST_CASE(triangular_systems_with_a_tiny_diagonal) {
  for (DType dtype : {f32, f64})
    for (int64_t columns : {1, 300}) {
      const double tiny = dtype == f64 ? 1e-310 : 1e-40;
      const Tensor b = full({20, columns}, tiny, {.dtype = dtype});
      for (bool upper : {false, true}) {
        const Tensor x = solve_triangular(unit(20, dtype) * tiny, b, upper);
        BOOST_TEST(difference_of(x, ones({20, columns}, {.dtype = dtype})) == 0);
      }
    }
}

BOOST_AUTO_TEST_CASE(arguments_that_do_not_fit) {
  const Tensor x = unit(3), wide = zeros({2, 3}, f64);
  require_error<ShapeError>([&] { cholesky(wide); }, "cholesky: expects square matrices", "(2, 3)");
  require_error<ShapeError>([&] { inv(x[0]); }, "inv: expects matrices (…, m, n)", "(3,)");
  require_error<DTypeError>([&] { svd(x.to(f16)); }, "svd: x needs f32 or f64, found f16");
  require_error<DTypeError>([&] { qr(x.to(bf16)); }, "qr: x needs f32 or f64, found bf16");
  require_error<DTypeError>([&] { det(x.to(i64)); }, "det: x needs f32 or f64, found i64");
  require_error<DTypeError>([&] { solve(x, x.to(f32)); }, "solve: a is f64, b f32");
  require_error<ShapeError>([&] { solve(x, wide); }, "solve: a matrix of shape (3, 3)",
                            "(…, 3, k)");
  require_error<ShapeError>([&] { solve(x, zeros({3, 2}, f64), false); }, "(…, k, 3)");
  require_error<ValueError>([&] { solve(x, x[0], false); }, "solve: a vector", "left = true");
  require_error<ShapeError>([&] { solve(x.expand({2, 3, 3}), x.expand({4, 3, 3})); }, "solve");
  require_error<ValueError>([&] { solve(x, Tensor()); }, "solve: b is an undefined tensor");
  require_error<ValueError>([] { eigh(Tensor()); }, "eigh: x is an undefined tensor");
  require_error<ValueError>([&] { eigh(x, "l"); },
                            "eigh: UPLO must be \"L\" or \"U\", found \"l\"");
  require_error<ValueError>([&] { qr(x, "full"); }, "qr: mode must be", "found \"full\"");
  require_error<ValueError>([&] { lstsq(x, x, {}, "svd"); }, "lstsq: driver must be");
  require_error<ValueError>([&] { pinv(x, {.atol = -1}); }, "pinv: atol and rtol");
  require_error<ValueError>([&] { matrix_norm(x, "two"); }, "matrix_norm: ord must be");
  require_error<ValueError>([&] { matrix_norm(x, 3.0); }, "matrix_norm: ord must be 1, -1");
  require_error<ValueError>([&] { matrix_norm(x, "fro", {0, -2}); }, "dims must name two");
  require_error<IndexError>([&] { matrix_norm(x, "fro", {0, 2}); }, "matrix_norm: dim 2");
  require_error<ValueError>([&] { cond(x, "two"); }, "cond: p must be");
  require_error<ShapeError>([&] { cond(wide, 1); }, "cond: expects square matrices");
  require_error<DTypeError>([&] { lu_solve(x, zeros({3}, i64), x); },
                            "lu_solve: pivots must be i32");
  require_error<ShapeError>([&] { lu_solve(x, zeros({2}, i32), x); }, "lu_solve: factors of shape");
  const Tensor tall = zeros({3, 2}, f64).requires_grad_();
  require_error<AutogradError>([&] { sum(qr(tall, "complete").Q).backward(); },
                               "qr: mode \"complete\" has no gradient");
}

// Views are read where they lie; both triangles of the gradient of a symmetric matrix are there.
BOOST_AUTO_TEST_CASE(gradients_of_symmetric_matrices) {
  Tensor x = (unit(3) * 4 + sample({3, 3}, 0.5)).requires_grad_();
  sum(cholesky(x)).backward();
  require_equal(x.grad(), turn(x.grad()), 1e-14);
  x.set_grad({});
  sum(eigh(x).eigenvectors * sample({3, 3}, 1)).backward();
  require_equal(x.grad(), turn(x.grad()), 1e-13);
  BOOST_TEST(abs(x.grad()).max().item() > 0.01);
  const auto half = [](const Tensor& a) { return a.to(f32); };
  const Tensor y = sample({4, 4}, 0.2) + unit(4) * 4;
  require_equal(inv(half(y)).to(f64), inv(y), 1e-5);
  require_equal(inv(turn(y)), turn(inv(y)), 1e-13);
  require_equal(solve(y.expand({3, 4, 4}), ones({3, 4, 1}, f64))[2], solve(y, ones({4, 1}, f64)),
                1e-14);
  BOOST_TEST(qr(y, "r").Q.shape().str() == "(0,)");
  require_equal(qr(y, "r").R, qr(y).R);
}

BOOST_AUTO_TEST_CASE(methods) {
  const Tensor x = sample({4, 4}, 0.2) + unit(4) * 4, tall = sample({4, 2});
  const Tensor definite = matmul(x, turn(x));
  require_equal(x.inverse(), inv(x));
  require_equal(x.det(), det(x));
  require_equal(x.slogdet().logabsdet, slogdet(x).logabsdet);
  require_equal(definite.logdet(), logdet(definite));
  require_equal(definite.cholesky(true), cholesky(definite, true));
  require_equal(tall.qr().R, qr(tall).R);
  BOOST_TEST(tall.qr(false).Q.shape().str() == "(4, 4)");
  BOOST_TEST(tall.svd(false).U.shape().str() == "(4, 2)");
  require_equal(tall.svd().S, svdvals(tall), 1e-14);
  require_values(doubles({3, 1, 2, 0}, {2, 2}).msort(), {2, 2}, {2, 0, 3, 1});
  require_values(doubles({0.5, 2, 3}, {3}).bucketize(doubles({1, 2}, {2}), false, true), {3},
                 {0, 2, 2});
}

// A backend without these operators has them all the same, by way of the CPU, and says so.
BOOST_AUTO_TEST_CASE(on_a_device_that_lacks_them) {
  const Device device("primitives:0");
  const Tensor x = (unit(3) * 4 + sample({3, 3}, 0.5)), there = x.to(device);
  count_dispatch();
  reset_dispatch_stats();
  const Tensor y = inv(turn(there));
  BOOST_TEST(y.device().str() == "primitives:0");
  require_equal(y.to("cpu"), inv(turn(x)), 1e-14);
  const auto stats = dispatch_stats();
  count_dispatch(false);
  BOOST_REQUIRE(stats.on_cpu.size() == 1u);
  BOOST_TEST(stats.on_cpu[0].op == "inv");
  require_error<ValueError>(
      [&] {
        inv(zeros({2, 2}, {.dtype = f64, .device = device})).to("cpu").to_vector<double>();
      },
      "inv: the matrix is singular");
}

BOOST_AUTO_TEST_SUITE_END()
