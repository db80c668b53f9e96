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

#include "cuda/bare.h"
#include "cuda/emulated.h"
#include "files.h"

using namespace tenon;
using namespace tenon::test;
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
  const auto succeeds = [&](const std::string& test, int kernel) {
    const int status = std::system(("TENON_EMULATED_FAIL_AT=" + std::to_string(kernel) + " '" +
                                    self + "' --run_test=" + test + " >&2")
                                       .c_str());
    BOOST_TEST(WIFEXITED(status), test);
    BOOST_TEST(WEXITSTATUS(status) == 0, test);
  };
  succeeds("the_device_is_lost", 5);
  succeeds("the_device_is_lost_while_a_graph_lives", 5);
  if (!std::getenv("TENON_TEST_GPU")) succeeds("a_product_finds_the_device_lost", 1);
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

// Without the core, which asks nothing more of a device that it knows to be lost: cuBLASLt says
// that it failed, not why.
BOOST_AUTO_TEST_CASE(a_product_finds_the_device_lost, *boost::unit_test::disabled()) {
  Bare gpu("cuda");
  const auto matrix = [](int64_t rows, int64_t cols) {
    tn_tensor_desc d{sizeof d, TN_F32, 2, {rows, cols}, {cols, 1}};
    return d;
  };
  const tn_tensor_desc a = matrix(3, 4), b = matrix(4, 5), y = matrix(3, 5);
  const auto plan_of = [&](const char* op, std::vector<const tn_tensor_desc*> inputs,
                           const tn_tensor_desc* output) {
    const tn_op_request request{
        sizeof request, op, inputs.size(), inputs.data(), 1, &output, nullptr, 0, nullptr, 0};
    tn_plan* plan = nullptr;
    ok(gpu.api.plan_create(gpu.device, &request, &plan));
    return plan;
  };
  tn_plan *fails = plan_of("exp", {&a}, &a), *product = plan_of("matmul", {&a, &b}, &y);
  float *of_a = gpu.put(std::vector<float>(12, 1)), *of_b = gpu.put(std::vector<float>(20, 1)),
        *of_y = gpu.put(std::vector<float>(15, 1));
  char* workspace = gpu.allocate<char>(product->workspace_bytes);
  const auto run = [&](tn_plan* plan, float* to) {
    void *in[] = {of_a, of_b}, *out[] = {to};
    const tn_run args{sizeof args, in, out, nullptr, workspace, gpu.stream, 2, 1, 0, nullptr};
    return plan->run(plan, &args);
  };
  ok(run(product, of_y));
  BOOST_TEST(gpu.get(of_y, 15)[14] == 4.0f);
  ok(run(fails, of_a));
  tn_event* event = nullptr;
  ok(gpu.api.event_create(gpu.device, &event));
  ok(gpu.api.event_record(event, gpu.stream));
  refused(gpu.api.event_wait(event), TN_CODE_DEVICE_LOST, "illegal");
  refused(run(product, of_y), TN_CODE_DEVICE_LOST, "illegal");
  gpu.api.event_destroy(event);
  fails->destroy(fails);
  product->destroy(product);
}

BOOST_AUTO_TEST_CASE(a_device_that_is_too_old_is_refused) {
  if (std::getenv("TENON_TEST_GPU")) return;
  Bare gpu("cuda");
  tn_device* older = nullptr;
  setenv("TENON_EMULATED_CAPABILITY", "75", 1);
  refused(gpu.api.device_open(nullptr, 1, &older), TN_CODE_UNAVAILABLE,
          "device 1 has compute capability 7.5; this plugin was built for 8.0 and newer");
  unsetenv("TENON_EMULATED_CAPABILITY");
}

BOOST_AUTO_TEST_CASE(errors_are_told_from_each_other) {
  if (std::getenv("TENON_TEST_GPU")) return;
  Bare gpu("cuda");
  const std::vector<std::pair<int, tn_code>> codes = {
      {1, TN_CODE_INTERNAL},        // cudaErrorInvalidValue
      {2, TN_CODE_OUT_OF_MEMORY},   // cudaErrorMemoryAllocation
      {46, TN_CODE_UNAVAILABLE},    // cudaErrorDevicesUnavailable: "at the current time"
      {700, TN_CODE_DEVICE_LOST},   // cudaErrorIllegalAddress
      {810, TN_CODE_DEVICE_LOST}};  // cudaErrorMpsClientTerminated
  for (auto& [error, code] : codes) {
    setenv("TENON_EMULATED_ALLOCATION", std::to_string(error).c_str(), 1);
    void* memory = nullptr;
    refused(gpu.api.memory_alloc(gpu.device, 0, 256, &memory), code, "cudaMalloc of 256 bytes");
  }
  unsetenv("TENON_EMULATED_ALLOCATION");
  gpu.allocate<float>(1);
}
