#include <cmath>
#include <utility>

#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/random.h>

#include "ops/check.h"

using namespace tenon;
using namespace tenon::test;

namespace tenon::test {
BOOST_AUTO_TEST_SUITE(random)

BOOST_AUTO_TEST_CASE(keeps_the_right_share_and_scales_it) {
  manual_seed(1);
  const int64_t n = 100000;
  for (double p : {0.1, 0.5, 0.9}) {
    auto y = dropout(ones({n}), p).to_vector<double>();
    int64_t kept = 0;
    for (double v : y) {
      BOOST_REQUIRE(v == 0 || std::abs(v - 1 / (1 - p)) < 1e-5);
      kept += v != 0;
    }
    // Six standard deviations of the binomial distribution.
    BOOST_CHECK_SMALL(static_cast<double>(kept) - (1 - p) * n, 6 * std::sqrt(n * p * (1 - p)));
  }
}

BOOST_AUTO_TEST_CASE(same_seed_same_mask_and_the_next_call_another) {
  manual_seed(7);
  Tensor a = dropout(ones({64})), b = dropout(ones({64}));
  manual_seed(7);
  require_equal(dropout(ones({64})), a);
  BOOST_CHECK(a.to_vector<double>() != b.to_vector<double>());
}

BOOST_AUTO_TEST_CASE(the_gradient_has_the_mask_of_the_forward_pass) {
  check_gradients(
      [](auto& v) {
        manual_seed(3);
        return square(dropout(v[0], 0.4));
      },
      {sample({20})}, "dropout");
  Tensor x = sample({5}).requires_grad_();
  sum(dropout(x, 1)).backward();
  require_values(x.grad(), {5}, {0, 0, 0, 0, 0});
}

BOOST_AUTO_TEST_CASE(where_there_is_nothing_to_do) {
  Tensor x = sample({5});
  BOOST_CHECK(dropout(x, 0).is_same(x));
  BOOST_CHECK(dropout(x, 0.5, false).is_same(x));
  require_values(dropout(x, 1), {5}, {0, 0, 0, 0, 0});
  require_values(dropout(zeros({0})), {0}, {});
  require_error<ValueError>([&] { dropout(x, 1.5); }, "dropout: p must lie in [0, 1]");
  require_error<ValueError>([&] { dropout(x, std::nan("")); }, "dropout: p");
  require_error<DTypeError>([&] { dropout(x.to(i64)); }, "floating");
}

// The values of f32, rounded; none of them reaches the upper bound.
BOOST_AUTO_TEST_CASE(halves_are_uniform_below_the_upper_bound) {
  DeviceGuard on_cpu("cpu");
  for (DType t : {f16, bf16})
    for (const auto& [low, high] : {std::pair(0.0, 1.0), {-3.0, 5.0}, {0.1, 0.7}}) {
      manual_seed(7);
      const Tensor wide = empty({20001}).uniform_(low, high).to(t).to(f64);
      manual_seed(7);
      const Tensor found = empty({20001}, {.dtype = t}).uniform_(low, high).to(f64);
      BOOST_TEST(amax(found).item() < high);
      BOOST_TEST(amin(found).item() >= scalar(low).to(t).to(f64).item());
      const Tensor reaches = ge(wide, high);
      require_equal(where(reaches, 0.0, found), where(reaches, 0.0, wide));
      BOOST_TEST(std::abs(mean(found).item() - (low + high) / 2) < 0.02 * (high - low));
    }
  manual_seed(7);
  const Tensor wide = empty({1001}).normal_(1, 2);
  manual_seed(7);
  require_equal(empty({1001}, {.dtype = bf16}).normal_(1, 2), wide.to(bf16));
  manual_seed(7);
  const Tensor kept = dropout(wide.to(bf16).to(f32), 0.3);
  manual_seed(7);
  require_equal(dropout(wide.to(bf16), 0.3), kept.to(bf16));
  require_error<ValueError>([] { empty({2}, {.dtype = f16}).uniform_(0, 1e5); },
                            "both and their difference finite in f16");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace tenon::test
