#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(shape)

using namespace tenon;
using namespace tenon::test;

namespace {
// 0, 1, 2, … in the given shape.
Tensor counting(const Shape& shape) {
  return arange(0, static_cast<double>(shape.numel()), 1, {.dtype = f64}).reshape(shape);
}
bool shares(const Tensor& view, const Tensor& base) {
  uint64_t before = base.version();
  no_grad([&] { Tensor(view).fill_(1); });
  return base.version() == before + 1;
}
}  // namespace

BOOST_AUTO_TEST_CASE(views_show_the_same_values) {
  Tensor x = counting({2, 3, 4});
  require_values(x.permute({2, 0, 1}).select(0, 1), {2, 3}, {1, 5, 9, 13, 17, 21});
  require_values(x.transpose(0, -1).select(0, 3), {3, 2}, {3, 15, 7, 19, 11, 23});
  require_values(x.slice(2, 1, 100, 2).select(0, 1), {3, 2}, {13, 15, 17, 19, 21, 23});
  require_values(x.slice(2, -2, -1).flatten(), {6}, {2, 6, 10, 14, 18, 22});
  require_values(x.narrow(1, -1, 1).flatten(), {8}, {8, 9, 10, 11, 20, 21, 22, 23});
  require_values(x[-1][0], {4}, {12, 13, 14, 15});
  require_values(x.select(2, 0).expand({2, 2, 3}).select(0, 1), {2, 3}, {0, 4, 8, 12, 16, 20});
  require_values(counting({2, 1}).expand({-1, 3}), {2, 3}, {0, 0, 0, 1, 1, 1});
  require_values(x.flatten(1), {2, 12}, x.to_vector<double>());
  BOOST_CHECK_EQUAL(x.unsqueeze(-1).shape().str(), "(2, 3, 4, 1)");
  BOOST_CHECK_EQUAL(x.unsqueeze(1).squeeze(1).shape().str(), "(2, 3, 4)");
  BOOST_CHECK_EQUAL(x.squeeze(0).shape().str(), "(2, 3, 4)");
  BOOST_CHECK_EQUAL(squeeze(counting({1, 3, 1})).shape().str(), "(3,)");
  BOOST_CHECK_EQUAL(scalar(1).flatten().shape().str(), "(1,)");
}

BOOST_AUTO_TEST_CASE(views_share_storage_and_copies_do_not) {
  for (auto f : std::initializer_list<Function>{[](auto& v) {
                                                  return v[0].view({6, 2});
                                                },
                                                [](auto& v) {
                                                  return v[0].permute({1, 0});
                                                },
                                                [](auto& v) { return v[0].narrow(0, 1, 2); },
                                                [](auto& v) { return v[0].slice(1, 0, 4, 2); },
                                                [](auto& v) { return v[0].unsqueeze(0); },
                                                [](auto& v) { return v[0].select(0, 2); },
                                                [](auto& v) {
                                                  return v[0].t().reshape({4, 3, 1});
                                                },
                                                [](auto& v) {
                                                  return v[0].narrow(1, 1, 2).reshape({3, 1, 2});
                                                }}) {
    Tensor x = counting({3, 4});
    BOOST_CHECK(shares(f({x}), x));
  }
  Tensor x = counting({3, 4});
  BOOST_CHECK(!shares(x.t().reshape({12}), x));
  BOOST_CHECK(!shares(x.clone(), x));
  BOOST_CHECK(x.contiguous().is_same(x));
  require_values(x.t().contiguous().flatten(), {12}, x.t().reshape({12}).to_vector<double>());
}

// reshape of any view gives the values in row-major order, whether it had to copy or not.
BOOST_AUTO_TEST_CASE(reshape_keeps_the_order_of_any_view) {
  Tensor x = counting({4, 1, 6, 2});
  std::vector<Tensor> views = {x,
                               x.permute({2, 0, 3, 1}),
                               x.slice(0, 0, 4, 2).contiguous().transpose(0, 2),
                               x.slice(2, 1, 6, 3),
                               x.slice(2, 0, 6, 1).slice(0, 1, 3),
                               x.select(3, 1),
                               x.expand({4, 3, 6, 2}),
                               x.narrow(2, 2, 2)};
  for (auto& v : views) {
    auto expected = v.to_vector<double>();
    int64_t n = v.numel();
    for (int64_t a : {1, 2, 3, 4, 6})
      for (int64_t b : {1, 2, 4}) {
        if (n % (a * b) != 0) continue;
        require_values(v.reshape({a, n / (a * b), b}), {a, n / (a * b), b}, expected);
        require_values(v.reshape({a, 1, -1, b}), {a, 1, n / (a * b), b}, expected);
      }
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_views) {
  Tensor x = sample({2, 3, 4});
  struct Case {
    const char* name;
    Function f;
  };
  for (auto& c : std::initializer_list<Case>{
           {"reshape",
            [](auto& v) {
              return square(v[0].reshape({4, -1}));
            }},
           {"reshape with a copy",
            [](auto& v) {
              return square(v[0].permute({2, 1, 0}).reshape({8, 3}));
            }},
           {"permute",
            [](auto& v) {
              return square(v[0].permute({1, 2, 0}));
            }},
           {"transpose", [](auto& v) { return square(v[0].transpose(0, 2)); }},
           {"unsqueeze, squeeze", [](auto& v) { return square(v[0].unsqueeze(1).squeeze(1)); }},
           {"expand",
            [](auto& v) {
              return square(v[0].unsqueeze(1).expand({3, 2, 5, 3, 4}));
            }},
           {"narrow", [](auto& v) { return square(v[0].narrow(1, 1, 2)); }},
           {"slice", [](auto& v) { return square(v[0].slice(2, 0, 4, 3)); }},
           {"select", [](auto& v) { return square(v[0].select(1, 2)); }},
           {"contiguous", [](auto& v) { return square(v[0].t().contiguous()); }},
           {"clone", [](auto& v) { return square(v[0].clone()); }}})
    check_gradients(c.f, {std::string(c.name) == "contiguous" ? sample({3, 4}) : x}, c.name);
}

BOOST_AUTO_TEST_CASE(joining_and_splitting) {
  Tensor a = counting({2, 1}), b = counting({2, 2}) + 10;
  require_values(cat({a, b}, 1), {2, 3}, {0, 10, 11, 1, 12, 13});
  require_values(cat({zeros({0}, {.dtype = f64}), a, a}, -2), {4, 1}, {0, 1, 0, 1});
  require_values(cat({b.t(), b}, 0), {4, 2}, {10, 12, 11, 13, 10, 11, 12, 13});
  require_values(stack({counting({2}), counting({2}) + 5}, 1), {2, 2}, {0, 5, 1, 6});
  require_values(stack({scalar(1), scalar(2)}), {2}, {1, 2});
  BOOST_CHECK(cat({ints({1}, {1}), floats({1}, {1})}).dtype() == f32);
  BOOST_CHECK_EQUAL(cat({zeros({0}), zeros({0})}).shape().str(), "(0,)");

  auto pieces = split(counting({5}), 2);
  BOOST_REQUIRE_EQUAL(pieces.size(), 3u);
  require_values(pieces[2], {1}, {4});
  require_values(split(counting({5}), Shape{1, 4})[1], {4}, {1, 2, 3, 4});
  BOOST_CHECK_EQUAL(chunk(counting({8, 2}), 3, 0).size(), 3u);
  BOOST_CHECK_EQUAL(chunk(counting({8, 2}), 3, 0)[2].shape().str(), "(2, 2)");
  BOOST_CHECK_EQUAL(chunk(counting({2}), 4).size(), 2u);

  check_gradients(
      [](auto& v) {
        return square(cat({v[0], v[1], v[0]}, 1));
      },
      {sample({2, 1, 2}), sample({2, 3, 2}, 2)}, "cat");
  check_gradients(
      [](auto& v) {
        return square(stack({v[0], v[1]}, -1));
      },
      {sample({2, 2}), sample({2, 2}, 2)}, "stack");
  check_gradients([](auto& v) { return split(v[0], 2)[1] * chunk(v[0], 2)[0]; }, {sample({4, 2})},
                  "split, chunk");
}

BOOST_AUTO_TEST_CASE(pieces_without_elements) {
  Tensor a = ones({2, 3}).requires_grad_(), none = zeros({0}).requires_grad_(),
         no_rows = zeros({0, 3}).requires_grad_();
  Tensor y = cat({none, a, no_rows, none}, 0);
  BOOST_TEST(y.shape() == (Shape{2, 3}));
  y.sum().backward();
  require_values(a.grad(), {2, 3}, {1, 1, 1, 1, 1, 1});
  BOOST_TEST_REQUIRE(none.grad().defined());
  BOOST_TEST(none.grad().shape() == Shape{0});
  BOOST_TEST_REQUIRE(no_rows.grad().defined());
  BOOST_TEST(no_rows.grad().shape() == (Shape{0, 3}));
  none.set_grad({});
  BOOST_TEST(cat({none, a}, 1).shape() == (Shape{2, 3}));
  BOOST_TEST(grad(cat({none, none}).sum(), none).shape() == Shape{0});
  BOOST_TEST((grad(cat({none, doubles({1, 2}, {2})}).sum(), none).dtype() == f32));

  BOOST_TEST(chunk(zeros({0}), 3).size() == 3u);
  for (auto& piece : chunk(zeros({4, 0}), 5, 1)) BOOST_TEST(piece.shape() == (Shape{4, 0}));
  BOOST_TEST(chunk(zeros({4, 0}), 5, 1).size() == 5u);
  BOOST_TEST(chunk(zeros({4, 0}), 2, 0).size() == 2u);
  BOOST_TEST(split(zeros({0, 2}), 2).size() == 1u);
  Tensor x = zeros({0, 2}).requires_grad_();
  BOOST_TEST(grad(chunk(x, 3)[2].sum(), x).shape() == (Shape{0, 2}));
}

BOOST_AUTO_TEST_CASE(empty_tensors) {
  Tensor x = zeros({0, 3});
  BOOST_CHECK_EQUAL(x.reshape({3, 0}).shape().str(), "(3, 0)");
  BOOST_CHECK_EQUAL(x.t().shape().str(), "(3, 0)");
  BOOST_CHECK_EQUAL(x.slice(1, 2, 1).shape().str(), "(0, 0)");
  BOOST_CHECK_EQUAL(zeros({4}).narrow(0, 4, 0).shape().str(), "(0,)");
  BOOST_CHECK_EQUAL(x.expand({2, 0, 3}).shape().str(), "(2, 0, 3)");
  BOOST_CHECK_EQUAL(split(x, 2).size(), 1u);
}

BOOST_AUTO_TEST_CASE(bad_input) {
  Tensor x = zeros({2, 3});
  require_error<ShapeError>(
      [&] {
        x.reshape({4, 2});
      },
      "reshape: cannot give shape (4, 2) to a tensor of shape (2, 3), which has 6 elements");
  require_error<ShapeError>([&] { x.reshape({-1, -1}); }, "only one dimension");
  require_error<ShapeError>([&] { x.reshape({-1, 4}); }, "(-1, 4)");
  require_error<ShapeError>([&] { zeros({0, 3}).reshape({-1, 0}); }, "reshape");
  require_error<ShapeError>([&] { x.t().view({6}); }, "use reshape");
  require_error<ShapeError>([&] { x.reshape({1LL << 40, 1LL << 40}); }, "reshape");
  require_error<IndexError>(
      [&] { x.unsqueeze(3); },
      "unsqueeze: dim 3 is out of range for a tensor of 2 dimensions; it must lie "
      "in [-3, 2]");
  require_error<IndexError>(
      [&] {
        stack({x, x}, 3);
      },
      "stack: dim 3 is out of range for a tensor of 2 dimensions; it must "
      "lie in [-3, 2]");
  require_error<IndexError>([&] { x.select(1, 3); },
                            "select: index 3 is out of range for dim 1 of shape (2, 3); it must "
                            "lie in [-3, 2]");
  require_error<IndexError>(
      [&] { x.transpose(0, 2); },
      "transpose: dim 2 is out of range for a tensor of 2 dimensions; it must lie in [-2, 1]");
  require_error<ValueError>([&] { x.permute({0, 0}); }, "must hold each dimension");
  require_error<ShapeError>(
      [&] {
        x.expand({2, 4});
      },
      "expand: cannot expand shape (2, 3) to (2, 4)");
  require_error<ShapeError>([&] { x.expand({3}); }, "fewer dimensions");
  require_error<IndexError>([&] { x.narrow(1, 2, 2); }, "narrow: start 2 and length 2");
  require_error<ValueError>([&] { x.slice(0, 0, 2, 0); }, "step must be positive");
  require_error<IndexError>([&] { x[2]; },
                            "operator[]: index 2 is out of range for dim 0 of shape (2, 3)");
  require_error<ShapeError>([&] { cat({x, zeros({3, 3})}, 1); }, "cat: tensor 1 has shape (3, 3)");
  require_error<ValueError>([&] { cat(std::vector<Tensor>{}); }, "at least one");
  require_error<ShapeError>([&] { cat({scalar(1), scalar(2)}); }, "use stack");
  require_error<ShapeError>([&] { stack({x, zeros({3, 3})}); }, "all must be equal");
  require_error<ValueError>([&] { split(x, Shape{1, 3}, 0); }, "add up to 4");
  require_error<ShapeError>([&] { zeros({2, 2, 2}).t(); }, "expects a matrix");
}

BOOST_AUTO_TEST_SUITE_END()
