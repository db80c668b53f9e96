// Sequences, unit matrices, indices and tensors like others: values and errors beside the table.
#include <algorithm>
#include <limits>

#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/random.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(creation)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(sequences) {
  require_values(linspace(3, 10, 5), {5}, {3, 4.75, 6.5, 8.25, 10});
  require_values(linspace(0, 10, 4, {.dtype = i64}), {4}, {0, 3, 6, 10});
  require_values(linspace(-1, 1, 1), {1}, {-1});
  const Tensor x = linspace(0.1, 0.7, 1001, {.dtype = f64, .requires_grad = true});
  BOOST_CHECK(x.requires_grad());
  BOOST_CHECK_EQUAL(x.to_vector<double>().back(), 0.7);
  require_values(logspace(0, 3, 4, 10, {.dtype = i64}), {4}, {1, 10, 100, 1000});
  require_error<ValueError>([] { linspace(0, 1, -1); },
                            "linspace: the number of steps must not be negative, found -1");
  require_error<ValueError>([] { logspace(0, INFINITY, 3); },
                            "logspace: start and end must be finite");
  require_error<ValueError>([] { linspace(0, 300, 3, {.dtype = u8}); },
                            "linspace: the number 300 has no value in u8");
  require_error<ValueError>([] { logspace(0, 3, 4, 10, {.dtype = u8}); },
                            "logspace: the number 1000 has no value in u8");
  require_error<DTypeError>([] { linspace(0, 1, 3, {.dtype = boolean}); }, "linspace");
}

BOOST_AUTO_TEST_CASE(unit_matrices_and_triangles) {
  require_values(eye(2, 3), {2, 3}, {1, 0, 0, 0, 1, 0});
  require_values(eye(2, {.dtype = boolean}).to(i64), {2, 2}, {1, 0, 0, 1});
  BOOST_CHECK(eye(2, {.requires_grad = true}).requires_grad());
  require_values(tril_indices(2, 3), {2, 3}, {0, 1, 1, 0, 0, 1});
  require_values(triu_indices(2, 3, 1, {.dtype = i32}), {2, 3}, {0, 0, 1, 1, 2, 2});
  BOOST_CHECK_EQUAL(tril_indices(3, 3, std::numeric_limits<int64_t>::min()).numel(), 0);
  BOOST_CHECK_EQUAL(tril_indices(3, 3, std::numeric_limits<int64_t>::max()).numel(), 18);
  require_error<ShapeError>([] { eye(-1); }, "eye: n and m must not be negative, found -1");
  require_error<ValueError>([] { triu_indices(2, -3); },
                            "triu_indices: row and col must not be negative, found 2 and -3");
}

BOOST_AUTO_TEST_CASE(tensors_like_others) {
  const Tensor x = zeros({2, 3}, f64);
  BOOST_CHECK(full_like(x, 1.5).dtype() == f64);
  require_values(full_like(x, 2, {.dtype = i64}), {2, 3}, {2, 2, 2, 2, 2, 2});
  BOOST_CHECK(zeros_like(x, {.dtype = i32}).dtype() == i32);
  BOOST_CHECK(ones_like(x, {.device = "cpu:1"}).device() == Device("cpu:1"));
  BOOST_CHECK(empty_like(x, {.requires_grad = true}).requires_grad());
  BOOST_CHECK_EQUAL(rand_like(x).shape().str(), "(2, 3)");
  BOOST_CHECK(randn_like(x, {.dtype = f32}).dtype() == f32);
  const auto drawn = randint_like(x, 3, 5).to_vector<double>();
  BOOST_CHECK(std::all_of(drawn.begin(), drawn.end(), [](double v) { return v == 3 || v == 4; }));
  require_error<DTypeError>([] { rand_like(zeros(2, i64)); },
                            "rand_like: rand: the dtype must be floating");
  require_error<ValueError>([] { full_like(Tensor(), 1); },
                            "full_like: like is an undefined tensor");
  require_error<ValueError>([] { full_like(zeros(2, u8), 256); }, "has no value in u8");
}

BOOST_AUTO_TEST_CASE(random_orders) {
  manual_seed(3);
  const auto first = randperm(1000).to_vector<int64_t>();
  auto sorted = first;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    BOOST_REQUIRE_EQUAL(sorted[i], static_cast<int64_t>(i));
  BOOST_CHECK(first != sorted);
  BOOST_CHECK(randperm(1000).to_vector<int64_t>() != first);
  manual_seed(3);
  BOOST_CHECK(randperm(1000).to_vector<int64_t>() == first);
  // Each of the six orders of three comes about as often.
  std::vector<int> counts(27, 0);
  for (int i = 0; i < 600; ++i) {
    const auto order = randperm(3).to_vector<int64_t>();
    ++counts[static_cast<size_t>(order[0] * 9 + order[1] * 3 + order[2])];
  }
  BOOST_CHECK_EQUAL(std::count(counts.begin(), counts.end(), 0), 21);
  for (int count : counts) BOOST_CHECK(count == 0 || (count > 60 && count < 140));
  BOOST_CHECK(randperm(5, {.dtype = u8}).dtype() == u8);
  require_error<ValueError>([] { randperm(-1); }, "randperm: n must not be negative");
  require_error<ValueError>([] { randperm(257, {.dtype = u8}); }, "has no value in u8");
}

BOOST_AUTO_TEST_CASE(draws_of_given_probabilities) {
  manual_seed(5);
  require_values(bernoulli(doubles({0, 1, 1, 0}, {4})), {4}, {0, 1, 1, 0});
  const double share = bernoulli(full({100000}, 0.3)).mean().item();
  BOOST_CHECK(share > 0.29 && share < 0.31);
  BOOST_CHECK(bernoulli(ones({3}, f16)).dtype() == f16);
  BOOST_CHECK(!bernoulli(full({2}, 0.5, {.requires_grad = true})).requires_grad());
  require_error<DTypeError>([] { bernoulli(zeros(2, i64)); },
                            "bernoulli: x must hold probabilities of a floating type, found i64");
}

BOOST_AUTO_TEST_CASE(draws_of_classes) {
  manual_seed(6);
  const Tensor weights = doubles({1, 0, 3, 6}, {4});
  for (bool replacement : {true, false}) {
    // How often each class comes first.
    const Tensor rows = weights.expand({20000, 4});
    const auto drawn = multinomial(rows, replacement ? 2 : 3, replacement).select(1, 0);
    const auto counts = one_hot(drawn, 4).sum(0).to_vector<double>();
    BOOST_CHECK_EQUAL(counts[1], 0);
    BOOST_CHECK(counts[0] > 1800 && counts[0] < 2200);
    BOOST_CHECK(counts[3] > 11600 && counts[3] < 12400);
  }
  auto all = multinomial(weights, 4).to_vector<int64_t>();
  BOOST_CHECK_EQUAL(all[3], 1);  // nothing else was left
  std::sort(all.begin(), all.end());
  BOOST_CHECK(all == (std::vector<int64_t>{0, 1, 2, 3}));
  BOOST_CHECK_EQUAL(multinomial(weights.to(f16), 5, true).shape().str(), "(5,)");
  require_error<ValueError>([&] { multinomial(weights, 5); },
                            "multinomial: num_samples must be positive and, without replacement",
                            "found 5 for 4 classes");
  require_error<ValueError>([&] { multinomial(weights, 0, true); }, "found 0");
  require_error<ShapeError>([&] { multinomial(scalar(1), 1); }, "multinomial: expects weights");
  require_error<DTypeError>([] { multinomial(ones({2}, i64), 1); },
                            "multinomial: x must hold weights of a floating type, found i64");
}

BOOST_AUTO_TEST_CASE(classes_as_vectors) {
  require_values(one_hot(ints({1, 0, 2}, {3})), {3, 3}, {0, 1, 0, 1, 0, 0, 0, 0, 1});
  require_values(one_hot(ints({1}, {1}).to(i32), 3), {1, 3}, {0, 1, 0});
  BOOST_CHECK(one_hot(ints({1}, {1})).dtype() == i64);
  BOOST_CHECK_EQUAL(one_hot(zeros({0, 2}, i64), 4).shape().str(), "(0, 2, 4)");
  require_error<IndexError>([] { one_hot(ints({0, 5}, {2}), 3).wait(); }, "5");
  require_error<IndexError>([] { one_hot(ints({0, -1}, {2}), 3).wait(); }, "-1");
  require_error<ValueError>([] { one_hot(zeros({0}, i64)); },
                            "one_hot: a tensor without elements does not tell");
  require_error<ValueError>([] { one_hot(ints({1}, {1}), -2); },
                            "one_hot: num_classes must be positive", "found -2");
  require_error<DTypeError>([] { one_hot(zeros(2)); }, "one_hot: x must be i64 or i32, found f32");
}

BOOST_AUTO_TEST_SUITE_END()
