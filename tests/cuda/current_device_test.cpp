// Which device the plugin leaves current on a thread, and what that costs: looked at in the
// emulated runtime, in a process that has used nothing but cuda:1.
#include <cstdlib>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "cuda/emulated.h"
#include "cuda/emulated/counters.h"
#include "cuda/in_runtime.h"

using namespace tenon;
using namespace tenon::test;
BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {

boost::test_tools::assertion_result emulated_device(boost::unit_test::test_unit_id) {
  return !std::getenv("TENON_TEST_GPU");
}

int current_device() {
  int device = -1;
  BOOST_REQUIRE(in_runtime<int(int*)>("tenon_emulated_get_device")(&device) == 0);
  return device;
}
void choose_device(int device) {
  BOOST_REQUIRE(in_runtime<int(int)>("tenon_emulated_set_device")(device) == 0);
}

}  // namespace

// First, while nothing has chosen a device.
BOOST_AUTO_TEST_CASE(work_on_one_device_starts_no_other,
                     *boost::unit_test::precondition(emulated_device)) {
  Tensor x = ones({100}, {.device = "cuda:1"});
  synchronize("cuda:1");
  const auto& counters = *in_runtime<emulated::CudaCounters>("tenon_emulated_cuda_counters");
  const uint64_t launches = counters.launches, calls = counters.device_calls;
  for (int i = 0; i < 100; ++i) x = x + 1.0;
  synchronize("cuda:1");
  BOOST_TEST(counters.launches - launches == 100u);
  BOOST_TEST(counters.device_calls - calls < 150u);  // one a launch, and some for memory and events
  BOOST_TEST(x.sum().item() == 10100.0);
  BOOST_TEST(counters.contexts == uint64_t{1} << 1);
}

BOOST_AUTO_TEST_CASE(the_device_that_a_thread_has_chosen_stays,
                     *boost::unit_test::precondition(emulated_device)) {
  auto memory_on = [](const char* device) { return empty({1 << 20}, {.device = device}).wait(); };
  std::thread([&] {
    choose_device(0);
    for (const char* device : {"cuda:1", "cuda:0", "cuda:1"}) {
      memory_on(device);
      BOOST_TEST(current_device() == 0);
    }
    choose_device(1);
    memory_on("cuda:0");
    BOOST_TEST(current_device() == 1);
  }).join();
}
