// Training runs recorded from PyTorch, on one device and on several.
#include "training/trajectory.h"

#include <tenon/plugins/host/registry.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(trajectory_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(lenet_with_sgd) {
  auto model = lenet();
  optim::SGD optimizer(model.parameters(), {.lr = 0.9});
  follow("lenet", model, optimizer, default_device());
}

BOOST_AUTO_TEST_CASE(mlp_with_adam) {
  auto model = mlp();
  optim::Adam optimizer(model.parameters(), {.lr = 0.002});
  follow("mlp", model, optimizer, default_device());
}

BOOST_AUTO_TEST_CASE(lenet_over_three_devices) {
  nn::DataParallel model(lenet(), {"cpu:0", "cpu:1", "cpu:2"});
  optim::SGD optimizer(model.parameters(), {.lr = 0.9});
  follow("lenet", model, optimizer, "cpu:0", "module.");
}

BOOST_AUTO_TEST_CASE(mlp_over_two_devices) {
  nn::DataParallel model(mlp(), {"cpu:0", "cpu:1"});
  optim::Adam optimizer(model.parameters(), {.lr = 0.002});
  follow("mlp", model, optimizer, "cpu:0", "module.");
}

// The same through native streams and memory that the host cannot reach.
BOOST_AUTO_TEST_CASE(lenet_on_an_accelerator) {
  auto model = lenet();
  model.to("sim:0");
  optim::SGD optimizer(model.parameters(), {.lr = 0.9});
  follow("lenet", model, optimizer, "sim:0");
}

BOOST_AUTO_TEST_CASE(mlp_over_an_accelerator_and_the_cpu) {
  nn::DataParallel model(mlp(), {"sim:0", "cpu:1"});
  optim::Adam optimizer(model.parameters(), {.lr = 0.002});
  follow("mlp", model, optimizer, "sim:0", "module.");
}

BOOST_AUTO_TEST_SUITE_END()
