// A backend with streams, events and memory of its own, as a GPU's is: `sim` (tests/sim).
#include <boost/test/unit_test.hpp>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/autograd/replica.h>
#include <tenon/core/ops/index.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduce.h>
#include <tenon/core/tensor.h>
#include <tenon/plugins/host/registry.h>

using namespace tenon;

namespace {
struct SimFolder {
  SimFolder() { plugins::registry().add_path(TENON_BUILD_DIR "/tests/sim"); }
};
}  // namespace
BOOST_TEST_GLOBAL_FIXTURE(SimFolder);

BOOST_AUTO_TEST_CASE(values_go_there_are_computed_on_and_come_back) {
  Tensor x = arange(0, 12).reshape({3, 4}).to("sim:0");
  BOOST_TEST(x.device().str() == "sim:0");
  Tensor y = matmul(x, x.t()) + 1.0;
  BOOST_TEST(y.sum().item() == 1134 + 9.0);
  BOOST_TEST(y.to("cpu").to_vector<float>() == y.to_vector<float>());
  BOOST_CHECK_THROW(y.data<float>(), DeviceError);  // the host cannot read there
  BOOST_TEST(x.t().to("cpu:1").to_vector<float>()[1] == 4.0f);
}

BOOST_AUTO_TEST_CASE(devices_copy_to_each_other_in_order) {
  Tensor x = zeros({1000}, {.device = "sim:0"});
  for (int i = 0; i < 100; ++i) x = (x + 1.0).to(i % 2 ? "sim:0" : "sim:1");
  BOOST_TEST(x.sum().item() == 100000.0);
  Tensor mixed = zeros({1000});
  const char* places[] = {"sim:1", "cpu:1", "sim:0", "cpu:0"};
  for (int i = 0; i < 40; ++i) mixed = (mixed + 1.0).to(places[i % 4]);
  BOOST_TEST(mixed.sum().item() == 40000.0);
}

BOOST_AUTO_TEST_CASE(gradients_flow_through_devices) {
  Tensor w = full({4}, 3);
  w.requires_grad_();
  Tensor loss = (w.to("sim:0").square() * 2.0).to("sim:1").sum().to("cpu");
  loss.backward();
  BOOST_TEST(w.grad().to_vector<float>()[2] == 12.0f);
}

BOOST_AUTO_TEST_CASE(replicas_live_on_such_devices_too) {
  Tensor w = full({4}, 3);
  w.requires_grad_();
  allow_replicas(w);
  Tensor a = (w * full({4}, 1, {.device = "sim:0"})).sum(), b = (w * full({4}, 2, {.device = "sim:1"})).sum();
  (a.to("cpu") + b.to("cpu")).backward();
  BOOST_TEST(w.grad().to_vector<float>()[0] == 3.0f);
  no_grad([&] { w.copy_(full({4}, 5)); });
  BOOST_TEST((w * full({4}, 1, {.device = "sim:0"})).detach().sum().item() == 20.0);
}

BOOST_AUTO_TEST_CASE(a_late_error_reaches_the_wait_and_the_stream_works_on) {
  Tensor weight = ones({4, 2}, {.device = "sim:0"}), bad = tensor(std::vector<int64_t>{9}).to("sim:0");
  Tensor rows = embedding(bad, weight);
  BOOST_CHECK_THROW(rows.wait(), Error);
  BOOST_CHECK_NO_THROW(synchronize());
  BOOST_TEST((ones({2}, {.device = "sim:0"}) + 1.0).sum().item() == 4.0);
}

BOOST_AUTO_TEST_CASE(unknown_devices_of_a_known_backend) {
  BOOST_CHECK_THROW(ones({1}, {.device = "sim:7"}), DeviceError);
  BOOST_CHECK_THROW(ones({1}) + ones({1}, {.device = "sim:0"}), DeviceError);
}
