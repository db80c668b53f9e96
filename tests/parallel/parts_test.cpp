// A loop of one's own over several devices learns what one device learns.
#include <chrono>
#include <deque>
#include <limits>
#include <numeric>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "ops/check.h"
#include "parallel/trained.h"
#include "support/expect.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(parts_test)

using namespace tenon;
using namespace tenon::test;
namespace parallel = tenon::nn::parallel;

namespace {

std::vector<int64_t> sizes_of(const std::vector<Tensor>& parts, int64_t dim = 0) {
  std::vector<int64_t> sizes;
  for (auto& part : parts) sizes.push_back(part.size(dim));
  return sizes;
}

struct Net : nn::Module<Net> {
  nn::Linear first{6, 16}, second{16, 3};
  Tensor forward(const Tensor& x) { return second(tanh(first(x))); }
};

std::vector<std::vector<double>> values_of(const Net& net) {
  std::vector<std::vector<double>> values;
  for (auto& p : net.parameters()) values.push_back(p.to_vector<double>());
  return values;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_scattered_is_gathered) {
  const auto devices = places(3);
  const Tensor x = arange(0, 42).reshape({7, 6});
  const auto rows = parallel::scatter(x, devices);
  BOOST_TEST((sizes_of(rows) == std::vector<int64_t>{3, 2, 2}));
  for (size_t i = 0; i < rows.size(); ++i) BOOST_TEST(rows[i].device() == devices[i]);
  BOOST_TEST(parallel::gather(rows, devices[1]).device() == devices[1]);
  BOOST_TEST(parallel::gather(rows, devices[1]).to_vector<float>() == x.to_vector<float>());
  const auto columns = parallel::scatter(x, devices, {.dim = -1, .weights = {1, 0, 2}});
  BOOST_TEST((sizes_of(columns, 1) == std::vector<int64_t>{2, 0, 4}));
  BOOST_TEST(parallel::gather(columns, devices[0], 1).to_vector<float>() == x.to_vector<float>());
  BOOST_TEST(
      (sizes_of(parallel::scatter(x.narrow(0, 0, 1), devices)) == std::vector<int64_t>{1, 0, 0}));
  BOOST_TEST(parallel::scatter(x.t(), devices)[0].shape() == (Shape{2, 7}));  // not contiguous
}

BOOST_AUTO_TEST_CASE(gradients_come_back_from_all_devices) {
  const auto devices = places(3);
  Tensor x = arange(0, 7).requires_grad_();
  const auto parts = parallel::scatter(x, devices);
  Tensor loss;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Tensor own = (square(parts[i]) * static_cast<double>(i + 1)).sum().to(devices[0]);
    loss = loss.defined() ? loss + own : own;
  }
  loss.backward();
  BOOST_TEST(x.grad().to_vector<double>() == (std::vector<double>{0, 2, 4, 12, 16, 30, 36}));

  Tensor w = tensor({2.0, 3.0}).requires_grad_();
  const auto copies = parallel::broadcast(w, devices);
  parallel::reduce_add(std::vector{copies[0] * 1.0, copies[1] * 2.0, copies[2] * 4.0}, devices[2])
      .sum()
      .backward();
  BOOST_TEST(w.grad().to_vector<double>() == (std::vector<double>{7, 7}));
}

BOOST_AUTO_TEST_CASE(an_all_reduce_leaves_the_sum_everywhere) {
  const auto devices = places(3);
  for (DType dtype : {f32, f64, bf16, i64}) {
    std::vector<Tensor> values;
    for (size_t i = 0; i < 3; ++i)
      values.push_back(full({2, 3}, static_cast<double>(1 << i)).to(dtype).to(devices[i]));
    const Tensor view = values[1].narrow(0, 1, 1);
    const uint64_t version = values[1].version();
    parallel::all_reduce_(values);
    for (size_t i = 0; i < 3; ++i) {
      BOOST_TEST(values[i].device() == devices[i]);
      BOOST_TEST(values[i].to_vector<double>() == std::vector<double>(6, 7));
    }
    BOOST_TEST(view.to_vector<double>() == std::vector<double>(3, 7));  // in place
    BOOST_TEST(values[1].version() > version);
  }
  const Tensor columns = ones({3, 2}, {.device = devices[0]}).t();  // not contiguous
  const std::vector<Tensor> mixed = {columns, ones({2, 3}, {.device = devices[1]})};
  parallel::all_reduce_(mixed);
  BOOST_TEST(columns.to_vector<float>() == std::vector<float>(6, 2));
}

BOOST_AUTO_TEST_CASE(replicas_learn_what_one_model_learns) {
  manual_seed(3);
  Net whole;
  whole.to(f64);
  const auto devices = places(3);
  auto nets = parallel::replicate(whole, devices);
  std::deque<optim::SGD> optimizers;
  for (auto& net : nets) {
    BOOST_TEST(!net.first.weight.is_same(whole.first.weight));
    optimizers.emplace_back(net.parameters(), optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
  }
  optim::SGD alone(whole.parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int step = 0; step < 8; ++step) {
    const int64_t batch = step == 5 ? 2 : 7;  // fewer rows than devices
    const Tensor x = randn({batch, 6}).to(f64), y = randint(0, 3, {batch});
    alone.zero_grad();
    cross_entropy(whole(x), y).backward();
    alone.step();
    for (auto& o : optimizers) o.zero_grad();
    const auto parts = parallel::split_and_load(x, y, devices);
    BOOST_TEST(parts.size() == static_cast<size_t>(std::min<int64_t>(batch, 3)));
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto& [px, py] = parts[i];
      (cross_entropy(nets[i](px), py, {.reduction = Reduction::sum}) / static_cast<double>(batch))
          .backward();
    }
    parallel::all_reduce_gradients_(nets);
    for (auto& o : optimizers) o.step();
  }
  for (auto& net : nets) BOOST_TEST((values_of(net) == values_of(nets[0])));  // the same bits
  BOOST_TEST(largest_difference(values_of(nets[0]), values_of(whole)) < 1e-12);
}

BOOST_AUTO_TEST_CASE(means_of_equal_parts_ask_for_the_mean) {
  Net net;
  const auto devices = places(2);
  auto nets = parallel::replicate(net, devices);
  for (size_t i = 0; i < nets.size(); ++i)
    nets[i](ones({4, 6}, {.device = devices[i]})).mean().backward();
  const auto expected = nets[0].second.bias.grad().to_vector<float>();
  parallel::all_reduce_gradients_(nets, {.mean = true});
  for (auto& each : nets) {
    const auto found = each.second.bias.grad().to_vector<float>();
    for (size_t i = 0; i < found.size(); ++i) BOOST_TEST(std::abs(found[i] - expected[i]) < 1e-6);
  }
}

// Layers on different devices; what one computes is copied to the next, and its gradient back.
BOOST_AUTO_TEST_CASE(layers_may_be_on_different_devices) {
  const auto devices = places(2);
  manual_seed(5);
  Net whole;
  whole.to(f64);
  Net cut = nn::clone(whole);
  cut.first.to(devices[0]);
  cut.second.to(devices[1]);
  const Tensor x = randn({5, 6}).to(f64), y = randint(0, 3, {5});
  cross_entropy(whole(x), y).backward();
  cross_entropy(cut.second(tanh(cut.first(x.to(devices[0]))).to(devices[1])), y.to(devices[1]))
      .backward();
  const auto expected = whole.parameters(), found = cut.parameters();
  for (size_t i = 0; i < expected.size(); ++i) {
    BOOST_TEST(found[i].grad().device() == devices[i < 2 ? 0 : 1]);
    const auto e = expected[i].grad().to_vector<double>(), f = found[i].grad().to_vector<double>();
    for (size_t j = 0; j < e.size(); ++j) BOOST_TEST(std::abs(e[j] - f[j]) < 1e-13);
  }
}

BOOST_AUTO_TEST_CASE(evaluation_uses_all_devices_and_leaves_the_mode) {
  manual_seed(7);
  Net net;
  nn::Sequential body(net.first, nn::Dropout(0.5), nn::Linear(16, 3));
  body.train();
  nn::Dropout frozen(0.5);
  frozen.eval();
  nn::Sequential model(body, frozen);
  const data::TensorDataset set(randn({23, 6}), randint(0, 3, {23}));
  const auto measure = [&](auto& any) {
    metrics::Accuracy right;
    metrics::ConfusionMatrix confusion(3);
    data::DataLoader loader(set, {.batch_size = 5, .shuffle = false});
    BOOST_TEST(nn::evaluate(any, loader, right, confusion) == 23);
    BOOST_TEST(confusion.compute().sum().item() == 23.0);
    return right.compute().item();
  };
  const double alone = measure(model);
  BOOST_TEST(measure(model) == alone);  // without dropout
  nn::DataParallel shared(model, places(3));
  BOOST_TEST(measure(shared) == alone);
  std::vector<bool> modes;
  for (auto& [name, m] : nn::named_modules(model))
    if (auto* dropout = m.as<nn::Dropout>()) modes.push_back(dropout->training);
  BOOST_TEST((modes == std::vector<bool>{true, false}));
}

BOOST_AUTO_TEST_CASE(evaluation_takes_the_targets_to_where_the_results_are) {
  struct Stages : nn::Module<Stages> {
    nn::Linear first{6, 4}, second{4, 3};
    Tensor forward(const Tensor& x) { return second(first(x).to(second.weight.device())); }
  } net;
  const data::TensorDataset set(randn({9, 6}), randint(0, 3, {9}));
  const auto measure = [&] {
    metrics::Accuracy right;
    nn::evaluate(net, data::DataLoader(set, {.batch_size = 4, .shuffle = false}), right);
    return right.compute();
  };
  const auto devices = places(2);
  net.to(devices[0]);
  const double together = measure().item();
  net.second.to(devices[1]);
  BOOST_TEST(measure().device() == devices[1]);
  BOOST_TEST(measure().item() == together);
}

// The shares of devices of such speeds, in rows a second, after some calls.
std::vector<double> shares_after(nn::detail::Balance& balance, const std::vector<Device>& devices,
                                 const std::vector<double>& speeds, int calls, int& measured) {
  measured = 0;
  for (int call = 0; call < calls; ++call) {
    nn::detail::Split split{{}, 1000};
    nn::detail::share_out(split, devices, balance.weights());
    if (!balance.is_due(split)) continue;
    ++measured;
    std::vector<double> seconds;
    for (auto& part : split.parts)
      seconds.push_back(static_cast<double>(part.size) / speeds[part.device.index()]);
    balance.learn(split, seconds);
  }
  return balance.shares();
}

BOOST_AUTO_TEST_CASE(shares_follow_the_speeds_of_devices) {
  const std::vector<Device> devices = {"cpu:0", "cpu:1", "cpu:2", "cpu:3"};
  nn::detail::Balance balance(devices, {1, 1, 0, 1}, true);
  int measured = 0;
  const auto found = shares_after(balance, devices, {1, 2, 9, 4}, 400, measured);
  const auto near = boost::test_tools::tolerance(0.05);
  BOOST_TEST(found == (std::vector<double>{1 / 7.0, 2 / 7.0, 0, 4 / 7.0}),
             near << boost::test_tools::per_element());
  BOOST_TEST(measured < 20);
  BOOST_TEST((shares_after(balance, devices, {1, 2, 9, 4}, 600, measured) == found));
  BOOST_TEST(measured < 5);
  // One becomes slow.
  BOOST_TEST(shares_after(balance, devices, {1, 2, 9, 1}, 600, measured) ==
                 (std::vector<double>{0.25, 0.5, 0, 0.25}),
             near << boost::test_tools::per_element());
  nn::detail::Balance fixed(devices, {}, false);
  BOOST_TEST(
      (shares_after(fixed, devices, {1, 2, 9, 4}, 10, measured) == std::vector<double>(4, 0.25)));
  BOOST_TEST(measured == 0);
}

// What a machine does besides may disturb single measurements.
BOOST_AUTO_TEST_CASE(a_slow_device_gets_less) {
  struct Slow : nn::Module<Slow> {
    nn::Parameter weight = ones({1});
    Device slow;
    Tensor forward(const Tensor& x) {
      if (x.device() == slow) std::this_thread::sleep_for(std::chrono::milliseconds(x.size(0)));
      return x * weight;
    }
  };
  const auto devices = places(2);
  nn::DataParallel model(Slow(), devices, {.balance = true});
  model.module.slow = devices[1];
  const Tensor x = arange(0, 12).reshape({12, 1}).to(devices[0]);
  BOOST_TEST((model.shares() == std::vector<double>{0.5, 0.5}));
  for (int call = 0; call < 1000 && model.shares()[1] > 0.3; ++call)
    require_equal(model(x).detach(), x);
  BOOST_TEST(model.shares()[1] < 0.3);
  BOOST_TEST(model.shares()[0] + model.shares()[1] == 1.0, boost::test_tools::tolerance(1e-12));
}

// Whatever the shares are, also where parts wait for each other.
BOOST_AUTO_TEST_CASE(balanced_devices_learn_what_one_learns) {
  const auto make = [] {
    manual_seed(3);
    nn::Sequential net(nn::Linear(8, 16), nn::SyncBatchNorm(16), nn::ReLU(), nn::Linear(16, 3));
    return net.to(f64), net;
  };
  const auto learned = [](auto model) {
    optim::SGD optimizer(model.parameters(), 0.1);
    manual_seed(5);
    for (int i = 0; i < 6; ++i) {
      const Tensor x = randn({13, 8}).to(default_device(), f64),
                   y = randint(0, 3, {13}).to(x.device());
      optimizer.zero_grad();
      cross_entropy(model(x), y).backward();
      optimizer.step();
    }
    std::vector<std::vector<double>> all;
    for (auto& p : model.parameters()) all.push_back(p.template to_vector<double>());
    return all;
  };
  nn::DataParallel shared(make(), places(3), {.weights = {1, 5, 2}, .balance = true});
  BOOST_TEST(largest_difference(learned(shared), learned(make())) < 1e-9);
}

BOOST_AUTO_TEST_CASE(calls_that_make_no_sense) {
  const auto devices = places(2);
  const std::vector<Device> none;
  const Tensor x = ones({4, 2});
  require_error<ValueError>([&] { parallel::scatter(x, none); }, "scatter: the list of devices");
  require_error<ValueError>([&] { parallel::replicate(Net(), none); }, "replicate: ");
  require_error<ShapeError>([&] { parallel::scatter(full({}, 1), devices); }, "without dimensions");
  require_error<IndexError>([&] { parallel::scatter(x, devices, {.dim = 2}); }, "dimension 2",
                            "(4, 2)");
  require_error<ValueError>([&] { parallel::scatter(x, devices, {.weights = {1}}); },
                            "1 weights given for 2 devices");
  require_error<ValueError>(
      [&] {
        parallel::scatter(x, devices, {.weights = {1, std::numeric_limits<double>::infinity()}});
      },
      "a weight");
  require_error<ValueError>([&] { parallel::gather(std::vector<Tensor>(), devices[0]); },
                            "gather: no tensor");
  require_error<ShapeError>(
      [&] {
        parallel::reduce_add(std::vector{x, x.t()}, devices[0]);
      },
      "tensor 1", "(2, 4)");
  require_error<DTypeError>(
      [&] {
        parallel::all_reduce_(std::vector{x, x.to(f64)});
      },
      "tensor 1 is f64");
  require_error<ValueError>([&] { parallel::all_reduce_(std::vector{x, x}); }, "share memory");
  require_error<ShapeError>([&] { parallel::split_and_load(x, ones({3}), devices); }, "4 examples",
                            "3 targets");
  require_error<ValueError>(
      [&] {
        std::vector<nn::Linear> others = {nn::Linear(2, 2), nn::Linear(2, 3)};
        parallel::all_reduce_gradients_(others);
      },
      "replica 1");
}

// What is summed in place may still be read by work of another stream of its device.
BOOST_AUTO_TEST_CASE(a_sum_waits_for_readers_on_other_streams) {
  const auto devices = places(2);
  Stream second(devices[0]);
  Tensor a, read;
  {
    const StreamGuard guard(second);
    const int64_t size = kSanitized ? 200 : 900;
    a = full({100, 100}, 1, {.device = devices[0]});
    Tensor slow = zeros({size, size}, {.device = devices[0]});
    for (int i = 0; i < 4; ++i) slow = matmul(slow, slow);
    read = a + slow.narrow(0, 0, 100).narrow(1, 0, 100);
  }
  std::vector<Tensor> both{a, full({100, 100}, 10, {.device = devices[1]})};
  parallel::all_reduce_(both);
  BOOST_TEST(read.max().item<float>() == 1.0f);
  BOOST_TEST(a.min().item<float>() == 11.0f);
}

BOOST_AUTO_TEST_SUITE_END()
