// Arithmetic that changes a tensor: add_, sub_, mul_, div_.
#include <tenon/core/grad_mode.h>
#include <tenon/core/ops/pointwise.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(pointwise)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(arithmetic_in_place) {
  Tensor x = doubles({1, 2, 3, 4, 5, 6}, {2, 3});
  const uint64_t before = x.version();
  Tensor row = x[1];
  require_values(row.add_(doubles({1, 1, 1}, {3})), {3}, {5, 6, 7});
  require_values(x.mul_(2).sub_(1), {2, 3}, {1, 3, 5, 9, 11, 13});
  require_values(x.div_(doubles({1, 3, 5}, {3})), {2, 3}, {1, 1, 1, 9, 11.0 / 3, 2.6});
  BOOST_CHECK(x.version() > before);
  require_values(x.t().add_(doubles({0, 10}, {2})), {3, 2}, {1, 19, 1, 11.0 / 3 + 10, 1, 12.6});
  require_values(x.narrow(1, 0, 1), {2, 1}, {1, 19});
  Tensor whole = ints({7, 8}, {2});
  require_values(whole.mul_(3).add_(whole), {2}, {42, 48});
  BOOST_CHECK(whole.dtype() == i64);
  Tensor half = ones({2}, f16);
  BOOST_CHECK(half.add_(ones({2}, f32)).dtype() == f16);
}

BOOST_AUTO_TEST_CASE(errors_of_arithmetic_in_place) {
  Tensor x = zeros({2}), whole = ints({1, 2}, {2});
  require_error<DTypeError>([&] { whole.add_(1.5); },
                            "add_: the result is f32, but the tensor that it changes is i64");
  require_error<DTypeError>([&] { whole.div_(2); }, "div_: the result is f32");
  require_error<ShapeError>(
      [&] {
        x.sub_(zeros({3, 2}));
      },
      "sub_: the result has shape (3, 2), but the tensor that it changes (2,)");
  require_error<ValueError>([&] { zeros({1}).expand({2}).mul_(2); }, "share one place in memory");
  require_error<ValueError>([&] { Tensor().add_(1); }, "add_: argument 0 is an undefined tensor");
  Tensor leaf = ones({2}, {.requires_grad = true});
  require_error<AutogradError>([&] { leaf.mul_(2); }, "mul_: changes a tensor in place");
  require_error<AutogradError>([&] { x.add_(leaf); }, "add_: the operand requires a gradient");
  no_grad([&] { leaf.mul_(2); });
  require_values(leaf.detach(), {2}, {2, 2});
}

BOOST_AUTO_TEST_SUITE_END()
