#include <tenon/core/ops/random.h>
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

BOOST_AUTO_TEST_SUITE_END()
}  // namespace tenon::test
