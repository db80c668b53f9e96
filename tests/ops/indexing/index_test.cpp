#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(indexing)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(gradients_add_up_where_an_index_repeats) {
  Tensor indices = ints({1, 3, 1, 0, 1, 3}, {2, 3});
  check_gradients([&](auto& v) { return square(embedding(indices, v[0])); }, {sample({4, 3})},
                  "embedding");
}

// As if that row were a constant, in the second order too.
BOOST_AUTO_TEST_CASE(the_padding_row_is_a_constant_to_gradients) {
  Tensor w = sample({4, 3}).requires_grad_();
  Tensor indices = ints({1, 3, 1, 0, 1, 3}, {2, 3}), is_padding = bools({0, 1, 0, 0}, {4, 1});
  Tensor found = weighted_sum(pow(embedding(indices, w, 1), 3), 0.5);
  Tensor expected = weighted_sum(pow(embedding(indices, where(is_padding, w.detach(), w)), 3), 0.5);
  Tensor g = grad(found, w, {.create_graph = true}), h = grad(expected, w, {.create_graph = true});
  require_equal(g, h, 1e-12);
  require_equal(grad(weighted_sum(g, 1), w), grad(weighted_sum(h, 1), w), 1e-12);
}

BOOST_AUTO_TEST_CASE(the_padding_row_gets_no_gradient) {
  Tensor w = sample({3, 2}).requires_grad_();
  sum(embedding(ints({0, 1, 1}, {3}), w, 1)).backward();
  require_values(w.grad(), {3, 2}, {1, 1, 0, 0, 0, 0});
}

BOOST_AUTO_TEST_CASE(index_select_and_gather_gradients) {
  Tensor x = sample({3, 4, 2});
  Tensor list = ints({2, 0, 2}, {3});
  for (int64_t dim : {0, 1})
    check_gradients([&](auto& v) { return square(index_select(v[0], dim, list)); }, {x},
                    "index_select");
  Tensor at = ints({0, 2, 1, 1, 3, 3, 0, 0, 2, 1, 2, 2}, {3, 2, 2});
  check_gradients([&](auto& v) { return square(gather(v[0], 1, at)); }, {x}, "gather");
  check_gradients(
      [&](auto& v) {
        return square(gather(v[0], -1, ints({1, 1, 0, 1}, {2, 2, 1})));
      },
      {x}, "gather");
}

BOOST_AUTO_TEST_CASE(values) {
  Tensor x = doubles({0, 1, 2, 10, 11, 12}, {2, 3});
  require_values(embedding(ints({1, 0}, {2, 1}), x), {2, 1, 3}, {10, 11, 12, 0, 1, 2});
  require_values(embedding(ints({1}, {}), x), {3}, {10, 11, 12});
  require_values(index_select(x, 1, ints({2, 2, 0}, {3}).to(i32)), {2, 3}, {2, 2, 0, 12, 12, 10});
  require_values(index_select(x.t(), 0, ints({1}, {})), {1, 2}, {1, 11});
  require_values(gather(x, 1, ints({2, 0, 1, 1}, {2, 2})), {2, 2}, {2, 0, 11, 11});
  require_values(gather(x, 0, ints({1, 0}, {1, 2})), {1, 2}, {10, 1});
  require_values(gather(x.t(), 1, ints({1, 0, 1}, {3, 1})), {3, 1}, {10, 1, 12});
  require_values(index_select(ints({5, 6}, {2}), 0, ints({1}, {1})), {1}, {6});
  require_values(embedding(ints({}, {0}), x), {0, 3}, {});
  require_values(gather(x, 1, ints({}, {2, 0})), {2, 0}, {});
}

// Longer than the blocks in which a kernel may check indices, and no multiple of a packet.
BOOST_AUTO_TEST_CASE(gather_of_long_rows) {
  constexpr int64_t rows = 2, length = 1205;
  std::vector<int64_t> at(rows * length);
  std::vector<double> values(at.size()), expected(at.size());
  for (size_t i = 0; i < at.size(); ++i) {
    at[i] = static_cast<int64_t>(i) * 7 % length;
    values[i] = static_cast<double>(i % 101);
  }
  for (size_t i = 0; i < at.size(); ++i)
    expected[i] = values[i / length * length + static_cast<size_t>(at[i])];
  const Tensor index = ints(at, {rows, length}), x = doubles(values, {rows, length});
  for (DType dtype : {u8, bf16, f32, f64}) {
    const Tensor seen = x.to(dtype), sideways = gather(seen.t(), 0, index.t().contiguous());
    BOOST_TEST(gather(seen, 1, index).to(f64).to_vector<double>() == expected);
    BOOST_TEST(gather(seen, 1, index.to(i32)).to(f64).to_vector<double>() == expected);
    BOOST_TEST(sideways.t().contiguous().to(f64).to_vector<double>() == expected);
  }
  at[700] = length;
  require_error<IndexError>(
      [&] {
        gather(x, 1, ints(at, {rows, length})).wait();
      },
      "index 1205 at position 700 is outside [0, 1205)");
}

BOOST_AUTO_TEST_CASE(bad_input) {
  Tensor x = zeros({2, 3});
  require_error<IndexError>([&] { embedding(ints({0, 2}, {2}), x).wait(); }, "2");
  require_error<IndexError>([&] { index_select(x, 0, ints({-1}, {1})).wait(); }, "-1");
  require_error<IndexError>([&] { gather(x, 1, ints({3}, {1, 1})).wait(); }, "3");
  require_error<DTypeError>([&] { embedding(zeros({2}), x); },
                            "embedding: indices must be i64 or i32, found f32");
  require_error<ShapeError>([&] { embedding(ints({0}, {1}), zeros({3})); },
                            "weight must have shape (v, d)");
  require_error<IndexError>([&] { embedding(ints({0}, {1}), x, 2); }, "padding_idx 2");
  require_error<ShapeError>(
      [&] {
        index_select(x, 0, ints({0, 0}, {1, 2}));
      },
      "index must have one dimension");
  require_error<ShapeError>(
      [&] {
        gather(x, 1, ints({0, 0, 0}, {3, 1}));
      },
      "gather: index has shape (3, 1)");
  require_error<ShapeError>([&] { gather(x, 1, ints({0}, {1})); }, "as many dimensions");
  require_error<IndexError>([&] { gather(x, 2, ints({0}, {1, 1})); }, "gather: dim 2");
}

BOOST_AUTO_TEST_SUITE_END()
