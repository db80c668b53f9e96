// oneDNN where the system gives no more memory: the user gets an error, and the process lives on.
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>

#include <boost/test/unit_test.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "fuzz.h"
#include "overlaid.h"
#include "process/child.h"
#include "support/expect.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(onednn_memory_test)

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr const char* kRoomVariable = "TENON_TEST_ROOM";

// A convolution, a pooling and a product, forwards and backwards, of which each makes its plan when
// it is first called. All weights are 0.01, so that the results are known.
void train_a_step(DType dtype) {
  const Tensor x = ones({8, 3, 14, 14}, dtype), fc = full({320, 10}, 0.01).to(dtype);
  const Tensor weight = full({20, 3, 3, 3}, 0.01).to(dtype).requires_grad_();
  const Tensor loss = matmul(avg_pool2d(conv2d(x, weight), 3).flatten(1), fc).to(f32).sum();
  loss.backward();
  BOOST_TEST(loss.item<float>() == 69.12f, boost::test_tools::tolerance(0.02f));
  BOOST_TEST(weight.grad().to(f32).sum().item<float>() == 6912.0f,
             boost::test_tools::tolerance(0.02f));
}

}  // namespace

// The child of the test below: the first step, of which oneDNN makes all code, has few bytes more
// than the process has before.
BOOST_AUTO_TEST_CASE(a_step_with_little_memory,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  const char* bytes = std::getenv(kRoomVariable);
  BOOST_REQUIRE(bytes);
  ones({1}).wait();  // opens the device with its overlay
  rlimit before{};
  BOOST_REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto page = static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  const rlimit little{pages * page + std::strtoull(bytes, nullptr, 10), before.rlim_max};
  for (DType dtype : {f32, bf16}) {
    std::string text;
    BOOST_REQUIRE(setrlimit(RLIMIT_AS, &little) == 0);
    try {
      text = error_of<OutOfMemoryError>([&] { train_a_step(dtype); });
    } catch (const std::bad_alloc& error) {  // for what the host itself needs
      text = error.what();
    }
    BOOST_REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
    BOOST_TEST_MESSAGE(text);
    train_a_step(dtype);
  }
}

BOOST_AUTO_TEST_CASE(too_little_memory_is_an_error, *overlaid::where_built()) {
  if (kSanitized) return;  // which needs more memory than any limit
  const int step = fuzz_long() ? 64 : 512;
  for (int kib = 0; kib <= 24 << 10; kib += kib < 4096 ? step : 10 * step) {
    const Outcome child = run_alone("onednn_memory_test/a_step_with_little_memory",
                                    {std::string(kRoomVariable) + "=" + std::to_string(kib << 10)});
    BOOST_TEST(child.status == 0, kib << " KiB: " << child.output);
  }
}

BOOST_AUTO_TEST_SUITE_END()
