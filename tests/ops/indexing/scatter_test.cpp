// Writing at indices, several indices and masks: what the table cannot say, and errors.
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(indexing)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(the_last_of_several_is_written) {
  const Tensor x = zeros({3}), at = ints({1, 2, 1}, {3}), src = floats({1, 2, 3}, {3});
  require_values(scatter(x, 0, at, src), {3}, {0, 3, 2});
  require_values(index_copy(x, 0, at, src), {3}, {0, 3, 2});
  require_values(scatter(x, 0, at, 7), {3}, {0, 7, 7});
  require_values(x, {3}, {0, 0, 0});
}

BOOST_AUTO_TEST_CASE(what_takes_part_in_a_reduction) {
  const Tensor x = doubles({10, 20, 30}, {3}), at = ints({1, 1}, {2}), src = doubles({2, 4}, {2});
  require_values(scatter_reduce(x, 0, at, src, "mean"), {3}, {10, 26.0 / 3, 30});
  require_values(scatter_reduce(x, 0, at, src, "mean", false), {3}, {10, 3, 30});
  require_values(scatter_reduce(x, 0, at, src, "prod", false), {3}, {10, 8, 30});
  require_values(scatter_reduce(x, 0, at, src, "amax"), {3}, {10, 20, 30});
  require_values(scatter_reduce(x, 0, at, src, "amax", false), {3}, {10, 4, 30});
  require_values(scatter_reduce(x, 0, at, src, "amin", false), {3}, {10, 2, 30});
  const Tensor whole = ints({-3, 5}, {2});
  require_values(scatter_reduce(whole, 0, ints({0}, {1}), ints({-4}, {1}), "mean"), {2}, {-4, 5});
}

BOOST_AUTO_TEST_CASE(gradients_of_products_across_zeros) {
  const Tensor x = doubles({0, 2, 3}, {3}), src = doubles({4, 0, 5, 6}, {4});
  const Tensor at = ints({0, 1, 1, 2}, {4});
  const Tensor w = doubles({1, 2, 3}, {3});
  Tensor a = x.detach().requires_grad_(), b = src.detach().requires_grad_();
  sum(scatter_reduce(a, 0, at, b, "prod") * w).backward();
  require_values(a.grad(), {3}, {4, 0, 18});
  require_values(b.grad(), {4}, {0, 20, 0, 9});
}

BOOST_AUTO_TEST_CASE(halves_are_added_in_f32) {
  const Tensor x = zeros({1}, {.dtype = f16}), at = zeros({4096}, {.dtype = i64});
  const Tensor y = scatter_add(x, 0, at, full({4096}, 1, {.dtype = f16}));
  BOOST_TEST((y.dtype() == f16));
  BOOST_TEST(y.select(0, 0).item() == 4096.0);
  // A product with alpha is not rounded before it is added.
  const Tensor three = full({300}, 3, {.dtype = bf16}), rows = zeros({300}, {.dtype = i64});
  const Tensor thirds = index_add(zeros({1}, {.dtype = bf16}), 0, rows, three, 0.3346);
  BOOST_TEST((thirds.dtype() == bf16));
  require_values(thirds.to(f64), {1}, {302});
  Tensor table = zeros({2, 1}, {.dtype = f16}).requires_grad_();
  index_select(table, 0, zeros({3}, {.dtype = i64})).backward(ones({3, 1}, {.dtype = f16}));
  require_values(table.grad(), {2, 1}, {3, 0});
}

BOOST_AUTO_TEST_CASE(several_indices) {
  const Tensor x = arange(0, 24).view({2, 3, 4});
  require_values(index(x, {ints({1, -1}, {2}), ints({2, 0}, {2})}), {2, 4},
                 {20, 21, 22, 23, 12, 13, 14, 15});
  // Indices beside each other keep their place, others come first.
  BOOST_TEST(index(x, {Tensor(), ints({0, 1, 2, 0, 1}, {5})}).shape().str() == "(2, 5, 4)");
  BOOST_TEST(index(x, {ints({0}, {1}), Tensor(), ints({0, 1, 2}, {3})}).shape().str() == "(3, 3)");
  require_values(index(x, {Tensor(), bools({0, 1, 0}, {3}), ints({3}, {1})}), {2, 1}, {7, 19});
  require_values(take(x, ints({-1, 5}, {2})), {2}, {23, 5});
  require_values(take_along_dim(select(x, 0, 0), ints({-1, 2}, {1, 2}), 1), {3, 2},
                 {3, 2, 7, 6, 11, 10});
}

BOOST_AUTO_TEST_CASE(values_are_put_in_place) {
  Tensor x = zeros({3, 4});
  const uint64_t before = x.version();
  index_put_(x, {ints({0, 2}, {2})}, floats({1, 2, 3, 4}, {4}));
  BOOST_TEST(x.version() > before);
  index_put_(x, {ints({0, 0}, {2}), ints({1, 1}, {2})}, floats({5}, {1}), true);
  require_values(x, {3, 4}, {1, 12, 3, 4, 0, 0, 0, 0, 1, 2, 3, 4});
  Tensor turned = zeros({2, 3}).t();
  index_put_(turned, {ints({2}, {1})}, floats({7, 8}, {2}));
  require_values(turned, {3, 2}, {0, 0, 0, 0, 7, 8});
  // From itself.
  Tensor y = arange(0, 4);
  index_put_(y, {ints({3, 2, 1, 0}, {4})}, y);
  require_values(y, {4}, {3, 2, 1, 0});
  require_error<AutogradError>(
      [&] { index_put_(zeros({2}).requires_grad_(), {ints({0}, {1})}, ones({1})); }, "index_put_");
  require_error<AutogradError>(
      [&] { index_put_(zeros({2}), {ints({0}, {1})}, ones({1}).requires_grad_()); }, "index_put_");
}

BOOST_AUTO_TEST_CASE(masks) {
  const Tensor x = arange(0, 6).view({2, 3}), mask = bools({0, 1, 1, 1, 0, 0}, {2, 3});
  require_values(masked_select(x, mask), {3}, {1, 2, 3});
  require_values(masked_fill(x, mask, -1), {2, 3}, {0, -1, -1, -1, 4, 5});
  require_values(masked_scatter(x, mask, floats({7, 8, 9, 10}, {4})), {2, 3}, {0, 7, 8, 9, 4, 5});
  require_values(masked_scatter(x, zeros({3}, {.dtype = boolean}), zeros({0})), {2, 3},
                 {0, 1, 2, 3, 4, 5});
  require_values(nonzero(mask), {3, 2}, {0, 1, 0, 2, 1, 0});
  BOOST_TEST(nonzero(scalar(2)).shape().str() == "(1, 0)");
  require_error<IndexError>([&] { masked_scatter(x, mask, zeros({2})).wait(); }, "3");
}

BOOST_AUTO_TEST_CASE(many_writers_of_one_line_keep_the_order) {
  const int64_t n = 300000;
  const Tensor at = randint(0, 1000, {n}), src = arange(0, n);
  const auto found = scatter(zeros({1000}), 0, at, src).to_vector<float>();
  std::vector<float> expected(1000, 0);
  const auto places = at.to_vector<int64_t>();
  for (size_t i = 0; i < places.size(); ++i)
    expected[static_cast<size_t>(places[i])] = static_cast<float>(i);
  BOOST_TEST((found == expected));
}

BOOST_AUTO_TEST_CASE(errors_of_writing) {
  const Tensor x = zeros({2, 3}), at = ints({0, 1}, {2});
  require_error<IndexError>([&] { scatter(x, 1, ints({3}, {1, 1}), 1.0).wait(); }, "scatter", "3");
  require_error<DTypeError>([&] { scatter(x, 1, zeros({1, 1}), 1.0); }, "scatter: index", "f32");
  require_error<DTypeError>(
      [&] {
        scatter_add(x, 1, ints({0}, {1, 1}), ints({0}, {1, 1}));
      },
      "scatter_add", "i64");
  require_error<ShapeError>(
      [&] {
        scatter(x, 0, ints({0, 0, 0, 0}, {1, 4}), zeros({1, 4}));
      },
      "scatter", "(1, 4)");
  require_error<ShapeError>([&] { scatter(x, 0, at, zeros({2})); }, "scatter", "(2,)");
  require_error<ValueError>(
      [&] {
        scatter_reduce(x, 0, ints({0}, {1, 1}), zeros({1, 1}), "median");
      },
      "median");
  require_error<ShapeError>([&] { index_add(x, 1, at, x); }, "index_add", "(2, 3)");
  require_error<ShapeError>([&] { index_copy(x, 0, ints({0}, {1, 1}), x); }, "index_copy");
  require_error<ShapeError>([&] { index_fill(x, 0, ints({0}, {1, 1}), 1); }, "index_fill");
  require_error<IndexError>([&] { index(x, {at, at, at}); }, "index: 3 indices", "(2, 3)");
  require_error<IndexError>([&] { index(x, {ints({-3}, {1})}).wait(); }, "-3", "[-2, 2)");
  require_error<ShapeError>([&] { index(x, {zeros({3}, {.dtype = boolean})}); }, "mask", "(3,)");
  require_error<ShapeError>([&] { index(x, {at, ints({0, 1, 2}, {3})}); }, "index", "(3,)");
  require_error<DTypeError>([&] { index(x, {zeros({2})}); }, "index", "f32");
  require_error<ShapeError>([&] { index_put(x, {at}, zeros({4})); }, "index_put", "(4,)");
  require_error<DTypeError>([&] { index_put(x, {at}, ints({1}, {1})); }, "index_put", "i64");
  require_error<ShapeError>([&] { put(x, at, zeros({3})); }, "put", "3");
  require_error<DTypeError>([&] { masked_fill(x, x, 0); }, "masked_fill", "bool");
  require_error<ValueError>([&] { masked_fill(ints({1}, {1}).to(u8), bools({1}, {1}), 300); },
                            "masked_fill", "300");
  require_error<ShapeError>([&] { masked_select(x, zeros({2}, {.dtype = boolean})); },
                            "masked_select");
  require_error<DTypeError>([&] { masked_scatter(x, bools({1}, {1}), ints({1}, {1})); },
                            "masked_scatter", "i64");
  require_error<ShapeError>([&] { take_along_dim(x, at, 0); }, "take_along_dim", "(2,)");
}

BOOST_AUTO_TEST_CASE(a_source_that_gives_nothing_has_a_gradient) {
  const Tensor x = doubles({1, 2, 3}, {3}), none = zeros({0}, i64);
  const auto require_zeros = [&](const char* what, auto&& call) {
    BOOST_TEST_CONTEXT(what) {
      Tensor src = zeros({2}, {.dtype = f64, .requires_grad = true});
      const Tensor y = call(src);
      require_values(y, {3}, {1, 2, 3});
      y.sum().backward();
      require_values(src.grad(), {2}, {0, 0});
    }
  };
  const auto cut = [](const Tensor& src) { return src.narrow(0, 0, 0); };
  require_zeros("scatter", [&](auto& src) { return scatter(x, 0, none, src); });
  require_zeros("scatter_add", [&](auto& src) { return scatter_add(x, 0, none, src); });
  for (const char* how : {"sum", "prod", "amax", "amin", "mean"})
    require_zeros(how, [&](auto& src) { return scatter_reduce(x, 0, none, src, how); });
  require_zeros("index_add", [&](auto& src) { return index_add(x, 0, none, cut(src)); });
  require_zeros("index_copy", [&](auto& src) { return index_copy(x, 0, none, cut(src)); });
  require_zeros("index_put", [&](auto& src) { return index_put(x, {none}, cut(src)); });
  require_zeros("put", [&](auto& src) { return put(x, none, cut(src), true); });
}

BOOST_AUTO_TEST_CASE(means_of_large_integers_are_exact) {
  const int64_t large = int64_t{1} << 60;
  const Tensor mean = scatter_reduce(ints({0}, {1}), 0, ints({0, 0}, {2}),
                                     ints({large + 1, large + 3}, {2}), "mean", false);
  BOOST_TEST(mean.to_vector<int64_t>()[0] == large + 2);
  const Tensor any = scatter_reduce(bools({0, 0}, {2}), 0, ints({0, 0, 1}, {3}),
                                    bools({1, 0, 0}, {3}), "mean", false);
  require_values(any, {2}, {1, 0});
}

BOOST_AUTO_TEST_SUITE_END()
