// Scans and order: what the table cannot say, and errors.
#include <cmath>
#include <limits>

#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/scan.h>
#include <tenon/core/ops/sort.h>

#include "ops/check.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(reduction)

using namespace tenon;
using namespace tenon::test;

namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
}  // namespace

BOOST_AUTO_TEST_CASE(gradients_of_cumprod_across_zeros) {
  const Tensor x = doubles({2, 0, 3, 0.5, 1.5, 0, -2, 0, 4, 1, 1, 2}, {3, 4});
  for (int64_t dim : {0, 1})
    check_gradients([&](auto& v) { return square(cumprod(v[0], dim)) + cumprod(v[0], dim); }, {x},
                    "cumprod", 1e-5);
}

BOOST_AUTO_TEST_CASE(gradients_of_logcumsumexp_stay_numbers) {
  Tensor x = doubles({-kInf, 1, -2000, 3000, 0}, {5}).requires_grad_();
  sum(logcumsumexp(x, 0).narrow(0, 1, 4)).backward();
  require_values(x.grad(), {5}, {0, 2, 0, 2, 0});
}

BOOST_AUTO_TEST_CASE(scans_follow_dtypes) {
  const Tensor x = ints({250, 5, 7}, {3}).to(u8);
  BOOST_TEST((cumsum(x, 0).dtype() == i64));
  require_values(cumsum(x, 0), {3}, {250, 255, 262});
  require_values(cumsum(bools({1, 0, 1}, {3}), 0), {3}, {1, 1, 2});
  BOOST_TEST((cumsum(x, 0, f16).dtype() == f16));
  BOOST_TEST((cumprod(floats({2, 3}, {2}).to(bf16), 0).dtype() == bf16));
  // Sums of halves are rounded once.
  const Tensor ones = full({5000}, 1, {.dtype = f16});
  BOOST_TEST(cumsum(ones, 0).select(0, -1).item<double>() == 5000.0);
}

// Lines that are scanned together have the bits of each alone.
BOOST_AUTO_TEST_CASE(scans_of_several_lines) {
  const Tensor x = sample({7, 33}).to(f32);
  for (bool reverse : {false, true}) {
    const auto scanned = [&](const Tensor& t) {
      return reverse ? cumsum(t.flip({1}), 1).flip({1}) : cumsum(t, 1);
    };
    const Tensor y = scanned(x), largest = cummax(x, 1).values;
    for (int64_t i = 0; i < 7; ++i) {
      BOOST_TEST_REQUIRE(equal(y.narrow(0, i, 1), scanned(x.narrow(0, i, 1))), i);
      BOOST_TEST_REQUIRE(equal(largest.narrow(0, i, 1), cummax(x.narrow(0, i, 1), 1).values), i);
    }
  }
}

BOOST_AUTO_TEST_CASE(extremes_so_far) {
  const Tensor x = doubles({1, 3, 3, kNan, 5, kNan, 7}, {7});
  const auto [values, indices] = cummax(x, 0);
  require_values(values, {7}, {1, 3, 3, kNan, kNan, kNan, kNan});
  require_values(indices, {7}, {0, 1, 2, 3, 3, 5, 5});
}

BOOST_AUTO_TEST_CASE(sorted_lines) {
  const Tensor x = doubles({kNan, 2, -0.0, kInf, 0.0, kNan, -kInf, 2}, {8});
  auto up = sort(x, 0), down = sort(x, 0, true);
  require_values(up.indices, {8}, {6, 2, 4, 1, 7, 3, 0, 5});
  require_values(down.indices, {8}, {0, 5, 3, 1, 7, 2, 4, 6});
  require_values(topk(x, 4, 0).indices, {4}, {0, 5, 3, 1});
  require_values(topk(x, 2, 0, false).values, {2}, {-kInf, 0});
  const Tensor extremes =
      tensor(std::vector<int64_t>{0, INT64_MAX, INT64_MIN, -1, INT64_MAX - 1}, {5});
  require_values(argsort(extremes, 0), {5}, {2, 3, 0, 4, 1});
  require_values(sort(scalar(3.0)).indices, {}, {0});
  for (int64_t k : {0, 1}) {
    const Tensor number = scalar(3.0).requires_grad_();
    const auto first = topk(number, k);
    require_values(first.values, {}, {3});
    require_values(first.indices, {}, {0});
    require_values(grad(first.values, number), {}, {1});
  }
  require_values(topk(x, 0, 0).values, {0}, {});
}

BOOST_AUTO_TEST_CASE(long_lines_are_sorted_by_all_threads) {
  const int64_t n = 200000;
  const Tensor x = floor(rand({n}) * 1000);
  const auto [values, indices] = sort(x, 0, true);
  const auto v = values.to_vector<float>(), from = x.to_vector<float>();
  const auto places = indices.to_vector<int64_t>();
  size_t wrong = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    wrong += v[i] != from[static_cast<size_t>(places[i])];
    if (i > 0) wrong += v[i - 1] < v[i] || (v[i - 1] == v[i] && places[i - 1] > places[i]);
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(medians_and_modes) {
  const Tensor x = doubles({4, kNan, 1, 3, 2, kNan, kNan, kNan}, {2, 4});
  require_values(median(x, 1).values, {2}, {kNan, kNan});
  require_values(median(x, 1).indices, {2}, {1, 1});
  require_values(nanmedian(x, 1).values, {2}, {3, 2});
  require_values(nanmedian(x), {}, {2});
  BOOST_TEST(std::isnan(median(x).item()));
  BOOST_TEST(std::isnan(median(zeros({0})).item()));
  const auto most = mode(ints({5, 1, 5, 1, 7}, {5}), 0);
  require_values(most.values, {}, {1});
  require_values(most.indices, {}, {3});
}

BOOST_AUTO_TEST_CASE(quantiles_outside_are_nan) {
  const Tensor x = doubles({1, 2, 3}, {3});
  require_values(quantile(x, doubles({-0.1, 0.5, 1.1}, {3})), {3}, {kNan, 2, kNan});
  require_values(quantile(x, 0.25), {}, {1.5});
}

BOOST_AUTO_TEST_CASE(distinct_values) {
  const Unique y = unique(doubles({3, kNan, 1, 3, kNan}, {5}), true, true, true);
  require_values(y.values, {4}, {1, 3, kNan, kNan});
  require_values(y.inverse, {5}, {1, 2, 0, 1, 3});
  require_values(y.counts, {4}, {1, 2, 1, 1});
  const Unique columns = unique(ints({1, 0, 1, 2, 9, 2}, {2, 3}), true, true, false, 1);
  require_values(columns.values, {2, 2}, {0, 1, 9, 2});
  require_values(columns.inverse, {3}, {1, 0, 1});
  BOOST_TEST(!columns.counts.defined());
}

BOOST_AUTO_TEST_CASE(places_in_sequences) {
  const Tensor sequence = doubles({1, 3, 3, 5}, {4});
  require_values(searchsorted(sequence, doubles({3, kNan, 0, 9}, {4})), {4}, {1, 4, 0, 4});
  require_values(searchsorted(sequence, 3, {.side = "right"}), {}, {3});
  const Tensor mixed = doubles({5, 3, 1, 3}, {4});
  require_values(searchsorted(mixed, 4, {.sorter = argsort(mixed)}), {}, {3});
  BOOST_TEST((searchsorted(sequence, 4, {.out_int32 = true}).dtype() == i32));
  require_values(bucketize(4, sequence), {}, {3});
  require_values(searchsorted(ints({1, 2}, {2}), 1.5), {}, {1});
  require_values(isin(ints({1, 2, 3}, {3}), 2), {3}, {0, 1, 0});
}

BOOST_AUTO_TEST_CASE(errors_of_scans_and_order) {
  const Tensor x = zeros({2, 3});
  require_error<IndexError>([&] { cumsum(x, 2); }, "cumsum: dim 2");
  require_error<ValueError>([&] { cummax(Tensor(), 0); }, "cummax", "undefined");
  require_error<ValueError>([&] { diff(x, -1); }, "diff: n must not be negative, found -1");
  require_error<ShapeError>([&] { diff(scalar(1)); }, "diff", "scalar");
  require_error<IndexError>([&] { sort(x, -3); }, "sort: dim -3");
  require_error<ValueError>([&] { topk(x, 4); }, "topk: k must lie in [0, 3]", "found 4");
  require_error<ValueError>([&] { kthvalue(x, 0); }, "kthvalue: k must lie in [1, 3]");
  require_error<ValueError>([&] { median(zeros({2, 0}), 1); }, "median", "no elements");
  require_error<ValueError>([&] { mode(zeros({0})); }, "mode", "no elements");
  require_error<ValueError>([&] { max(zeros({2, 0}), 1); }, "max", "no elements");
  require_error<ValueError>([&] { quantile(x, 1.5); }, "quantile: q must lie in [0, 1]", "1.5");
  require_error<ValueError>([&] { quantile(x, 0.5, 0, false, "cubic"); }, "cubic");
  require_error<DTypeError>([&] { quantile(ints({1}, {1}), 0.5); }, "quantile", "i64");
  require_error<ShapeError>([&] { quantile(x, zeros({1, 1})); }, "quantile", "(1, 1)");
  require_error<ValueError>([&] { bincount(ints({1, -2}, {2})); }, "bincount", "-2");
  require_error<DTypeError>([&] { bincount(zeros({2})); }, "bincount", "f32");
  require_error<ShapeError>([&] { bincount(ints({1}, {1}), zeros({2})); }, "weights", "(2,)");
  require_error<ShapeError>(
      [&] {
        searchsorted(zeros({2, 3}), zeros({3, 3}));
      },
      "searchsorted", "(2, 3)");
  require_error<ValueError>([&] { searchsorted(x, x, {.side = "up"}); }, "side", "up");
  require_error<ValueError>([&] { searchsorted(x, x, {.right = true, .side = "left"}); }, "side");
  require_error<ShapeError>([&] { bucketize(x, x); }, "bucketize: boundaries");
  require_error<ValueError>([&] { histc(x, 0); }, "histc: bins");
  require_error<ValueError>([&] { histc(x, 3, 2, 1); }, "histc", "2", "1");
  require_error<ValueError>([&] { renorm(x, 0, 0, 1); }, "renorm: p");
  require_error<ShapeError>([&] { renorm(zeros({3}), 2, 0, 1); }, "renorm", "(3,)");
}

// f32 has not every whole number beyond 2^24.
BOOST_AUTO_TEST_CASE(quantiles_of_very_many) {
  if (kSanitized) return;  // its sort takes a minute there
  constexpr int64_t n = (int64_t{1} << 24) + 4;
  const Tensor x = arange(0, n, 1, {.dtype = i64}).to(f32);
  const float last = x.select(0, n - 1).item<float>();
  BOOST_TEST(quantile(x, 1.0).item<float>() == last);
  BOOST_TEST(nanquantile(x, 1.0).item<float>() == last);
}

BOOST_AUTO_TEST_CASE(slices_are_compared_in_their_own_order) {
  const Tensor x = ints({0, 0, 1, 0, 0, 1, 0, 0}, {2, 2, 2});
  const Unique y = unique(x, true, true, true, 2);
  require_values(y.values, {2, 2, 2}, {0, 0, 0, 1, 1, 0, 0, 0});
  require_values(y.inverse, {2}, {1, 0});
}

BOOST_AUTO_TEST_SUITE_END()
