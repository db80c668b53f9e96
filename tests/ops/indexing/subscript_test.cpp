// Subscripts, to read and to write.
#include <concepts>
#include <type_traits>

#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/subscript.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(indexing)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(views_by_subscripts) {
  const Tensor x = arange(0, 24).view({2, 3, 4});
  require_values(subscript(x, 1, 2), {4}, {20, 21, 22, 23});
  require_values(subscript(x, Slice(), -1, Slice(1, 3)), {2, 2}, {9, 10, 21, 22});
  require_values(subscript(x, Ellipsis, 0), {2, 3}, {0, 4, 8, 12, 16, 20});
  require_values(subscript(x, 0, None, Slice(None, None, 2), Slice(-1)), {1, 2, 1}, {3, 11});
  BOOST_TEST(subscript(x, None, Ellipsis, None).shape().str() == "(1, 2, 3, 4, 1)");
  BOOST_TEST(subscript(x, Ellipsis).shape().str() == "(2, 3, 4)");
  BOOST_TEST(subscript(x, 0).sum().item() == 66.0);
}

BOOST_AUTO_TEST_CASE(tensors_as_subscripts) {
  const Tensor x = arange(0, 24).view({2, 3, 4});
  const Tensor rows = ints({2, 0}, {2}), mask = bools({1, 0, 1}, {3});
  require_values(subscript(x, 0, rows, 1), {2}, {9, 1});
  require_values(subscript(x, Slice(), rows, Slice(0, 1)), {2, 2, 1}, {8, 0, 20, 12});
  require_values(subscript(x, 1, mask, -1), {2}, {15, 23});
  require_values(subscript(x, Ellipsis, rows), {2, 3, 2},
                 {2, 0, 6, 4, 10, 8, 14, 12, 18, 16, 22, 20});
  require_values(subscript(x, None, gt(x, 21)), {1, 2}, {22, 23});
  BOOST_TEST(sum(subscript(x, 0, mask)).item() == 44.0);
  require_values(subscript(x, 0, mask, 0) + 1, {2}, {1, 9});
}

BOOST_AUTO_TEST_CASE(parts_are_written) {
  Tensor x = zeros({3, 4});
  subscript(x, Slice(), 1) = floats({1, 2, 3}, {3});
  subscript(x, 0) = 5;
  subscript(x, Slice(1), Slice(2)) = floats({7, 8}, {1, 1, 2});
  require_values(x, {3, 4}, {5, 5, 5, 5, 0, 2, 7, 8, 0, 3, 7, 8});
  subscript(x, 2) = subscript(x, 1);
  subscript(x, 1, Slice(None, 2)) += 10;
  subscript(x, 0) *= subscript(x, 2);
  require_values(x, {3, 4}, {0, 10, 35, 40, 10, 12, 7, 8, 0, 2, 7, 8});
}

BOOST_AUTO_TEST_CASE(selections_are_written) {
  Tensor x = arange(0, 12).view({3, 4});
  subscript(x, gt(x, 8)) = 0.0;
  subscript(x, ints({0, 1}, {2}), ints({3, 0}, {2})) = floats({-1, -2}, {2});
  subscript(x, Slice(), bools({0, 1, 0, 0}, {4})) = -5;
  require_values(x, {3, 4}, {0, -5, 2, -1, -2, -5, 6, 7, 8, -5, 0, 0});
  subscript(x, ints({2, 2}, {2})) += 1;  // once, as in PyTorch
  require_values(subscript(x, 2), {4}, {9, -4, 1, 1});
  subscript(x, ints({0}, {1})) = subscript(x, ints({2}, {1}));
  require_values(subscript(x, 0), {4}, {9, -4, 1, 1});
  Tensor whole = ints({1, 2, 3}, {3});
  subscript(whole, ge(whole, 2)) = doubles({7, 8}, {2});
  require_values(whole, {3}, {1, 7, 8});
}

BOOST_AUTO_TEST_CASE(gradients_go_through_subscripts) {
  check_gradients(
      [](auto& v) -> Tensor {
        const Tensor chosen = subscript(v[0], Slice(1), ints({0, 2, 2}, {3}));
        return square(chosen) + subscript(v[0], 0, 1);
      },
      {sample({3, 4})}, "subscripts");
  Tensor x = zeros({3}).requires_grad_();
  require_error<AutogradError>([&] { subscript(x, 0) = 1; }, "fill_");
  require_error<AutogradError>([&] { subscript(x, gt(x, 0)) = 1; }, "masked_fill_");
  require_error<AutogradError>([&] { subscript(x, ints({0}, {1})) = ones({1}); }, "index_put_");
  NoGrad guard;
  subscript(x, ints({0}, {1})) = ones({1});
  require_values(x, {3}, {1, 0, 0});
}

// Where the subscripts are tensors alone, they choose from the whole tensor, whose history is then
// that of index_put and masked_fill.
BOOST_AUTO_TEST_CASE(assigning_to_selections_is_recorded) {
  const Tensor mask = bools({1, 0, 0, 1, 0, 0}, {2, 3}), rows = ints({1}, {1});
  const auto f = [&](const std::vector<Tensor>& in) {
    Tensor y = in[0] * 2.0, z = in[0] * 3.0;
    y(mask) = 0;
    y(rows) = in[1];
    z(mask) = in[1](Slice(0, 2));
    z(ints({0, 1}, {2}), ints({2, 2}, {2})) *= in[1](Slice(0, 2));
    return y * z;
  };
  check_gradients(f, {sample({2, 3}), sample({3}, 0.8)}, "assigning to selections");
  Tensor x = sample({2, 3}).requires_grad_(), y = x * 2.0;
  y(mask) = 0;
  sum(y).backward();
  require_values(x.grad(), {2, 3}, {0, 2, 2, 0, 2, 2});
  Tensor z = x * 2.0;
  require_error<AutogradError>([&] { z(Slice(0, 1), rows) = 1; }, "shares its memory");
  const Tensor view = z[0];
  require_error<AutogradError>([&] { z(mask) = 0; }, "shares its memory");
}

// A named part is not assigned to by accident, and a bool is no subscript.
static_assert(!std::assignable_from<Part&, const Tensor&>);
static_assert(!std::is_assignable_v<Part&, Part>);
static_assert(!std::is_assignable_v<Selection&, Selection>);
static_assert(!std::constructible_from<Subscript, bool>);

BOOST_AUTO_TEST_CASE(errors_of_subscripts) {
  const Tensor x = zeros({2, 3});
  require_error<IndexError>([&] { subscript(x, 0, 0, 0); }, "3 dimensions", "(2, 3)");
  require_error<IndexError>([&] { subscript(x, 2); }, "2");
  require_error<ValueError>([&] { subscript(x, Ellipsis, Ellipsis); }, "Ellipsis");
  require_error<ValueError>([&] { subscript(x, Slice(None, None, 0)); }, "step");
  require_error<ValueError>([&] { subscript(x, Tensor()); }, "undefined");
  require_error<ShapeError>([&] { subscript(x, bools({1}, {1})) = 1; }, "mask", "(1,)");
  require_error<ShapeError>([&] { subscript(x, 0) = zeros({2}); }, "copy_", "(2,)");
}

BOOST_AUTO_TEST_SUITE_END()
