// One model on several devices learns what it learns on one.
#include <tenon/core/autograd/autograd.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/random.h>
#include <tenon/modules/conv.h>
#include <tenon/modules/data_parallel.h>
#include <tenon/modules/init.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/loss.h>
#include <tenon/modules/norm.h>
#include <tenon/modules/optim/adam.h>
#include <tenon/modules/optim/sgd.h>
#include <tenon/modules/pool.h>
#include <tenon/modules/sequential.h>

#include "ops/check.h"
#include "parallel/trained.h"
#include "support/sanitized.h"
#include "training/step.h"

BOOST_AUTO_TEST_SUITE(data_parallel_test)

using namespace tenon;
using namespace tenon::test;

namespace {

// For a few that are about the names of devices.
boost::test_tools::assertion_result on_cpu(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(default_device() == Device());
  if (!result) result.message() << "names devices of the cpu";
  return result;
}

// All parameters after some training steps.
template <class Model>
std::vector<std::vector<double>> trained(Model model, int steps, int64_t batch, DType dtype = f32) {
  manual_seed(11);
  model.to(dtype);
  optim::SGD opt(model.parameters(), {.lr = 0.05, .momentum = 0.9});
  nn::CrossEntropyLoss loss;
  for (int i = 0; i < steps; ++i) {
    Tensor x = randn({batch, 1, 28, 28}).to(dtype), y = randint(0, 10, {batch});
    opt.zero_grad();
    loss(model(x), y).backward();
    opt.step();
  }
  std::vector<std::vector<double>> values;
  for (Tensor& p : model.parameters()) values.push_back(p.template to_vector<double>());
  return values;
}

LeNet lenet() {
  manual_seed(5);
  return LeNet();
}

struct Where : nn::Module<Where> {  // says where each row was computed
  nn::Parameter weight = ones({1});
  Tensor forward(const Tensor& x) {
    return x * weight * 0 + static_cast<double>(x.device().index());
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(many_steps_equal_one_device) {
  const int kSteps = test::kSanitized ? 10 : 50;
  auto expected = trained(lenet(), kSteps, 12, f64);
  for (uint32_t n : {1u, 2u, 3u, 4u})
    BOOST_TEST(largest_difference(trained(nn::DataParallel(lenet(), places(n)), kSteps, 12, f64),
                                  expected) < 1e-9);
}

// The collectives of a plugin may not sum every dtype.
BOOST_AUTO_TEST_CASE(gradients_of_half_types_add_up) {
  for (DType dtype : {bf16, f16}) {
    manual_seed(6);
    nn::Linear plain(4, 2);
    plain.to(dtype);
    const auto devices = places(3);
    nn::DataParallel shared(nn::clone(plain), devices);
    const Tensor x = randint(-4, 5, {6, 4}).to(dtype);  // sums that are exact
    plain(x).sum().backward();
    shared(x.to(devices[0])).sum().backward();
    BOOST_TEST((shared.module.weight.grad().to_vector<double>() ==
                plain.weight.grad().to_vector<double>()));
    BOOST_TEST((shared.module.bias.grad().to_vector<double>() == std::vector<double>{6, 6}));
  }
}

BOOST_AUTO_TEST_CASE(gradients_that_wait_for_each_other_add_up) {
  nn::Linear plain(4, 2);
  nn::DataParallel shared(nn::clone(plain), places(3));
  const Tensor x = sample({7, 4}).to(f32);
  for (int pass = 1; pass <= 4; ++pass) {
    std::optional<nn::NoSync> guard;
    if (pass != 3) guard.emplace(shared.no_sync());
    square(plain(x * pass)).sum().backward();
    square(shared(x.to(places(3)[0]) * pass)).sum().backward();
  }
  require_equal(shared.module.weight.grad(), plain.weight.grad(), 1e-4);
  require_equal(shared.module.bias.grad(), plain.bias.grad(), 1e-4);
}

BOOST_AUTO_TEST_CASE(in_single_precision_within_rounding) {
  auto expected = trained(lenet(), 5, 10);
  for (uint32_t n : {2u, 3u, 4u})
    BOOST_TEST(largest_difference(trained(nn::DataParallel(lenet(), places(n)), 5, 10), expected) <
               1e-5);
}

BOOST_AUTO_TEST_CASE(the_same_bits_twice) {
  const int kSteps = test::kSanitized ? 4 : 10, kRuns = test::kSanitized ? 1 : 3;
  for (uint32_t n : {2u, 3u, 4u}) {
    auto first = trained(nn::DataParallel(lenet(), places(n)), kSteps, 9);
    for (int again = 0; again < kRuns; ++again)
      BOOST_TEST((trained(nn::DataParallel(lenet(), places(n)), kSteps, 9) == first));
  }
}

BOOST_AUTO_TEST_CASE(batches_are_split_evenly_or_by_weight,
                     *boost::unit_test::precondition(on_cpu)) {
  nn::DataParallel even(Where(), places(4));
  require_values(even(ones({10, 1})).reshape({10}).detach(), {10}, {0, 0, 0, 1, 1, 1, 2, 2, 3, 3});
  require_values(even(ones({2, 1})).reshape({2}).detach(), {2},
                 {0, 1});  // smaller than the number of devices
  require_values(even(ones({1, 1})).reshape({1}).detach(), {1}, {0});
  BOOST_TEST(even(ones({0, 1})).shape() == (Shape{0, 1}));
  nn::DataParallel uneven(Where(), places(3), {.weights = {1, 0, 3}});
  require_values(uneven(ones({8, 1})).reshape({8}).detach(), {8}, {0, 0, 2, 2, 2, 2, 2, 2});
  BOOST_TEST((uneven(ones({10, 1})).device() == default_device()));
  nn::DataParallel huge(Where(), places(2), {.weights = {1e308, 1e308}});
  require_values(huge(ones({4, 1})).reshape({4}).detach(), {4}, {0, 0, 1, 1});
  Tensor elsewhere = ones({4, 1}, {.device = "cpu:2"});
  require_values(even(elsewhere).reshape({4}).detach(), {4}, {0, 1, 2, 3});
}

BOOST_AUTO_TEST_CASE(gradients_reach_the_input_and_one_set_of_parameters) {
  nn::Linear fc(3, 2);
  nn::DataParallel model(fc, places(2));
  Tensor x = sample({5, 3}).to(f32), same = x.detach().clone();
  x.requires_grad_();
  same.requires_grad_();
  square(model(x)).sum().backward();
  Tensor found = fc.weight.grad().clone();
  BOOST_TEST((found.device() == default_device()));
  fc.zero_grad();
  square(fc(same)).sum().backward();
  require_equal(found, fc.weight.grad(), 1e-5);
  require_equal(x.grad(), same.grad(), 1e-6);
}

// Parameters that meet no input before something has been computed of them alone, in the forward
// pass or in a gradient rule. One is not contiguous, so its replicas are of a copy.
struct Lone : nn::Module<Lone> {
  nn::Linear a{3, 4};
  nn::BatchNorm1d norm{4};
  nn::Parameter w = sample({2, 4}, 0.9).to(f32).t(), s = sample({4}, 0.2).to(f32);
  int kind = 0;

  Tensor forward(const Tensor& x) {
    const Tensor h = a(x);
    switch (kind) {
      case 0:
        return relu(h).matmul(w);
      case 1:
        return h * square(s);
      case 2:
        return where(gt(s, 0), s, 0.5) * h + zeros_like(s) * h;
      case 3:
        return pow(square(h) + 1, s) * (2.0 - s) / s;
      case 4:
        return maximum(h, s) + clamp(s, -0.5, 0.5) * h;
      default:
        return norm(h);
    }
  }
};

BOOST_AUTO_TEST_CASE(gradients_of_lone_parameters_are_those_of_the_plain_model) {
  const Tensor x = sample({6, 3}).to(f32);
  for (int kind = 0; kind < 5; ++kind) {
    manual_seed(4);
    Lone plain;
    plain.kind = kind;
    manual_seed(4);
    nn::DataParallel wrapped(Lone(), places(3));
    wrapped.module.kind = kind;
    square(plain(x)).sum().backward();
    square(wrapped(x)).sum().backward();
    auto expected = plain.named_parameters();
    auto found = wrapped.module.named_parameters();
    for (size_t i = 0; i < expected.size(); ++i) {
      BOOST_TEST_CONTEXT("kind " << kind << ", " << expected[i].name) {
        BOOST_TEST_REQUIRE(found[i].tensor.grad().defined() == expected[i].tensor.grad().defined());
        if (expected[i].tensor.grad().defined())
          require_equal(found[i].tensor.grad(), expected[i].tensor.grad(), 1e-4);
      }
    }
  }
}

// Rules that are composed of operators so that they can be differentiated again, where all of a
// model runs on a second device.
BOOST_AUTO_TEST_CASE(second_order_of_a_model_elsewhere) {
  const auto devices = places(2);
  auto penalty = [](auto& model, const Tensor& x, int kind) {
    model.kind = kind;
    std::vector<Tensor> params;
    for (auto& p : model.named_parameters()) params.push_back(p.tensor);
    Tensor y = square(model(x)).sum();
    auto first = grad(std::span(&y, 1), params, {}, {.create_graph = true, .allow_unused = true});
    Tensor total = scalar(0).to(x.device());
    for (auto& g : first)
      if (g.defined()) total = total + square(g).sum().to(x.device());
    total.backward();
    std::vector<Tensor> result;
    for (auto& p : params) result.push_back(p.grad());
    return result;
  };
  const Tensor x = sample({6, 3}).to(f32);
  for (int kind = 0; kind < 6; ++kind) {
    manual_seed(4);
    Lone plain;
    manual_seed(4);
    Lone other;
    for (auto& p : other.named_parameters()) allow_replicas(p.tensor);
    for (auto& b : other.named_buffers()) allow_replicas(b.tensor);
    auto expected = penalty(plain, x, kind);
    std::vector<Tensor> found;
    {
      DeviceGuard there(devices[1]);
      found = penalty(other, x.to(devices[1]), kind);
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      BOOST_TEST_CONTEXT("kind " << kind << ", parameter " << i) {
        BOOST_TEST_REQUIRE(found[i].defined() == expected[i].defined());
        if (expected[i].defined()) require_equal(found[i], expected[i], 1e-3);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(changes_of_the_model_reach_all_devices) {
  nn::DataParallel model(nn::Linear(1, 1, {.bias = false}), places(2));
  Tensor x = ones({2, 1});
  for (double value : {1.0, 2.0, 3.0}) {
    nn::init::constant_(model.module.weight, value);
    require_values(model(x).detach(), {2, 1}, {value, value});
  }
  model.module = nn::Linear(1, 1, {.bias = false});  // a child that is replaced is found as well
  nn::init::constant_(model.module.weight, 7);
  require_values(model(x).detach(), {2, 1}, {7, 7});
  model.to(f64);
  require_values(model(x.to(f64)).detach(), {2, 1}, {7, 7});
}

BOOST_AUTO_TEST_CASE(arguments_and_results_of_many_kinds) {
  struct Kinds : nn::Module<Kinds> {
    nn::Parameter weight = ones({1});
    std::tuple<Tensor, std::vector<Tensor>, std::pair<Tensor, Tensor>> forward(
        const Tensor& x, const std::vector<Tensor>& more, double factor,
        const std::optional<Tensor>& maybe, const Tensor& scalar, const std::string& text) {
      Tensor y = x * weight * factor + more[0] + scalar;
      if (maybe) y = y + *maybe;
      return {y, {x, more[1]}, {y.sum(), x + static_cast<double>(text.size())}};
    }
  };
  auto call = [](auto& model) {
    Tensor x = arange(0, 5).reshape({5, 1});
    auto [y, list, pair] = model(x, std::vector<Tensor>{x * 10, x * 100}, 2.0,
                                 std::optional<Tensor>(x), scalar(0.5), std::string("four"));
    return std::vector<Tensor>{y, list[0], list[1], pair.second, pair.first};
  };
  Kinds plain;
  nn::DataParallel wrapped(plain, places(2));
  auto one = call(plain), two = call(wrapped);
  for (size_t i = 0; i < 4; ++i) require_equal(two[i].detach(), one[i].detach());
  require_values(two[4].detach(), {2}, {13 * 3 + 1.5, 13 * 7 + 1});  // scalars become a vector
}

BOOST_AUTO_TEST_CASE(running_statistics_are_those_of_the_first_device) {
  nn::BatchNorm1d norm(2), alone(2);
  nn::DataParallel model(norm, places(2));
  Tensor x = sample({8, 2}).to(f32);
  for (int i = 0; i < 3; ++i) {
    model(x * (i + 1.0));
    alone(x.narrow(0, 0, 4) * (i + 1.0));
  }
  require_equal(norm.running_mean, alone.running_mean, 1e-6);
  require_equal(norm.running_var, alone.running_var, 1e-6);
  BOOST_TEST(norm.num_batches_tracked.item<int64_t>() == 3);
  model.eval();
  alone.eval();
  require_equal(model(x).detach(), alone(x).detach(), 1e-5);  // every device reads them
}

BOOST_AUTO_TEST_CASE(wrapped_twice_or_inside_a_model) {
  auto expected = trained(lenet(), 3, 8, f64);
  nn::DataParallel once(lenet(), places(2));
  nn::DataParallel twice(once, places(4));
  static_assert(std::is_same_v<decltype(twice), nn::DataParallel<nn::DataParallel<LeNet>>>);
  BOOST_TEST(twice.named_parameters()[0].name == "module.module.conv1.weight");
  BOOST_TEST(largest_difference(trained(twice, 3, 8, f64), expected) < 1e-9);

  struct Partly : nn::Module<Partly> {
    nn::DataParallel<nn::Sequential> body{nn::Sequential(nn::Linear(3, 4), nn::Linear(4, 3)),
                                          places(3)};
    nn::Linear head{3, 1};
    Tensor forward(const Tensor& x) { return head(body(x)); }
  };
  Partly net;
  BOOST_TEST(net.named_parameters()[0].name == "body.module.0.weight");
  Tensor x = sample({7, 3}).to(f32);
  Tensor y = net(x);
  require_equal(y.detach(), net.head(net.body.module(x)).detach(), 1e-5);
  y.sum().backward();
  for (auto& [name, p] : net.named_parameters()) BOOST_TEST(p.grad().defined(), name);
}

BOOST_AUTO_TEST_CASE(it_prints_and_names_as_pytorch_does) {
  nn::DataParallel model(nn::Linear(10, 1), places(2));
  BOOST_TEST(nn::str(model) ==
             "DataParallel(\n  (module): Linear(in_features=10, out_features=1, bias=True)\n)");
  BOOST_TEST(model.state_dict()[0].first == "module.weight");
  BOOST_TEST(model.named_modules()[1].name == "module");
  BOOST_TEST(nn::ModuleRef(model).type->wrapper);
  nn::DataParallel drop(LeNet(), places(2));
  int linears = 0;
  drop.apply([&](nn::ModuleRef m) { linears += m.as<nn::Linear>() != nullptr; });
  BOOST_TEST(linears == 3);
}

BOOST_AUTO_TEST_CASE(all_devices_of_the_models_kind_by_default,
                     *boost::unit_test::precondition(on_cpu)) {
  synchronize(Device("cpu:1"));
  nn::DataParallel model{nn::Linear(2, 1)};
  BOOST_TEST(model.devices().size() == device_count("cpu"));
  BOOST_TEST(model.devices()[0].str() == "cpu:0");
}

BOOST_AUTO_TEST_CASE(other_first_device, *boost::unit_test::precondition(on_cpu)) {
  nn::DataParallel model(nn::Linear(2, 1), {"cpu:1", "cpu:0"});
  BOOST_TEST(model.module.weight.device().str() == "cpu:1");
  Tensor y = model(ones({4, 2}));
  BOOST_TEST(y.device().str() == "cpu:1");
  y.sum().backward();
  BOOST_TEST(model.module.weight.grad().device().str() == "cpu:1");
  nn::DataParallel single(nn::Linear(2, 1), {"cpu:1"});
  BOOST_TEST(single(ones({4, 2})).device().str() == "cpu:1");
}

BOOST_AUTO_TEST_CASE(bad_input, *boost::unit_test::precondition(on_cpu)) {
  require_error<DeviceError>(
      [] {
        nn::DataParallel(Where(), {"cpu:0", "cpu:1", "cpu:0"});
      },
      "DataParallel: device cpu:0 is given twice");
  require_error<ValueError>([] { nn::DataParallel(Where(), places(2), {.weights = {1}}); },
                            "DataParallel: 1 weights given for 2 devices");
  require_error<ValueError>(
      [] {
        nn::DataParallel(Where(), places(2), {.weights = {1, -1}});
      },
      "DataParallel: a weight is -1");
  nn::DataParallel model(Where(), places(2));
  model.to("cpu:1");
  require_error<DeviceError>(
      [&] {
        model(ones({2, 1}));
      },
      "\"weight\" of the wrapped Where is on cpu:1, but the model has to be on the first of its "
      "devices, cpu:0");
  // The outer wrapper has moved it, and would do so again.
  nn::DataParallel nested(nn::DataParallel(Where(), {"cpu:1", "cpu:0"}), {"cpu:0", "cpu:1"});
  require_error<DeviceError>(
      [&] {
        nested(ones({4, 1}));
      },
      "on the first of its devices, cpu:1; this wrapper is inside another "
      "one, which moved it to its own devices, so give both the same first "
      "device, or wrap only the outer model");
  struct Add : nn::Module<Add> {
    Tensor forward(const Tensor& a, const Tensor& b) { return a + b; }
  };
  nn::DataParallel add(Add(), places(2));
  require_error<ShapeError>(
      [&] {
        add(ones({4, 1}), ones({1, 4}));
      },
      "different batch sizes: 4 and 1");
  nn::DataParallel fc(nn::Linear(2, 1), places(2));
  require_error<ShapeError>([&] { fc(ones({4, 3})); }, "(in module DataParallel.module)");
}

BOOST_AUTO_TEST_SUITE_END()
