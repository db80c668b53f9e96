// Which device the plugin leaves current on a thread, and what that costs: looked at in the
// emulated runtime, in a process that has used nothing but cuda:1.
#include <cstdlib>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "cuda/bare.h"
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

// Each call on a thread that has asked CUDA for nothing so far: a call for which no device has to
// be current starts the one that is.
BOOST_AUTO_TEST_CASE(waiting_for_one_device_starts_no_other,
                     *boost::unit_test::precondition(emulated_device)) {
  const auto alone = [](auto&& call) { std::thread(call).join(); };
  Bare gpu("cuda", 1);
  const auto& profiling = *gpu.backend.extension<tn_profiling>(TN_EXT_PROFILING, 1);
  tn_event *begin = nullptr, *end = nullptr;
  for (tn_event** event : {&begin, &end}) {
    ok(gpu.api.event_create(gpu.device, event));
    ok(gpu.api.event_record(*event, gpu.stream));
  }
  const auto& contexts =
      in_runtime<emulated::CudaCounters>("tenon_emulated_cuda_counters")->contexts;
  const uint64_t only = uint64_t{1} << 1;
  int32_t done = 0;
  alone([&] { ok(gpu.api.event_query(begin, &done)); });
  BOOST_TEST(contexts == only);
  alone([&] { ok(gpu.api.event_wait(end)); });
  BOOST_TEST(contexts == only);
  double milliseconds = -1;
  alone([&] { ok(profiling.elapsed(begin, end, &milliseconds)); });
  BOOST_TEST(milliseconds >= 0);
  BOOST_TEST(contexts == only);
  alone([&] {
    gpu.api.event_destroy(begin);
    gpu.api.event_destroy(end);
  });
  BOOST_TEST(contexts == only);
  alone([&] { ok(gpu.api.drain(nullptr)); });
  BOOST_TEST(contexts == only);
}

// Who chooses the device that is current anyway has chosen it.
BOOST_AUTO_TEST_CASE(the_first_device_may_be_chosen_later,
                     *boost::unit_test::precondition(emulated_device)) {
  std::thread([] {
    Bare first("cuda", 0);
    choose_device(0);
    const Bare second("cuda", 1);
    BOOST_TEST(current_device() == 0);
  }).join();
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
