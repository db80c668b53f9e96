// The recorded training runs on the cuda plugin, alone and together with other devices.
#include "cuda/emulated.h"
#include "training/trajectory.h"

using namespace tenon;
using namespace tenon::test;
BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {
// An emulated device takes long for a step of LeNet: there the first ones do.
const int64_t few = device_is_slow()                ? 2
                    : std::getenv("TENON_TEST_GPU") ? std::numeric_limits<int64_t>::max()
                                                    : 8;
}  // namespace

BOOST_AUTO_TEST_CASE(lenet_with_sgd) {
  auto model = lenet();
  model.to("cuda:0");
  optim::SGD optimizer(model.parameters(), {.lr = 0.9});
  follow("lenet", model, optimizer, "cuda:0", "", few);
}

BOOST_AUTO_TEST_CASE(mlp_with_adam) {
  auto model = mlp();
  model.to("cuda:0");
  optim::Adam optimizer(model.parameters(), {.lr = 0.002});
  follow("mlp", model, optimizer, "cuda:0");
}

BOOST_AUTO_TEST_CASE(lenet_over_all_devices) {
  std::vector<Device> devices;
  for (uint32_t i = 0; i < device_count("cuda"); ++i) devices.emplace_back("cuda", i);
  BOOST_TEST_MESSAGE(devices.size() << " devices");
  nn::DataParallel model(lenet(), devices);
  optim::SGD optimizer(model.parameters(), {.lr = 0.9});
  follow("lenet", model, optimizer, "cuda:0", "module.", few);
}

BOOST_AUTO_TEST_CASE(mlp_over_the_gpu_and_the_cpu) {
  nn::DataParallel model(mlp(), {"cuda:0", "cpu:0"});
  optim::Adam optimizer(model.parameters(), {.lr = 0.002});
  follow("mlp", model, optimizer, "cuda:0", "module.");
}

BOOST_AUTO_TEST_CASE(memory_is_steady) {
  auto model = mlp();
  model.to("cuda:0");
  optim::Adam optimizer(model.parameters(), {.lr = 0.002});
  Tensor x = rand({16, 784}, {.device = "cuda:0"}),
         y = randint(0, 10, {16}, {.dtype = i64, .device = "cuda:0"});
  auto step = [&] {
    optimizer.zero_grad();
    cross_entropy(model(x), y).backward();
    optimizer.step();
  };
  for (int i = 0; i < 5; ++i) step();
  synchronize("cuda:0");
  const auto before = memory_stats("cuda:0");
  for (int i = 0, n = device_is_slow() ? 12 : std::getenv("TENON_TEST_GPU") ? 1000 : 50; i < n; ++i)
    step();
  synchronize("cuda:0");
  const auto after = memory_stats("cuda:0");
  BOOST_TEST(after.system_allocations == before.system_allocations);
  BOOST_TEST(after.reserved == before.reserved);
  BOOST_TEST(after.allocated == before.allocated);
}
