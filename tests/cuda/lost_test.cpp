// What goes wrong on a device stays an error: no memory, a bad label, and a device that is lost for
// good.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <sys/wait.h>

#include <tenon/core/runtime/context.h>
#include <tenon/tenon.h>

#include "cuda/emulated.h"
#include "files.h"

using namespace tenon;
using tenon::test::EmulatedCuda;
BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {
const Device gpu("cuda", 0);
Tensor on_gpu(const Shape& shape) { return ones(shape, {.device = gpu}); }
}  // namespace

BOOST_AUTO_TEST_CASE(memory_that_is_not_there_is_an_error_and_the_rest_works) {
  // A quarter of the device at a time, so that some fit and the last does not.
  const auto total = static_cast<int64_t>(describe_devices("cuda")[0].memory_total);
  std::vector<Tensor> held;
  const std::string error = error_of<OutOfMemoryError>([&] {
    for (int i = 0; i < 8; ++i) held.push_back(empty({total / 16}, {.device = gpu}));
  });
  BOOST_TEST(has(error, "cuda:0"));
  BOOST_TEST(has(error, "cannot allocate"));
  BOOST_TEST(held.size() >= 1u);
  held.pop_back();
  BOOST_TEST((on_gpu({1000}) + 1.0).sum().item() == 2000.0);
  held.clear();
  // What was given back to the cache serves again, and so does another size, for which the cache
  // has to be emptied.
  held.push_back(empty({total / 16}, {.device = gpu}));
  held.push_back(empty({total / 8}, {.device = gpu}));
  BOOST_TEST((on_gpu({1000}) + 1.0).sum().item() == 2000.0);
}

BOOST_AUTO_TEST_CASE(a_bad_label_is_named_to_who_reads_the_loss) {
  Tensor logits = on_gpu({4, 3}), labels = tensor(std::vector<int64_t>{0, 1, 7, 2}).to(gpu);
  const std::string error = error_of<IndexError>([&] { cross_entropy(logits, labels).item(); });
  BOOST_TEST(has(error, "label 7 in row 2 lies outside [0, 3)"), error);
  synchronize();                                                        // told once
  BOOST_TEST(cross_entropy(logits, clamp(labels, 0, 2)).item() > 1.0);  // the device goes on
}

BOOST_AUTO_TEST_CASE(a_lost_device_in_a_process_of_its_own) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  for (const char* test : {"the_device_is_lost", "the_device_is_lost_while_a_graph_lives"}) {
    const int status = std::system(
        ("TENON_EMULATED_FAIL_AT=5 '" + self + "' --run_test=" + test + " >&2").c_str());
    BOOST_TEST(WIFEXITED(status), test);
    BOOST_TEST(WEXITSTATUS(status) == 0, test);
  }
}

// Run by the test above only: nothing on the device works after it.
BOOST_AUTO_TEST_CASE(the_device_is_lost, *boost::unit_test::disabled()) {
  const bool real = std::getenv("TENON_TEST_GPU");
  if (real)
    plugins::registry().add_path(test::build_dir() +
                                 "/tests/faulty");  // before the device is opened
  Tensor kept = on_gpu({10});
  const std::string error = error_of<DeviceError>([&] {
    if (real) {
      erf(on_gpu({13, 37}));
    } else {
      for (int i = 0; i < 10; ++i)
        kept = kept + 1.0;  // the fifth kernel of this process meets an illegal address
    }
    kept.sum().item();
  });
  BOOST_TEST(has(error, "illegal"), error);
  // Later calls fail as well, at the latest when they are waited for; none hangs, none ends the
  // process.
  BOOST_CHECK_THROW((on_gpu({3}) + 1.0).sum().item(), DeviceError);
  BOOST_CHECK_THROW(synchronize(gpu), DeviceError);
  BOOST_TEST((ones({4}) * 2.0).sum().item() == 8.0);  // other devices work on
}

// The same, but what is lost goes through a graph: on an emulated device it is the replay that
// meets the illegal address.
BOOST_AUTO_TEST_CASE(the_device_is_lost_while_a_graph_lives, *boost::unit_test::disabled()) {
  const bool real = std::getenv("TENON_TEST_GPU");
  if (real) plugins::registry().add_path(test::build_dir() + "/tests/faulty");
  Tensor a = on_gpu({10}), result = a + 1.0;
  auto graph = StreamGraph::capture(gpu, [&] { result = a + 1.0; });
  const std::string error = error_of<DeviceError>([&] {
    for (int i = 0; i < 10; ++i) {
      graph.replay();
      result.wait();
      if (real) erf(on_gpu({13, 37}));
    }
  });
  BOOST_TEST(has(error, "illegal"), error);
  if (!real) BOOST_TEST(has(error, "replay of a stream graph"), error);
  BOOST_CHECK_THROW(graph.replay(), DeviceError);
  BOOST_CHECK_THROW(result.to_vector<float>(), DeviceError);
  BOOST_CHECK_THROW(StreamGraph::capture(gpu, [&] { result = a + 1.0; }), DeviceError);
  BOOST_CHECK_THROW((a + 1.0).sum().item(), DeviceError);
  BOOST_TEST((ones({4}) * 2.0).sum().item() == 8.0);
  // Here the graph ends, and after it the device is closed: neither hangs nor ends the process.
}
