// Equations of einsum: their values and errors, beside the table.
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(linalg)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(equations) {
  const Tensor a = sample({2, 3}), b = sample({3, 4}, 0.5), c = sample({2, 3, 4}, 0.7);
  require_equal(einsum("ij,jk->ik", {a, b}), matmul(a, b), 1e-12);
  require_equal(einsum(" i j , jk ", {a, b}), matmul(a, b), 1e-12);
  require_equal(einsum("jk,ij", {b, a}), matmul(a, b), 1e-12);
  require_equal(einsum("ba", {a}), a.t(), 0);
  require_equal(einsum("bA->", {a}), sum(a), 1e-12);
  require_equal(einsum("...j,j...->...", {a, b.select(1, 0)}), mv(a, b.select(1, 0)), 1e-12);
  require_equal(einsum("i...->...", {c}), sum(c, 0), 1e-12);
  require_equal(einsum("i...->i", {c}), sum(c, {1, 2}), 1e-12);
  require_equal(einsum("...ij,...jk->...ik", {c, sample({5, 1, 4, 2})}),
                matmul(c, sample({5, 1, 4, 2})), 1e-12);
  require_equal(einsum("ii,i->i", {sample({3, 3}), sample({3})}),
                diagonal(sample({3, 3})) * sample({3}), 1e-12);
  // A size of 1 broadcasts, in a sum too.
  require_equal(einsum("ij,jk->ik", {sample({2, 1}), b}), matmul(sample({2, 1}).expand({2, 3}), b),
                1e-12);
  require_equal(einsum("i,i->i", {sample({1}), sample({3})}), sample({1}) * sample({3}), 1e-12);
  BOOST_CHECK(einsum("ij,jk", {ones({2, 3}, i32), ones({3, 2}, i32)}).dtype() == i32);
  require_values(einsum("ij,jk", {ones({2, 3}, i32), ones({3, 2}, i32)}), {2, 2}, {3, 3, 3, 3});
  require_values(einsum("i,j,k->", {ones(2, f64), ones(3, f64), ones(4, f64)}), {}, {24});
  // Six operands, and more letters than a tensor has dimensions.
  const Tensor two = ones({2, 2}, f64);
  require_values(einsum("ab,cd,ef,gh,ij,kl->ak", {two, two, two, two, two, two}), {2, 2},
                 {1024, 1024, 1024, 1024});
}

BOOST_AUTO_TEST_CASE(errors_of_equations) {
  const Tensor a = zeros({2, 3}), b = zeros({3, 4});
  require_error<ValueError>([&] { einsum("ij,jk", {}); }, "einsum: needs at least one operand");
  require_error<ValueError>([&] { einsum("ij,jk", {a}); },
                            "\"ij,jk\" names 2 operands, but 1 are given");
  require_error<ValueError>([&] { einsum("ij;jk", {a}); }, "has ';' where a letter was expected");
  require_error<ValueError>([&] { einsum("ij,jk->ii", {a, b}); }, "has 'i' twice in the result");
  require_error<ValueError>(
      [&] {
        einsum("ij,jk->im", {a, b});
      },
      "has 'm' in the result, but in no operand");
  require_error<ValueError>([&] { einsum("...i...", {a}); }, "two ellipses");
  require_error<ShapeError>(
      [&] {
        einsum("ijk,jk", {a, b});
      },
      "operand 0 has shape (2, 3), but its subscripts \"ijk\" stand for 3");
  require_error<ShapeError>([&] { einsum("ij...k,jk", {a, b}); }, "at least 3 dimensions");
  require_error<ShapeError>(
      [&] {
        einsum("ij,ik->jk", {a, b});
      },
      "'i' of the equation stands for dimensions of 2 and 3, which do not broadcast");
  require_error<ShapeError>([&] { einsum("ii", {a}); },
                            "'i' of the equation stands for dimensions of 2 and 3 in one");
  require_error<DTypeError>([&] { einsum("i", {zeros(2, boolean)}); }, "operand 0 is bool");
  require_error<ValueError>([&] { einsum("i", {Tensor()}); },
                            "einsum: operands[0] is an undefined");
}

BOOST_AUTO_TEST_SUITE_END()
