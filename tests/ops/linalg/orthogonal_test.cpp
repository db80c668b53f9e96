// qr, eigh and svd where they work in blocks: products of the factors at the blocks' boundaries, of
// matrices that iterations find hard, and values that are known.
#include <cmath>
#include <limits>

#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/decomposition.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(linalg)

using namespace tenon;
using namespace tenon::test;

namespace {

struct Named {
  const char* name;
  Tensor x;
};

// Random, of low rank, graded up and down, with equal singular values, zero, huge and tiny.
std::vector<Named> matrices_of(int64_t m, int64_t n, DType dtype) {
  const Tensor x = sample({m, n}, 0.7);
  const double far = dtype == f64 ? 1e150 : 1e18;
  const Tensor falling =
      pow(10, arange(0, n, 1, {.dtype = f64}) * (-12.0 / static_cast<double>(n)));
  std::vector<Named> all = {{"random", x}};
  if (!kSanitized)
    all.insert(all.end(), {{"rising", x * flip(falling, 0)},
                           {"falling", x * falling},
                           {"zero", zeros({m, n}, f64)},
                           {"ones", ones({m, n}, f64)},
                           {"equal", eye(m, n, {.dtype = f64}) + x * 1e-9},
                           {"huge", x * far},
                           {"tiny", x / far}});
  all.push_back({"low rank", matmul(sample({m, 3}, 0.1), sample({3, n}, 0.4))});
  for (Named& each : all) each.x = each.x.to(dtype);
  return all;
}

double largest(const Tensor& x) { return amax(abs(x)).item(); }
Tensor turned(const Tensor& x) { return x.transpose(-1, -2); }

// In units of the last place of `scale` and of the number of rows and columns.
void require_close(const Tensor& a, const Tensor& b, double scale, const std::string& what) {
  BOOST_REQUIRE_EQUAL(a.shape().str(), b.shape().str());
  const double epsilon = a.dtype() == f64 ? 2.3e-16 : 1.2e-7;
  const double found = largest(a - b), size = static_cast<double>(a.size(0) + a.size(1));
  BOOST_TEST(found <= 4 * size * epsilon * scale, what << " differs by " << found);
}
void require_orthonormal(const Tensor& columns, const std::string& what) {
  const Tensor product = matmul(turned(columns), columns);
  require_close(product, eye(columns.size(1), {.dtype = columns.dtype()}), 1, what);
}

}  // namespace

// Panels have 32 columns. qr has them from 48 columns on, svd becomes bidiagonal from 24 on.
BOOST_AUTO_TEST_CASE(factors_at_the_boundaries_of_blocks) {
  for (DType dtype : {f32, f64})
    for (auto [m, n] : {std::pair<int64_t, int64_t>{24, 24},
                        {24, 40},
                        {33, 33},
                        {47, 47},
                        {48, 48},
                        {49, 49},
                        {63, 63},
                        {64, 64},
                        {65, 65},
                        {67, 67},
                        {130, 67},
                        {50, 97}})
      for (const auto& [name, x] : matrices_of(m, n, dtype)) {
        const std::string what = std::string(name) + " " + x.shape().str();
        const double scale = largest(x);
        for (const char* mode : {"reduced", "complete"}) {
          const auto [q, r] = qr(x, mode);
          require_close(matmul(q, r), x, scale, "Q R of " + what);
          require_orthonormal(q, "Q of " + what);
          BOOST_TEST(largest(r - triu(r)) == 0);
        }
        for (bool full : {false, true}) {
          const auto [u, s, vh] = svd(x, full);
          const int64_t k = s.size(0);
          require_close(matmul(u.narrow(1, 0, k) * s, vh.narrow(0, 0, k)), x, 4 * scale,
                        "U S V^T of " + what);
          require_orthonormal(u, "U of " + what);
          require_orthonormal(turned(vh), "V of " + what);
          BOOST_TEST(largest(svdvals(x) - s) <= 1e-5 * scale * (dtype == f64 ? 1e-8 : 1));
          BOOST_TEST(amin(s).item() >= 0);
          BOOST_TEST(amin(s.narrow(0, 0, k - 1) - s.narrow(0, 1, k - 1)).item() >= 0);
        }
        if (m != n) continue;
        const Tensor symmetric = x + turned(x);
        const auto [w, v] = eigh(symmetric);
        require_close(matmul(v * w, turned(v)), symmetric, 4 * scale, "V w V^T of " + what);
        require_orthonormal(v, "eigenvectors of " + what);
        BOOST_TEST(largest(eigvalsh(symmetric) - w) <= 1e-5 * scale * (dtype == f64 ? 1e-8 : 1));
        BOOST_TEST(amin(w.narrow(0, 1, n - 1) - w.narrow(0, 0, n - 1)).item() >= 0);
      }
}

// Vectors whose rows are half a page long lie further apart while they are rotated.
BOOST_AUTO_TEST_CASE(vectors_with_gaps_between_their_rows) {
  const int64_t n = 256;  // 2048 bytes
  const Tensor x = sample({n, n}, 0.7), symmetric = x + turned(x);
  const auto [w, v] = eigh(symmetric);
  require_close(matmul(v * w, turned(v)), symmetric, 4 * largest(x), "V w V^T");
  require_orthonormal(v, "eigenvectors");
  const auto [u, s, vh] = svd(x);
  require_close(matmul(u * s, vh), x, 4 * largest(x), "U S V^T");
  require_orthonormal(u, "U");
  require_orthonormal(turned(vh), "V");
}

// Large matrices have the signs of small ones.
BOOST_AUTO_TEST_CASE(signs_of_blocked_r) {
  // Of an ill-conditioned matrix, R is not exact to the last digits.
  const Tensor small = sample({20, 20}, 0.3) - eye(20, {.dtype = f64}) * 20,
               large = eye(80, {.dtype = f64});
  large.narrow(0, 0, 20).narrow(1, 0, 20).copy_(small);
  const Tensor r = qr(large).R;
  require_close(r.narrow(0, 0, 20).narrow(1, 0, 20), qr(small).R, 20, "R");
}

BOOST_AUTO_TEST_CASE(known_values_of_large_matrices) {
  const int64_t n = 100;
  // 2 on the diagonal and -1 beside it.
  const Tensor ones_beside = diag(ones(n - 1, f64), 1);
  const Tensor x = eye(n, {.dtype = f64}) * 2 - ones_beside - turned(ones_beside);
  const Tensor expected =
      2 - cos(arange(1, n + 1, 1, {.dtype = f64}) * (M_PI / static_cast<double>(n + 1))) * 2;
  BOOST_TEST(largest(eigvalsh(x) - expected) < 1e-13);
  BOOST_TEST(largest(svdvals(x) - flip(expected, 0)) < 1e-13);
  // Singular values of a bidiagonal matrix keep all digits, be they graded up or down: their
  // product is that of the diagonal.
  for (bool down : {false, true}) {
    Tensor powers = arange(0, n, 1, {.dtype = f64}) * -0.15;
    if (down) powers = flip(powers, 0);
    const Tensor diagonal = pow(10, powers);
    const Tensor s = svdvals(diag(diagonal) + diag(diagonal.narrow(0, 1, n - 1) * 0.5, 1));
    BOOST_TEST(std::abs(sum(log(s)).item() - sum(log(diagonal)).item()) < 1e-11);
  }
}

// The product of what stands beside the diagonal is 0 in f64.
BOOST_AUTO_TEST_CASE(elements_far_apart) {
  const Tensor beside = tensor(std::vector<double>{1e-200, 1e-250, 1}, {3});
  const Tensor w = eigvalsh(diag(beside, -1) + diag(beside, 1));
  BOOST_TEST(largest(w - tensor(std::vector<double>{-1, 0, 0, 1}, {4})) < 1e-15);
}

// What comes out does not depend on the other matrices, nor on the thread.
BOOST_AUTO_TEST_CASE(large_matrices_of_a_batch_have_the_same_bits) {
  const Tensor x = sample({66, 66}, 0.4), symmetric = x + turned(x);
  const Tensor batch = stack({x, sample({66, 66}, 0.9), x}),
               symmetric_batch = batch + turned(batch);
  for (int64_t i : {0, 2}) {
    require_equal(qr(batch).Q[i], qr(x).Q);
    require_equal(svd(batch).U[i], svd(x).U);
    require_equal(svd(batch).Vh[i], svd(x).Vh);
    require_equal(eigh(symmetric_batch).eigenvectors[i], eigh(symmetric).eigenvectors);
  }
}

BOOST_AUTO_TEST_CASE(large_matrices_that_are_not_finite) {
  const Tensor x = eye(70, {.dtype = f64});
  x[60][50].fill_(std::numeric_limits<double>::quiet_NaN());
  require_error<ValueError>([&] { svdvals(x).to_vector<double>(); },
                            "svd: the matrix has NaN or infinities");
  require_error<ValueError>([&] { eigvalsh(x).to_vector<double>(); },
                            "eigh: the matrix has NaN or infinities");
  BOOST_TEST(!std::isfinite(sum(qr(x).R).item()));
}

BOOST_AUTO_TEST_SUITE_END()
