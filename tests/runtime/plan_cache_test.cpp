// Plans of shapes that never come back make room for others, while calls are queued and other
// threads look them up.
#include <atomic>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <malloc.h>

#include <tenon/core/ops/activation.h>
#include <tenon/core/ops/attention.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/tensor.h>

#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(plan_cache_test)

using namespace tenon;

// More than the cache holds, each of another number of elements.
constexpr int64_t kMany = 9000;

BOOST_AUTO_TEST_CASE(a_plan_may_leave_the_cache_while_it_waits_in_the_queue) {
  const Device device("cpu:1");
  Tensor x = ones({kMany}, {.device = device}), slow = full({700, 700}, 0.001, {.device = device});
  for (int round = 0; round < (test::kSanitized ? 1 : 2); ++round) {
    slow = matmul(matmul(slow, slow), slow);  // what follows is queued behind it
    Tensor last;
    for (int64_t n = 1; n <= kMany; ++n) last = x.narrow(0, 0, n) * 2.0;
    BOOST_TEST(last.sum().item() == 2.0 * kMany);
  }
}

BOOST_AUTO_TEST_CASE(threads_may_fill_the_cache_together) {
  const Device device("cpu:2");
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        Tensor x = ones({kMany}, {.device = device});
        for (int64_t i = 1; i <= kMany; ++i) {
          // Neighbours meet at some sizes and make others' plans go.
          const int64_t n = t == 2 ? kMany + 1 - i : i;
          Tensor y = x.narrow(0, 0, n) + static_cast<double>(t);
          if (i % 500 == 0 && y.sum().item() != static_cast<double>(n * (1 + t))) ++wrong;
        }
      });
  }
  BOOST_TEST(wrong == 0);
}

// Training on sequences of which each has another length: when the cache is full, a step leaves
// nothing behind, neither plans nor tensors nor memory of the host.
BOOST_AUTO_TEST_CASE(lengths_that_never_come_back_leave_nothing_behind) {
  const Device device("cpu:3");
  const int64_t kLengths = test::kSanitized ? 211 : 1499;  // a prime
  Tensor w = full({8, 8}, 0.1, {.device = device}).requires_grad_();
  int64_t steps = 0;
  const auto train = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t length = 1 + ++steps * 601 % kLengths;
      const Tensor x = linear(full({length, 8}, 0.5, {.device = device}), w).unsqueeze(0);
      const Tensor y = scaled_dot_product_attention(x, x, tanh(x));
      (y * y + sigmoid(y)).mean().backward();
      w.set_grad(Tensor());
    }
    synchronize(device);
  };
  train(test::kSanitized ? 50 : 900);  // more plans than are kept
  const MemoryStats before = memory_stats(device);
  const size_t host = mallinfo2().uordblks;
  train(test::kSanitized ? 50 : 300);
  const MemoryStats after = memory_stats(device);
  BOOST_TEST(after.allocated == before.allocated);
  BOOST_TEST(after.reserved <= before.reserved + before.reserved / 2);
  // As many new plans, kept without an end, would be 35 MB.
  const auto grown = static_cast<int64_t>(mallinfo2().uordblks) - static_cast<int64_t>(host);
  if (!test::kSanitized) BOOST_TEST(grown < 12 << 20);
}

BOOST_AUTO_TEST_CASE(outputs_have_the_shape_of_their_call) {
  // Calls with as many elements share a plan, not a shape.
  for (const Shape& shape : {Shape{24}, Shape{2, 12}, Shape{2, 3, 4}, Shape{1, 24, 1}}) {
    Tensor x = full(shape, 3), y = x + x, z = x;
    BOOST_TEST(y.shape() == shape);
    BOOST_TEST(y.strides() == shape.contiguous_strides());
    BOOST_TEST(y.sum().item() == 144.0);
    z.copy_(relu(x) * x);
    BOOST_TEST(z.shape() == shape);
    BOOST_TEST(z.sum().item() == 216.0);
  }
  BOOST_TEST((full({}, 3) + full({}, 4)).shape() == Shape{});
  BOOST_TEST((full({}, 3) + full({1}, 4)).shape() == Shape{1});
  BOOST_TEST((zeros({0, 5}) + zeros({0, 5})).shape() == (Shape{0, 5}));
  BOOST_TEST((zeros({5, 0}) + zeros({5, 0})).shape() == (Shape{5, 0}));
}

BOOST_AUTO_TEST_SUITE_END()
