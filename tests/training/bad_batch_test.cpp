// One bad label in a long run: it is told once, the step that it spoils does not happen, and the
// model trains on.
#include <cmath>
#include <functional>
#include <memory>

#include <boost/test/unit_test.hpp>

#include <tenon/plugins/host/registry.h>
#include <tenon/tenon.h>

#include "places.h"
#include "sim/faults.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(bad_batch_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using test::SimFolder;

namespace {

constexpr int kSteps = 30, kBadStep = 10;

using Values = std::vector<std::vector<float>>;
using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>;

const std::pair<const char*, MakeOptimizer> optimizers[] = {
    {"SGD", [](auto p) { return std::make_unique<optim::SGD>(p, optim::SGDOptions{.lr = 0.1}); }},
    {"SGD with momentum",
     [](auto p) {
       return std::make_unique<optim::SGD>(p, optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
     }},
    {"Adam",
     [](auto p) { return std::make_unique<optim::Adam>(p, optim::AdamOptions{.lr = 0.01}); }},
};

nn::Sequential net() {
  manual_seed(4);
  return nn::Sequential(nn::Linear(6, 12), nn::BatchNorm1d(12), nn::ReLU(), nn::Linear(12, 3));
}

Values values_of(const std::vector<Tensor>& tensors) {
  Values all;
  for (auto& t : tensors) all.push_back(t.to_vector<float>());
  return all;
}

std::vector<Tensor> state_of(optim::Optimizer& optimizer) {
  std::vector<Tensor> all;
  const auto state = optimizer.state_dict();
  for (auto& [name, t] : state.tensors) all.push_back(t);
  return all;
}

bool finite(const Values& all) {
  for (auto& values : all)
    for (float v : values)
      if (!std::isfinite(v)) return false;
  return true;
}

enum class When { read_at_once, read_at_the_end, never_read };

template <class Model>
void train(Model model, Device device, const MakeOptimizer& make, When when,
           bool spoil_on_device = false) {
  synchronize();
  model.to(device);
  auto optimizer = make(model.parameters());
  std::vector<Tensor> losses;
  Values parameters_before, state_before;
  int told = 0;
  auto read = [&](const Tensor& loss) {
    try {
      BOOST_TEST(std::isfinite(loss.item()));
    } catch (const Error&) {
      ++told;
    }
  };
  for (int i = 0; i < kSteps; ++i) {
    if (i == kBadStep)
      parameters_before = values_of(model.parameters()),
      state_before = values_of(state_of(*optimizer));
    Tensor x = randn({8, 6}).to(device), labels = randint(0, 3, {8});
    if (i == kBadStep && !spoil_on_device) labels.slice(0, 5, 6).fill_(1000);
    Tensor y = labels.to(device);
    optimizer->zero_grad();
    Tensor loss = cross_entropy(model(x), y);
    if (i == kBadStep && spoil_on_device) {
      Tensor factor = empty({}, {.device = device});
      factor.fill_(sim::kFailsAtOnce);
      loss = loss * factor;
    }
    loss.backward();
    optimizer->step();
    if (i == kBadStep) {
      BOOST_TEST((values_of(model.parameters()) == parameters_before));
      BOOST_TEST((values_of(state_of(*optimizer)) == state_before));
    }
    if (when == When::read_at_once) read(loss);
    losses.push_back(loss.detach());
  }
  if (when == When::read_at_the_end)
    for (auto& loss : losses) read(loss);
  if (when == When::never_read) BOOST_CHECK_THROW(synchronize(), Error);
  BOOST_TEST(told == (when == When::never_read ? 0 : 1));
  BOOST_CHECK_NO_THROW(synchronize());
  BOOST_TEST(std::isfinite(losses.back().item()));
  BOOST_TEST(finite(values_of(model.parameters())));
  BOOST_TEST(finite(values_of(state_of(*optimizer))));
  BOOST_TEST((values_of(model.parameters()) != parameters_before));
}

}  // namespace

BOOST_AUTO_TEST_CASE(on_the_cpu) {
  for (auto& [name, make] : optimizers)
    for (When when : {When::read_at_once, When::read_at_the_end, When::never_read}) {
      BOOST_TEST_CONTEXT(name) train(net(), "cpu", make, when);
    }
}

BOOST_AUTO_TEST_CASE(over_two_devices) {
  for (auto& [name, make] : optimizers)
    for (When when : {When::read_at_once, When::never_read}) {
      BOOST_TEST_CONTEXT(name)
      train(nn::DataParallel(net(), {"cpu:0", "cpu:1"}), "cpu:0", make, when);
    }
}

BOOST_AUTO_TEST_CASE(on_a_device_that_refuses_the_work) {
  for (auto& [name, make] : optimizers) {
    BOOST_TEST_CONTEXT(name) train(net(), "sim:0", make, When::read_at_once, true);
    BOOST_TEST_CONTEXT(name)
    train(nn::DataParallel(net(), {"sim:0", "sim:1"}), "sim:0", make, When::read_at_the_end, true);
  }
}

// The device has run on when it reports; what it spoiled holds zeros, as it says.
BOOST_AUTO_TEST_CASE(on_a_device_that_reports_late) {
  for (auto& [name, make] : optimizers) {
    BOOST_TEST_CONTEXT(name) {
      synchronize();
      auto model = net();
      model.to("sim:0");
      auto optimizer = make(model.parameters());
      int told = 0;
      for (int i = 0; i < kSteps; ++i) {
        Tensor x = randn({8, 6}).to("sim:0"), labels = randint(0, 3, {8});
        if (i == kBadStep) labels.slice(0, 5, 6).fill_(1000);
        optimizer->zero_grad();
        Tensor loss = cross_entropy(model(x), labels.to("sim:0"));
        loss.backward();
        optimizer->step();
        try {
          BOOST_TEST(std::isfinite(loss.item()));
        } catch (const IndexError& e) {
          BOOST_TEST(std::string(e.what()).find("1000") != std::string::npos, e.what());
          ++told;
        }
      }
      BOOST_TEST(told == 1);
      BOOST_CHECK_NO_THROW(synchronize());
      BOOST_TEST(finite(values_of(model.parameters())));
      BOOST_TEST(finite(values_of(state_of(*optimizer))));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
