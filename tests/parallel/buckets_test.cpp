// Gradients of several devices are summed in buckets while the backward pass still runs, and come
// to what they are without.
#include <functional>
#include <stdexcept>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "parallel/gradients.h"
#include "parallel/trained.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(buckets_test)

using namespace tenon;
using namespace tenon::test;

namespace {

// One weight in two places, layers that are computed again, and one that the result does not reach.
struct Net : nn::Module<Net> {
  nn::Linear in{6, 8}, tied{8, 8}, again{8, 8}, unused{8, 8}, out{8, 3};
  nn::SyncBatchNorm norm{8};
  bool syncs = false;
  Tensor forward(const Tensor& x) {
    Tensor h = tanh(tied(tanh(tied(in(x)))));
    if (syncs) h = norm(h);
    h = checkpoint([this](const Tensor& t) { return tanh(again(t)); }, h);
    return out(h);
  }
};

Net net(bool syncs = false) {
  manual_seed(3);
  Net made;
  made.syncs = syncs;
  return made;
}

nn::DataParallel<Net> shared(double cap, bool syncs = false) {
  return nn::DataParallel(net(syncs), three, {.bucket_cap_mb = cap});
}

using Pass = std::function<Values(const std::function<Tensor(const Tensor&)>&,
                                  const std::vector<Tensor>&, const Tensor&)>;

// What a program may do with a graph.
const std::pair<const char*, Pass> passes[] = {
    {"one pass",
     [](auto& model, auto& parameters, auto& x) {
       square(model(x)).sum().backward();
       return grads_of(parameters);
     }},
    {"several passes add up, also through one graph",
     [](auto& model, auto& parameters, auto& x) {
       square(model(x)).sum().backward();
       Tensor loss = square(model(x * 2)).sum();
       loss.backward({}, {.retain_graph = true});
       loss.backward();
       return grads_of(parameters);
     }},
    {"two calls in one graph",
     [](auto& model, auto& parameters, auto& x) {
       (square(model(x)).sum() + square(model(x * 2)).mean()).backward();
       return grads_of(parameters);
     }},
    {"hooks of leaves see the sum, once",
     [](auto& model, auto& parameters, auto& x) {
       std::vector<int> calls(parameters.size());
       std::vector<HookHandle> hooks;
       for (size_t i = 0; i < calls.size(); ++i)
         hooks.push_back(parameters[i].register_hook([&calls, i](const Tensor& g) {
           ++calls[i];
           return g * 3;
         }));
       square(model(x)).sum().backward();
       for (auto& hook : hooks) hook.remove();
       auto all = grads_of(parameters);
       all.emplace_back(calls.begin(), calls.end());
       return all;
     }},
    {"gradients of chosen inputs",
     [](auto& model, auto& parameters, auto& x) {
       const std::vector<Tensor> chosen = {parameters[2], parameters[0], parameters[9]};
       auto all = values_of(grad({square(model(x)).sum()}, chosen));
       all.push_back({parameters[2].grad().defined() ? 1.0 : 0.0});
       return all;
     }},
    {"a leaf that is also given in the middle of a graph",
     [](auto& model, auto& parameters, auto& x) {
       (square(model(x)).sum() + square(parameters[0]).sum() + parameters[1].sum()).backward();
       return grads_of(parameters);
     }},
    {"the input's gradient, with what a hook makes of it",
     [](auto& model, auto& parameters, auto& x) {
       Tensor in = x.clone();
       in.requires_grad_(true);
       Tensor twice = in * 2;
       auto hook = twice.register_hook([](const Tensor& g) { return g * 0.5; });
       square(model(twice)).sum().backward();
       auto all = grads_of(parameters);
       all.push_back(in.grad().template to_vector<double>());
       return all;
     }},
};

template <class Model>
Values after(const Pass& pass, Model model, const Tensor& x) {
  model.to(f64);
  return pass([&](const Tensor& in) { return model(in); }, model.parameters(), x);
}

}  // namespace

BOOST_AUTO_TEST_CASE(buckets_of_any_size_have_the_same_bits) {
  for (const int64_t batch : {7, 2})  // parts of 3, 2 and 2 rows; and none for the last device
    for (const bool syncs : {false, true})
      for (auto& [name, pass] : passes)
        BOOST_TEST_CONTEXT(name << ", " << batch << " rows" << (syncs ? ", in turns" : "")) {
          const Tensor x = randn({batch, 6}).to(f64);
          const auto whole = after(pass, shared(kNone, syncs), x);
          BOOST_TEST((after(pass, shared(kEach, syncs), x) == whole));
          BOOST_TEST((after(pass, shared(5e-4, syncs), x) == whole));
          BOOST_TEST(largest_difference(after(pass, net(syncs), x), whole) < 1e-10);
        }
}

BOOST_AUTO_TEST_CASE(gradients_of_second_order) {
  const Tensor x = randn({5, 6}).to(f64);
  const auto penalty = [&](auto model) {
    model.to(f64);
    const auto parameters = model.parameters();
    const std::vector<Tensor> chosen = {parameters[0], parameters[2]};
    Tensor total = scalar(0).to(f64);
    for (auto& g : grad({square(model(x)).sum()}, chosen, {}, {.create_graph = true}))
      total = total + square(g).sum();
    total.backward();
    return grads_of(chosen);
  };
  struct Plain : nn::Module<Plain> {
    nn::Linear in{6, 8}, out{8, 3};
    Tensor forward(const Tensor& t) { return out(tanh(in(t))); }
  } plain;
  nn::DataParallel all(nn::clone(plain), three, {.bucket_cap_mb = kEach});
  BOOST_TEST(largest_difference(penalty(all), penalty(plain)) < 1e-10);
}

// Work for all devices is queued from the start.
BOOST_AUTO_TEST_CASE(a_pass_visits_the_parts_in_turns) {
  struct Watched : nn::Module<Watched> {
    nn::Linear layer{4, 4};
    std::vector<uint32_t>* seen = nullptr;
    Tensor forward(Tensor x) {
      for (int i = 0; i < 3; ++i) {
        x = tanh(layer(x));
        x.register_hook([seen = seen](const Tensor& g) { seen->push_back(g.device().index()); });
      }
      return x;
    }
  };
  std::vector<uint32_t> seen;
  Watched watched;
  watched.seen = &seen;
  nn::DataParallel model(watched, three);
  model(ones({6, 4})).sum().backward();
  BOOST_TEST(seen == (std::vector<uint32_t>{2, 1, 0, 2, 1, 0, 2, 1, 0}));
}

// The host queues sums before it has queued the rest of the pass, and the profiler shows them in a
// row of their own.
BOOST_AUTO_TEST_CASE(sums_are_queued_while_the_pass_runs) {
  const auto sums = [](double cap) {
    auto model = shared(cap);
    const Tensor x = randn({6, 6});
    profiler::Profiler profiler;
    square(model(x)).sum().backward();
    profiler.stop();
    size_t count = 0, before_the_end = 0;
    double last = 0;
    for (auto& e : profiler.events())
      if (e.lane == "cpu:1") last = std::max(last, e.queued);
    for (auto& e : profiler.events())
      if (e.lane == "cpu:0 sums") ++count, before_the_end += e.queued < last;
    return std::pair(count, before_the_end);
  };
  const auto each = sums(kEach);
  BOOST_TEST(each.first >=
             8u);  // two for each parameter, of which the last may have nothing beside
  BOOST_TEST(each.second >= 8u);
  BOOST_TEST(sums(kNone).first == 0u);
}

// Devices of several kinds copy while the pass runs, if that makes nobody wait.
BOOST_AUTO_TEST_CASE(devices_of_several_kinds_sum_while_the_pass_runs) {
  const SimFolder sim;
  const Tensor x = randn({6, 6});
  const auto trained_on = [&](const char* devices, double cap, size_t& beside) {
    nn::DataParallel model(net(), parse_devices(devices), {.bucket_cap_mb = cap});
    profiler::Profiler profiler;
    square(model(x)).sum().backward();
    profiler.stop();
    for (auto& e : profiler.events()) beside += e.lane.ends_with(" sums");
    return grads_of(model.parameters());
  };
  for (const char* devices : {"cpu:0,sim:0", "cpu:0,sim:0,cpu:1,sim:1", "sim:0,cpu:0"}) {
    size_t in_buckets = 0, at_end = 0;
    const auto sums = trained_on(devices, kEach, in_buckets);
    BOOST_TEST((sums == trained_on(devices, kNone, at_end)), devices);
    BOOST_TEST((in_buckets > 0) == (devices[0] == 'c'), devices);
    BOOST_TEST(at_end == 0u);
  }
}

BOOST_AUTO_TEST_CASE(an_exception_in_the_middle_leaves_all_usable) {
  const Tensor x = randn({7, 6}).to(f64);
  const Pass& one = passes[0].second;
  const auto expected = after(one, shared(kEach), x);
  auto model = shared(kEach);
  model.to(f64);
  Tensor in = x.clone();
  in.requires_grad_(true);
  for (int again = 0; again < 3; ++again) {
    Tensor loss = square(model(in * 1.0)).sum();
    auto hook = in.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("hook"); });
    BOOST_CHECK_THROW(loss.backward(), std::runtime_error);
    hook.remove();
    for (auto& p : model.parameters()) BOOST_TEST(!p.grad().defined());
  }
  square(model(x)).sum().backward();
  BOOST_TEST((grads_of(model.parameters()) == expected));
}

// A value that a device did not compute reaches the sums that need it, and no others.
BOOST_AUTO_TEST_CASE(a_failure_on_one_device_spoils_its_sums_alone) {
  for (const double cap : {kEach, kNone}) {
    nn::Linear linear(6, 2);
    nn::DataParallel model(nn::Sequential(nn::Embedding(4, 3), nn::Flatten(), linear), three,
                           {.bucket_cap_mb = cap});
    const auto step = [&](int64_t last) {
      model.zero_grad();
      const Tensor x = tensor({0, 1, 2, 3, 0, 1, 2, 3, 1, 2, 3, static_cast<double>(last)}, {6, 2});
      model(x.to(i64)).sum().backward();
    };
    step(9);  // on cpu:2
    BOOST_CHECK_THROW(linear.weight.grad().to_vector<float>(), Error);
    BOOST_TEST(linear.bias.grad().to_vector<float>() == (std::vector<float>{6, 6}));
    BOOST_CHECK_THROW(synchronize(), IndexError);  // the gradient of the embedding
    step(0);
    for (auto& p : model.parameters()) p.grad().to_vector<float>();
    synchronize();
  }
}

BOOST_AUTO_TEST_CASE(two_threads_train_models_of_their_own) {
  // Layers are made by the generator that all threads share.
  const auto train = [](nn::DataParallel<Net>& model, Values& values) {
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    for (int step = 0; step < 4; ++step) {
      optimizer.zero_grad();
      square(model(arange(0, 42).reshape({7, 6}) / 42)).mean().backward();
      optimizer.step();
    }
    values = values_of(model.parameters());
  };
  auto first = shared(kEach), second = shared(kEach), third = shared(kEach);
  Values alone, both[2];
  train(third, alone);
  std::thread other([&] { train(second, both[1]); });
  train(first, both[0]);
  other.join();
  BOOST_TEST((both[0] == alone));
  BOOST_TEST((both[1] == alone));
}

BOOST_AUTO_TEST_CASE(a_bucket_has_a_size) {
  require_error<ValueError>([] { shared(0); }, "DataParallel: bucket_cap_mb", "0", "above 0");
  const uint32_t devices = device_count("cpu");
  square(shared(kEach)(ones({3, 6}))).sum().backward();
  BOOST_TEST(device_count("cpu") == std::max(devices, 3u));  // what sums is no device
}

BOOST_AUTO_TEST_SUITE_END()
