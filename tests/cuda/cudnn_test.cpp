// What the cuda plugin makes of a cuDNN that does not start: a reason that may pass is asked for
// again, with the next convolution, one that stays is not.
#include <cstdlib>
#include <string>

#include <boost/test/unit_test.hpp>
#include <dlfcn.h>

#include <tenon/tenon.h>

#include "cuda/emulated.h"
#include "support/expect.h"

using namespace tenon;
using namespace tenon::test;

namespace {

std::string library() { return build_dir() + "/tests/cuda/cudnn/libcudnn.so.9"; }

struct WithCudnn : EmulatedCuda {
  WithCudnn() {
    if (std::getenv("TENON_TEST_GPU")) return;
    const std::string places = std::getenv("TENON_CUDA_LIBRARY_PATH");
    setenv("TENON_CUDA_LIBRARY_PATH", (places + ":" + build_dir() + "/tests/cuda/cudnn").c_str(),
           1);
    setenv("TENON_EMULATED_DEVICES", "3", 1);
    setenv("TENON_EMULATED_MEMORY", "320000000", 1);
  }
};

BOOST_TEST_GLOBAL_FIXTURE(WithCudnn);

boost::test_tools::assertion_result emulated_device(boost::unit_test::test_unit_id) {
  return !std::getenv("TENON_TEST_GPU");
}

// Statuses of cudnnCreate.
constexpr const char *kNotInitialized = "1001", *kSublibraryMissing = "1008", *kFailed = "4000";

struct Answers {
  explicit Answers(const char* status) { setenv("TENON_EMULATED_CUDNN", status, 1); }
  ~Answers() { unsetenv("TENON_EMULATED_CUDNN"); }
  Answers(const Answers&) = delete;
};

uint64_t starts() {
  void* there = dlopen(library().c_str(), RTLD_LAZY | RTLD_NOLOAD);
  return there ? *static_cast<uint64_t*>(dlsym(there, "tenon_emulated_cudnn_starts")) : 0;
}

// A convolution of a size of its own, for which a plan is made.
void require_convolution(const char* device) {
  static int64_t size = 3;
  const TensorOptions there{.device = device};
  const Tensor y = conv2d(ones({1, 1, ++size, size}, there), ones({1, 1, 3, 3}, there));
  BOOST_TEST(y.amax().item() == 9.0);
  BOOST_TEST(y.amin().item() == 9.0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_may_pass_is_asked_again,
                     *boost::unit_test::precondition(emulated_device)) {
  {
    const Answers answers(kNotInitialized);
    require_convolution("cuda:0");  // by the plugin's own kernels
    BOOST_TEST(starts() == 1u);
    require_convolution("cuda:0");
    BOOST_TEST(starts() == 2u);
  }
  require_convolution("cuda:0");
  BOOST_TEST(starts() == 3u);
  require_convolution("cuda:0");
  BOOST_TEST(starts() == 3u);
}

BOOST_AUTO_TEST_CASE(what_stays_is_asked_once, *boost::unit_test::precondition(emulated_device)) {
  const uint64_t before = starts();
  const Answers answers(kSublibraryMissing);
  require_convolution("cuda:1");
  require_convolution("cuda:1");
  BOOST_TEST(starts() == before + 1);
}

BOOST_AUTO_TEST_CASE(a_full_device_is_out_of_memory,
                     *boost::unit_test::precondition(emulated_device)) {
  const uint64_t before = starts();
  for (const char* status : {kNotInitialized, kFailed}) {
    const Tensor held = empty({20 << 20}, {.device = "cuda:2"});  // 80 MiB of 305
    const Answers answers(status);
    require_error<OutOfMemoryError>([&] { require_convolution("cuda:2"); },
                                    "cuDNN does not start with 2", " MiB of free memory");
  }
  require_convolution("cuda:2");
  BOOST_TEST(starts() == before + 3);
}
