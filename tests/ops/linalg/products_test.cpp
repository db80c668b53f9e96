// Products and distances: values at the edges and errors, beside the table.
#include <cmath>
#include <limits>

#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(linalg)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(products_of_vectors) {
  const Tensor a = doubles({1, 2, 3}, {3}), b = doubles({4, 5, 6}, {3});
  require_values(dot(a, b), {}, {32});
  require_values(vdot(ints({1, 2}, {2}), ints({3, 4}, {2})), {}, {11});
  require_values(outer(a, b.narrow(0, 0, 2)), {3, 2}, {4, 5, 8, 10, 12, 15});
  require_values(cross(a, b), {3}, {-3, 6, -3});
  require_values(inner(a, scalar(2, f64)), {3}, {2, 4, 6});
  require_values(kron(doubles({1, 2}, {2}), doubles({1, 10}, {2})), {4}, {1, 10, 2, 20});
  require_values(vander(ints({2, 3}, {2}), 3), {2, 3}, {4, 2, 1, 9, 3, 1});
  require_error<ShapeError>([&] { dot(a, b.narrow(0, 0, 2)); },
                            "dot: both vectors must have one length, found (3,) and (2,)");
  require_error<ShapeError>([&] { mv(a, b); }, "mv: expects tensors of 2 and 1 dimensions",
                            "(3,) and (3,)");
  require_error<ShapeError>([&] { outer(a, a.unsqueeze(0)); }, "outer: expects tensors of 1 and 1");
  require_error<ShapeError>([&] { cross(a.narrow(0, 0, 2), b.narrow(0, 0, 2)); },
                            "cross: needs a dimension of size 3");
  require_error<ShapeError>([&] { cross(ones({3, 2}), ones({3, 2}), 1); }, "at dim 1");
  require_error<ShapeError>([&] { inner(a, b.narrow(0, 0, 2)); }, "inner: the last dimensions");
  require_error<ShapeError>([&] { kron(zeros({1, 1, 1, 1, 1}), a); }, "kron: takes at most 4");
  require_error<DTypeError>([] { dot(zeros(2, boolean), zeros(2, boolean)); },
                            "dot: takes numbers");
}

// Where beta is 0, the input does not count, but gets a gradient of zeros.
BOOST_AUTO_TEST_CASE(an_input_times_nothing) {
  const Tensor x = doubles({std::nan(""), INFINITY}, {2}).requires_grad_();
  const Tensor a = doubles({1, 2, 3, 4}, {2, 2});
  const Tensor y = addmm(x, a, a, 0);
  require_values(y, {2, 2}, {7, 10, 15, 22});
  y.sum().backward();
  require_values(x.grad(), {2}, {0, 0});
  require_values(addmv(scalar(1, f64), a, a[0], 2, -1), {2}, {2 - 5.0, 2 - 11.0});
  require_error<ShapeError>([&] { addmm(zeros({3}, f64), a, a); }, "addmm");
  require_error<ShapeError>(
      [&] {
        addmm(zeros({1, 2, 2}, f64), a, a, 2);
      },
      "addmm: an input of shape (1, 2, 2) does not broadcast", "(2, 2)");
  require_error<ShapeError>(
      [&] {
        addbmm(a, a.unsqueeze(0), zeros({2, 2, 2}, f64));
      },
      "addbmm: cannot multiply (1, 2, 2) by (2, 2, 2)");
}

BOOST_AUTO_TEST_CASE(powers_and_chains) {
  const Tensor a = doubles({1, 1, 0, 1}, {2, 2});
  require_values(matrix_power(a, 10), {2, 2}, {1, 10, 0, 1});
  require_values(matrix_power(a.expand({2, 2, 2}), 0), {2, 2, 2}, {1, 0, 0, 1, 1, 0, 0, 1});
  require_values(matrix_power(a, -10), {2, 2}, {1, -10, 0, 1});
  // Without an exchange of rows, the first step would divide by 0.
  require_values(matrix_power(doubles({0, 2, 4, 0}, {2, 2}), -1), {2, 2}, {0, 0.25, 0.5, 0});
  require_values(matrix_power(a, std::numeric_limits<int64_t>::min()).select(0, 1), {2}, {0, 1});
  BOOST_CHECK_EQUAL(matrix_power(zeros({0, 3, 3}), -1).shape().str(), "(0, 3, 3)");
  require_error<DTypeError>(
      [] {
        matrix_power(ones({2, 2}, i64), 2);
      },
      "matrix_power: x must be floating unless n is 0, found i64");
  require_error<ShapeError>([&] { matrix_power(a[0], 2); },
                            "matrix_power: expects square matrices");
  require_values(multi_dot({a[0], a, a, a[1]}), {}, {3});
  require_error<ValueError>([&] { multi_dot({a}); }, "multi_dot: needs at least two tensors");
  require_error<ShapeError>(
      [&] {
        multi_dot({a, zeros({3, 2}, f64), a});
      },
      "multi_dot: cannot multiply (2, 2) by (3, 2), tensors 0 and 1");
  require_error<ShapeError>(
      [&] {
        chain_matmul({a[0], a});
      },
      "chain_matmul: tensor 0 has shape (2,), but must be a matrix");
}

BOOST_AUTO_TEST_CASE(sums_over_given_dimensions) {
  const Tensor a = sample({2, 3, 4}), b = sample({4, 2, 5}, 0.6);
  require_equal(tensordot(a, b, {2, 0}, {0, 1}), einsum("ijk,kil->jl", {a, b}), 1e-12);
  require_equal(tensordot(a, b, {-1}, {0}), einsum("ijk,kml->ijml", {a, b}), 1e-12);
  require_error<ShapeError>([&] { tensordot(a, b, {0}, {0}); }, "tensordot: dim 0 of (2, 3, 4)");
  require_error<ValueError>([&] { tensordot(a, b, {0, 1}, {0}); }, "tensordot", "(0, 1) and (0,)");
  require_error<ValueError>(
      [&] {
        tensordot(a, b, {0, -3}, {1, 1});
      },
      "tensordot: dims_a", "twice");
  require_error<ValueError>([&] { tensordot(a, b, 4); }, "tensordot: dims must be from 0");
}

// Distances of rows that are equal have a gradient of 0, by both ways to compute them.
BOOST_AUTO_TEST_CASE(distances_of_equal_rows) {
  for (const char* mode : {"use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"}) {
    const Tensor x = doubles({1, 2, 4, 6}, {2, 2}).requires_grad_();
    const Tensor d = cdist(x, x.detach(), 2, mode);
    require_values(d, {2, 2}, {0, 5, 5, 0}, 1e-7);
    d.sum().backward();
    require_values(x.grad(), {2, 2}, {-0.6, -0.8, 0.6, 0.8}, 1e-7);
  }
  require_values(cdist(zeros({2, 0}), zeros({3, 0}), INFINITY), {2, 3}, {0, 0, 0, 0, 0, 0});
  require_error<ValueError>(
      [] {
        cdist(ones({1, 1}), ones({1, 1}), -1);
      },
      "cdist: p must not be negative");
  require_error<ValueError>(
      [] {
        cdist(ones({1, 1}), ones({1, 1}), 2, "fast");
      },
      "cdist: compute_mode must be", "\"fast\"");
  require_error<ShapeError>([] { cdist(ones({1, 1}), ones({1, 2})); }, "cdist: expects rows");
}

BOOST_AUTO_TEST_CASE(directions) {
  const Tensor zero = zeros({1, 2}, f64).requires_grad_();
  const Tensor y = normalize(zero);
  require_values(y, {1, 2}, {0, 0});
  y.sum().backward();
  require_values(zero.grad(), {1, 2}, {1e12, 1e12}, 1e-3);
  require_values(cosine_similarity(doubles({3, 4}, {2}), doubles({4, 3}, {2}), 0), {}, {0.96});
  require_values(cosine_similarity(zero.detach(), ones({1, 2}, f64)), {1}, {0});
  require_values(pairwise_distance(ints({3, 4}, {2}), ints({0, 0}, {2})), {}, {5}, 1e-5);
  require_error<IndexError>([] { cosine_similarity(ones(2), ones(2)); },
                            "cosine_similarity: dim 1");
}

BOOST_AUTO_TEST_CASE(weights_of_observations) {
  const Tensor x = doubles({1, 2, 4, 3, 5, 4}, {2, 3});
  // Whole weights are repetitions.
  require_equal(cov(x, 1, ints({1, 2, 1}, {3})), cov(repeat_interleave(x, ints({1, 2, 1}, {3}), 1)),
                1e-12);
  require_values(corrcoef(doubles({1, 2, 3}, {3})), {}, {1});
  require_error<ShapeError>([&] { cov(x, 1, ints({1}, {1})); },
                            "cov: fweights must have shape (3,)");
  require_error<DTypeError>([&] { cov(x, 1, ones(3, f64)); }, "cov: fweights must be integers");
  require_error<DTypeError>(
      [&] {
        cov(x, 1, Tensor(), ints({1, 1, 1}, {3}));
      },
      "cov: aweights must be floating");
  require_error<ShapeError>([&] { cov(x.unsqueeze(0)); }, "cov: expects a matrix");
}

BOOST_AUTO_TEST_SUITE_END()
