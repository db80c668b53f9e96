// Padding and windows: values and errors that the table does not have.
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(shape)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(borders) {
  const Tensor x = doubles({1, 2, 3, 4}, {4});
  require_values(pad(x, {1, 2}), {7}, {0, 1, 2, 3, 4, 0, 0});
  require_values(pad(x, {-1, 1}, "constant", 9), {4}, {2, 3, 4, 9});
  require_values(pad(x, {3, 2}, "reflect"), {9}, {4, 3, 2, 1, 2, 3, 4, 3, 2});
  require_values(pad(x, {2, 1}, "replicate"), {7}, {1, 1, 1, 2, 3, 4, 4});
  require_values(pad(x, {4, 1}, "circular"), {9}, {1, 2, 3, 4, 1, 2, 3, 4, 1});
  // A mirror shows what was removed, the other end of a circle does not.
  require_values(pad(x, {-2, 3}, "reflect"), {5}, {3, 4, 3, 2, 1});
  require_values(pad(x, {-2, 2}, "circular"), {4}, {3, 4, 3, 4});
  require_values(pad(doubles({1, 2, 3, 4}, {2, 2}), {1, 1, 1, 0}, "circular"), {3, 4},
                 {4, 3, 4, 3, 2, 1, 2, 1, 4, 3, 4, 3});
  require_values(pad(bools({1, 0}, {2}), {0, 1}, "constant", true).to(i64), {3}, {1, 0, 1});
  BOOST_CHECK_EQUAL(pad(zeros({2, 0}), {1, 1}).shape().str(), "(2, 2)");
  BOOST_CHECK_EQUAL(pad(zeros({0, 3}), {1, 1}, "reflect").shape().str(), "(0, 5)");
}

BOOST_AUTO_TEST_CASE(errors_of_padding) {
  const Tensor x = zeros({2, 3});
  require_error<ValueError>(
      [&] {
        pad(x, {1, 1}, "mirror");
      },
      "pad: mode must be \"constant\"", "found \"mirror\"");
  require_error<ValueError>([&] { pad(x, {1}); }, "pad: needs two sizes for each dimension",
                            "found 1 sizes");
  require_error<ValueError>([&] { pad(x, {1, 1, 1, 1, 1, 1}); }, "at most 4", "found 6");
  require_error<ValueError>(
      [&] {
        pad(zeros({2, 2, 2, 2}), {1, 1, 1, 1, 1, 1, 1, 1}, "replicate");
      },
      "at most 6");
  require_error<ShapeError>(
      [&] {
        pad(x, {3, 0}, "reflect");
      },
      "mode \"reflect\" repeats the elements of dim 1", "at most 2");
  require_error<ShapeError>([&] { pad(x, {0, 4}, "circular"); }, "at most 3 on each side");
  require_error<ShapeError>([&] { pad(zeros({2, 0}), {1, 0}, "replicate"); }, "at most 0");
  require_error<ShapeError>([&] { pad(x, {-2, -2}); }, "pad: -2 and -2 remove more than the 3");
  require_error<ShapeError>(
      [&] {
        pad(x, {int64_t{1} << 61, 0});
      },
      "pad", "more elements than can be addressed");
  require_error<ValueError>(
      [] {
        pad(ints({1}, {1}).to(u8), {1, 1}, "constant", 300);
      },
      "pad: the number 300 has no value in u8");
}

BOOST_AUTO_TEST_CASE(windows_of_images) {
  const Tensor x = arange(0, 6, 1, f64).reshape({1, 1, 2, 3});
  const Tensor columns = unfold(x, {2, 2});
  require_values(columns, {1, 4, 2}, {0, 1, 1, 2, 3, 4, 4, 5});
  require_values(fold(columns, {2, 3}, 2), {1, 1, 2, 3}, {0, 2, 2, 3, 8, 5});
  // The corners and one element between them: rows 0 and 2, columns 0, 2 and 4 of the padded image.
  require_values(unfold(x[0] + 1, 1, {.padding = 1, .stride = 2}), {1, 6}, {0, 0, 0, 0, 5, 0});
  require_error<ShapeError>([&] { unfold(x, 3); }, "unfold: a kernel of (3, 3)",
                            "an image of (2, 3)");
  require_error<ShapeError>([&] { unfold(x[0][0], 1); }, "unfold: expects x of shape (n, c, h, w)");
  require_error<ValueError>([&] { unfold(x, 2, {.stride = 0}); }, "unfold: stride must be from 1");
  require_error<ShapeError>(
      [&] {
        fold(columns, {2, 4}, 2);
      },
      "fold: shape (1, 4, 2) does not fit", "must be 3");
  require_error<ShapeError>([&] { fold(columns, {3, 3}, {3, 2}); }, "multiple of the 6 elements");
}

BOOST_AUTO_TEST_CASE(windows_of_a_dimension) {
  const Tensor x = arange(0, 7, 1, f64);
  require_values(x.unfold(0, 3, 2), {3, 3}, {0, 1, 2, 2, 3, 4, 4, 5, 6});
  require_values(x.unfold(-1, 2, 4), {2, 2}, {0, 1, 4, 5});
  require_values(scalar(5, f64).unfold(0, 1, 1), {1}, {5});
  const Tensor leaf = x.clone().requires_grad_();
  leaf.unfold(0, 3, 2).sum().backward();
  require_values(leaf.grad(), {7}, {1, 1, 2, 1, 2, 1, 1});
  // One window, whose step times the stride of the dimension is more than 64 bits hold.
  const Tensor wide = zeros({3, int64_t{1} << 40, 0}).unfold(0, 2, int64_t{1} << 40);
  BOOST_TEST(wide.shape().str() == "(1, 1099511627776, 0, 2)");
  require_error<ShapeError>([&] { x.unfold(0, 8, 1); },
                            "unfold: windows of 8 elements do not fit into dim 0 of shape (7,)");
  require_error<ValueError>([&] { x.unfold(0, 2, 0); },
                            "unfold: size must not be negative and step positive, found 2 and 0");
}

BOOST_AUTO_TEST_SUITE_END()
