// Memory is cached: once warm, a step asks the system for nothing.
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/tensor.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(allocator_test)

using namespace tenon;

BOOST_AUTO_TEST_CASE(a_warm_step_allocates_nothing_from_the_system) {
  Tensor w = full({300, 200}, 0.01);
  w.requires_grad_();
  auto step = [&] {
    w.set_grad(Tensor());
    Tensor x = full({64, 300}, 0.5);
    relu(matmul(x, w)).square().mean().backward();
    return w.grad().sum().item();
  };
  for (int i = 0; i < 3; ++i) step();
  const auto before = memory_stats("cpu");
  for (int i = 0; i < 50; ++i) step();
  const auto after = memory_stats("cpu");
  BOOST_TEST(after.system_allocations == before.system_allocations);
  BOOST_TEST(after.allocations > before.allocations);
  BOOST_TEST(after.allocated == before.allocated);
}

BOOST_AUTO_TEST_CASE(statistics_follow_live_tensors) {
  synchronize();
  const auto before = memory_stats("cpu:2");
  {
    Tensor a = empty({1000}, {.device = "cpu:2"});
    BOOST_TEST(memory_stats("cpu:2").allocated >= before.allocated + 4000);
    BOOST_TEST(memory_stats("cpu:2").allocated <= before.allocated + 5000);
    Tensor view = a.narrow(0, 0, 10);
    a = Tensor();
    BOOST_TEST(memory_stats("cpu:2").allocated >= before.allocated + 4000);  // the view keeps it
  }
  BOOST_TEST(memory_stats("cpu:2").allocated == before.allocated);
  BOOST_TEST(memory_stats("cpu:2").peak_allocated >= before.allocated + 4000);
}

BOOST_AUTO_TEST_CASE(an_emptied_cache_goes_back_to_the_system) {
  { empty({1 << 20}, {.device = "cpu:3"}).fill_(1); }
  const auto full_cache = memory_stats("cpu:3");
  empty_cache("cpu:3");
  const auto emptied = memory_stats("cpu:3");
  BOOST_TEST(emptied.reserved + (4 << 20) <= full_cache.reserved);
  BOOST_TEST(emptied.system_frees > full_cache.system_frees);
  BOOST_TEST(full({1 << 20}, 2, {.device = "cpu:3"}).sum().item() == 2.0 * (1 << 20));
}

BOOST_AUTO_TEST_CASE(too_much_memory_is_an_error_that_names_the_figures) {
  test::require_error<OutOfMemoryError>([] { empty({int64_t{1} << 50}); }, "cpu:0", "live tensors");
  BOOST_CHECK_THROW(empty({int64_t{1} << 40, int64_t{1} << 40}), Error);
  BOOST_CHECK_THROW(empty({2, -1}), ShapeError);
  BOOST_TEST(ones({3}).sum().item() == 3.0);  // and life goes on
}

BOOST_AUTO_TEST_CASE(zero_sized_tensors_need_no_memory) {
  const auto before = memory_stats("cpu").allocations;
  Tensor none = empty({0, 5});
  BOOST_TEST(memory_stats("cpu").allocations == before);
  BOOST_TEST(none.to_vector<float>().empty());
  BOOST_TEST((none + 1.0).numel() == 0);
}

namespace {

// The most that a run of `step` over lengths reserves, as a multiple of the most that was in use.
// On a device of its own.
template <class F>
double reserved_for_lengths(const char* device, int64_t first, int64_t last, int64_t by, F&& step) {
  uint64_t reserved = 0;
  for (int64_t length = first; length <= last; length += by) {
    step(length);
    reserved = std::max(reserved, memory_stats(device).reserved);
  }
  return static_cast<double>(reserved) / static_cast<double>(memory_stats(device).peak_allocated);
}

}  // namespace

BOOST_AUTO_TEST_CASE(sizes_that_grow_share_memory) {
  // Five tensors that grow with the length of a sequence, as hidden states do; 65 MB at the end.
  const double ratio = reserved_for_lengths("cpu:4", 1, 200, 1, [](int64_t length) {
    std::vector<Tensor> states;
    for (int i = 0; i < 5; ++i) states.push_back(empty({length, 128, 128}, {.device = "cpu:4"}));
  });
  BOOST_TEST(ratio < 1.4);
}

BOOST_AUTO_TEST_CASE(sizes_of_every_length_share_memory) {
  const double ratio = reserved_for_lengths("cpu:5", 16, 2048, 16, [](int64_t length) {
    Tensor x = empty({length, 256}, {.device = "cpu:5"}),
           y = empty({length, 512}, {.device = "cpu:5"});
    Tensor scores = empty({length, 64}, {.device = "cpu:5"});
    y = Tensor();
    Tensor z = empty({length, 300}, {.device = "cpu:5"});
  });
  BOOST_TEST(ratio < 1.4);
}

BOOST_AUTO_TEST_CASE(small_sizes_share_memory) {
  const double ratio = reserved_for_lengths("cpu:6", 1, 1024, 1, [](int64_t length) {
    std::vector<Tensor> many;
    for (int i = 0; i < 500; ++i) many.push_back(empty({length}, {.device = "cpu:6"}));
  });
  BOOST_TEST(ratio < 1.5);
}

BOOST_AUTO_TEST_CASE(neighbours_that_are_free_become_one) {
  const Device device("cpu:7");
  auto megabytes = [&](int64_t n) { return empty({n << 18}, {.device = device}); };
  megabytes(8);
  const auto before = memory_stats(device);
  for (int round = 0; round < 3; ++round) {
    std::vector<Tensor> parts;
    for (int i = 0; i < 8; ++i) parts.push_back(megabytes(1));
    for (int i : {3, 0, 7, 5, 1, 2, 6, 4}) parts[static_cast<size_t>((i + round) % 8)] = Tensor();
    Tensor whole = megabytes(8);
    BOOST_TEST(memory_stats(device).allocated == before.allocated + (8 << 20));
  }
  const auto after = memory_stats(device);
  BOOST_TEST(after.system_allocations == before.system_allocations);
  BOOST_TEST(after.reserved == before.reserved);
  BOOST_TEST(after.allocated == before.allocated);
}

BOOST_AUTO_TEST_CASE(a_mixture_of_sizes_settles) {
  const Device device("cpu:8");
  std::mt19937 random(7);
  std::vector<int64_t> lengths;
  for (int i = 0; i < 300; ++i)
    lengths.push_back(int64_t{1} << (random() % 18) | static_cast<int64_t>(random() % 1000));
  auto round = [&] {
    std::vector<Tensor> live(40);
    for (size_t i = 0; i < lengths.size(); ++i)
      live[i * 7 % live.size()] = empty({lengths[i]}, {.device = device});
  };
  for (int i = 0; i < 30; ++i) round();
  const auto before = memory_stats(device);
  for (int i = 0; i < 100; ++i) round();
  const auto after = memory_stats(device);
  BOOST_TEST(after.system_allocations == before.system_allocations);
  BOOST_TEST(after.reserved < 2 * after.peak_allocated);
}

BOOST_AUTO_TEST_CASE(what_the_host_writes_is_in_nobodys_use) {
  // The queue is behind while the host goes on: each block has to be one that no queued work reads.
  const Device device("cpu:9");
  Tensor weights = full({400, 400}, 0.5, {.device = device}),
         sums = zeros({50}, {.device = device});
  for (int i = 0; i < 50; ++i) {
    Tensor x = tensor(std::vector<float>(400 * 400, static_cast<float>(i)), {400, 400},
                      {.device = device});
    matmul(x, weights);
    sums.narrow(0, i, 1).copy_(x.mean().reshape({1}));
  }
  const auto values = sums.to_vector<float>();
  for (int i = 0; i < 50; ++i) BOOST_TEST(values[static_cast<size_t>(i)] == static_cast<float>(i));
}

BOOST_AUTO_TEST_CASE(threads_share_an_allocator) {
  const Device device("cpu:10");
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        std::vector<Tensor> live(20);
        std::vector<double> sums(20);
        for (int i = 0; i < 400; ++i) {
          const size_t at = random() % live.size();
          if (live[at].defined() && live[at].sum().item() != sums[at]) ++wrong;
          const auto n = static_cast<int64_t>(1 + random() % (i % 8 ? 2000 : 60000));
          const int value = static_cast<int>(random() % 100);
          live[at] =
              i % 3 ? full({n}, value, {.device = device})
                    : tensor(std::vector<float>(static_cast<size_t>(n), static_cast<float>(value)),
                             {n}, {.device = device});
          sums[at] = static_cast<double>(n) * value;
          if (i % 50 == 0) empty_cache(device);
        }
      });
  }
  BOOST_TEST(wrong == 0);
  empty_cache(device);
  const auto end = memory_stats(device);
  BOOST_TEST(end.allocated == 0u);
  BOOST_TEST(end.reserved == 0u);
  BOOST_TEST(end.system_frees == end.system_allocations);
}

BOOST_AUTO_TEST_SUITE_END()
