// Determinants and their gradients, of singular matrices too.
#include <cmath>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/decomposition.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(linalg)

using namespace tenon;
using namespace tenon::test;

// Singular matrices have cofactors as other matrices do.
BOOST_AUTO_TEST_CASE(determinants) {
  require_values(det(doubles({1, 2, 3, 4}, {2, 2})), {}, {-2});
  require_values(det(zeros({0, 0}, f64)), {}, {1});
  require_values(det(zeros({3, 0, 0}, f64)), {3}, {1, 1, 1});
  const Tensor singular = doubles({1, 2, 2, 4}, {2, 2}).requires_grad_();
  const Tensor d = det(singular);
  require_values(d, {}, {0});
  d.backward();
  require_values(singular.grad(), {2, 2}, {4, -2, -2, 1}, 1e-12);
  const Tensor nothing = zeros({3, 3}, f64).requires_grad_();
  det(nothing).backward();
  require_values(nothing.grad(), {3, 3}, std::vector<double>(9, 0), 1e-12);
  const auto [sign, logarithm] = slogdet(doubles({0, 2, 1, 0, 1, 2, 2, 4}, {2, 2, 2}));
  require_values(sign, {2}, {-1, 0});
  BOOST_TEST(logarithm.to_vector<double>()[0] == std::log(2.0));
  BOOST_TEST(logarithm.to_vector<double>()[1] == -HUGE_VAL);
  BOOST_TEST(std::isnan(logdet(doubles({0, 2, 1, 0}, {2, 2})).item()));
  // Its determinant is no number that f64 holds.
  require_values(slogdet(eye(200, {.dtype = f64}) * 1e10).logabsdet, {}, {200 * std::log(1e10)},
                 1e-9);
  BOOST_TEST(std::isnan(det(full({2, 2}, std::nan(""), {.dtype = f64})).item()));
}

namespace {
// A regular matrix, one of rank 1, and for `all` one of rank 0.
Tensor some_singular(bool all) {
  return (all ? doubles({2, 1, 1, 3, 1, 2, 2, 4, 0, 0, 0, 0}, {3, 2, 2})
              : doubles({2, 1, 1, 3, 1, 2, 2, 4}, {2, 2, 2}))
      .requires_grad_();
}
}  // namespace

// Matrices of a batch have gradients of their own, whatever the others are.
BOOST_AUTO_TEST_CASE(gradients_of_determinants_in_batches_with_singular_matrices) {
  for (bool recorded : {false, true}) {
    Tensor x = some_singular(true);
    const Tensor g =
        grad(slogdet(x).logabsdet.sum(), x, {.create_graph = recorded}).detach().reshape({-1});
    require_values(g.narrow(0, 0, 4), {4}, {0.6, -0.2, -0.2, 0.4}, 1e-12);
    const auto found = g.to_vector<double>();
    const std::vector<double> infinities{-HUGE_VAL, HUGE_VAL, HUGE_VAL, -HUGE_VAL};
    BOOST_TEST(std::vector<double>(found.begin() + 4, found.begin() + 8) == infinities);
    for (size_t i = 8; i < 12; ++i) BOOST_TEST(!std::isfinite(found[i]));
    x = some_singular(true);
    require_values(grad(det(x).sum(), x, {.create_graph = recorded}).detach(), {3, 2, 2},
                   {3, -1, -1, 2, 4, -2, -2, 1, 0, 0, 0, 0}, 1e-12);
  }
  // The sum of the squared cofactors of 2 x 2 is that of the elements.
  Tensor x = some_singular(false);
  const Tensor cofactors = grad(det(x).sum(), x, {.create_graph = true});
  require_values(grad((cofactors * cofactors).sum(), x), {2, 2, 2}, {4, 2, 2, 6, 2, 4, 4, 8},
                 1e-12);
  // The gradient of second order is -A^-T G^T A^-T with G = A^-T.
  x = some_singular(false);
  const Tensor inverse = grad(slogdet(x).logabsdet.sum(), x, {.create_graph = true});
  const Tensor second = grad(inverse[0].sum(), x);
  require_values(second[0], {2, 2}, {-0.16, -0.08, -0.08, -0.04}, 1e-12);
  const Tensor none = zeros({2, 0, 0}, f64).requires_grad_();
  BOOST_TEST(grad(slogdet(none).logabsdet.sum(), none).numel() == 0);
  BOOST_TEST(grad(det(none).sum(), none, {.create_graph = true}).numel() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
