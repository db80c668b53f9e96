// Joining, splitting and grids: values and errors that the table does not have.
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(shape)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(tensors_side_by_side) {
  const Tensor a = doubles({1, 2}, {2}), b = doubles({3, 4}, {2}),
               m = doubles({5, 6, 7, 8}, {2, 2});
  require_values(hstack({a, scalar(9, f64), b}), {5}, {1, 2, 9, 3, 4});
  require_values(hstack({m, m}), {2, 4}, {5, 6, 5, 6, 7, 8, 7, 8});
  require_values(vstack({a, m}), {3, 2}, {1, 2, 5, 6, 7, 8});
  require_values(dstack({a, b}), {1, 2, 2}, {1, 3, 2, 4});
  require_values(column_stack({a, m}), {2, 3}, {1, 5, 6, 2, 7, 8});
  require_values(block_diag({a, m, scalar(9, f64)}), {4, 5},
                 {1, 2, 0, 0, 0, 0, 0, 5, 6, 0, 0, 0, 7, 8, 0, 0, 0, 0, 0, 9});
  require_error<ValueError>([] { hstack({}); }, "hstack: needs at least one tensor");
  require_error<ShapeError>([&] { block_diag({m.unsqueeze(0)}); },
                            "block_diag: tensor 0 has shape (1, 2, 2), but must be a matrix");
  require_error<ShapeError>([&] { vstack({m, ones({3}, f64)}); }, "(1, 3)", "(2, 2)");
}

BOOST_AUTO_TEST_CASE(pieces) {
  const Tensor x = arange(0, 10, 1, f64).reshape({2, 5});
  const auto even = x.tensor_split(3, 1);
  BOOST_REQUIRE_EQUAL(even.size(), 3u);
  require_values(even[0], {2, 2}, {0, 1, 5, 6});
  require_values(even[2], {2, 1}, {4, 9});
  BOOST_CHECK_EQUAL(x.tensor_split(7).back().shape().str(), "(0, 5)");
  const auto bounds = tensor_split(x, std::vector<int64_t>{1, -2, 9}, 1);
  BOOST_REQUIRE_EQUAL(bounds.size(), 4u);
  require_values(bounds[0], {2, 1}, {0, 5});
  require_values(bounds[1], {2, 2}, {1, 2, 6, 7});
  require_values(bounds[2], {2, 2}, {3, 4, 8, 9});
  BOOST_CHECK_EQUAL(bounds[3].numel(), 0);
  auto rows = x.unbind();
  BOOST_REQUIRE_EQUAL(rows.size(), 2u);
  rows[1].fill_(1);
  require_values(x.sum(1), {2}, {10, 5});
  require_error<ValueError>([&] { x.tensor_split(0); },
                            "tensor_split: the number of sections must be positive, found 0");
  require_error<ValueError>([&] { x[0][0].expand({1 << 25}).unbind(); }, "unbind",
                            "33554432 pieces");
}

BOOST_AUTO_TEST_CASE(grids) {
  const Tensor a = doubles({1, 2}, {2}), b = doubles({3, 4, 5}, {3});
  const auto ij = meshgrid({a, b}), xy = meshgrid({a, b}, "xy");
  require_values(ij[0], {2, 3}, {1, 1, 1, 2, 2, 2});
  require_values(ij[1], {2, 3}, {3, 4, 5, 3, 4, 5});
  require_values(xy[0], {3, 2}, {1, 2, 1, 2, 1, 2});
  require_values(xy[1], {3, 2}, {3, 3, 4, 4, 5, 5});
  require_values(cartesian_prod({a, b}), {6, 2}, {1, 3, 1, 4, 1, 5, 2, 3, 2, 4, 2, 5});
  require_values(cartesian_prod({a}), {2}, {1, 2});
  require_error<ValueError>([&] { meshgrid({a}, "yx"); },
                            "meshgrid: indexing must be \"ij\" or \"xy\", found \"yx\"");
  require_error<ShapeError>(
      [&] {
        meshgrid({a, ij[0]});
      },
      "meshgrid: tensor 1 has shape (2, 3), but must be a vector");
  require_error<ShapeError>([&] { cartesian_prod({scalar(1)}); }, "cartesian_prod: tensor 0");
}

BOOST_AUTO_TEST_SUITE_END()
