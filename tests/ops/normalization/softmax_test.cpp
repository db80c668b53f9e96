#include <limits>

#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(normalization)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(gradients) {
  Tensor x = sample({2, 3, 4});
  for (int64_t dim : {0, 1, -1}) {
    check_gradients([&](auto& v) { return softmax(v[0], dim); }, {x}, "softmax");
    check_gradients([&](auto& v) { return log_softmax(v[0], dim); }, {x}, "log_softmax");
  }
}

// The fused backward operator runs without create_graph, the composed rule with it.
BOOST_AUTO_TEST_CASE(fused_and_composed_gradients_of_softmax_agree) {
  for (auto f : {softmax, log_softmax})
    for (int64_t dim : {0, 1, 2}) {
      Tensor x = sample({3, 4, 5});
      x.requires_grad_();
      Tensor loss = weighted_sum(f(x, dim), 0.2);
      Tensor fused = grad(loss, x, {.retain_graph = true});
      require_equal(fused, grad(loss, x, {.create_graph = true}), 1e-12);
    }
}

BOOST_AUTO_TEST_CASE(values) {
  double inf = std::numeric_limits<double>::infinity();
  require_values(softmax(doubles({1000, 1000, -inf, 0}, {2, 2}), 1), {2, 2}, {0.5, 0.5, 0, 1});
  require_values(log_softmax(doubles({1000, 1000}, {2}), 0), {2}, {-std::log(2), -std::log(2)});
  require_values(softmax(scalar(3), -1), {}, {1});
  require_values(softmax(ints({1, 1}, {2}), 0), {2}, {0.5, 0.5});
  require_values(softmax(zeros({0, 3}), 1), {0, 3}, {});
  require_values(softmax(zeros({3, 0}), 1), {3, 0}, {});
  Tensor x = sample({4, 3});
  require_equal(softmax(x.t(), 0), softmax(x, 1).t(), 1e-12);
  require_equal(log_softmax(x.t(), 1), log_softmax(x, 0).t(), 1e-12);
  require_error<IndexError>([&] { softmax(x, 2); }, "softmax: dim 2 is out of range");
}

BOOST_AUTO_TEST_SUITE_END()
