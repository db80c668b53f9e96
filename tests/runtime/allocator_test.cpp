// Memory is cached: once warm, a step asks the system for nothing.
#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduce.h>
#include <tenon/core/tensor.h>

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
  try {
    empty({int64_t{1} << 50});
    BOOST_FAIL("a petabyte was allocated");
  } catch (const OutOfMemoryError& e) {
    BOOST_TEST(std::string(e.what()).find("cpu:0") != std::string::npos, e.what());
    BOOST_TEST(std::string(e.what()).find("live tensors") != std::string::npos, e.what());
  }
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
