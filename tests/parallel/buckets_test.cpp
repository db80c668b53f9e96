// Gradients of several devices are summed in buckets while the backward pass still runs, and come
// to what they are without.
#include <functional>
#include <stdexcept>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "parallel/trained.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(buckets_test)

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr double kEach = 1e-6, kNone = 1e9;  // a bucket for each gradient, and one that is not full

const std::vector<Device> three = {"cpu:0", "cpu:1", "cpu:2"};

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

using Values = std::vector<std::vector<double>>;
using Pass = std::function<Values(const std::function<Tensor(const Tensor&)>&,
                                  const std::vector<Tensor>&, const Tensor&)>;

Values values_of(const std::vector<Tensor>& tensors) {
  Values all;
  for (auto& t : tensors)
    all.push_back(t.defined() ? t.to_vector<double>() : std::vector<double>());
  return all;
}

Values grads_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> all;
  for (auto& p : parameters) all.push_back(p.grad());
  return values_of(all);
}

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

// Two passes within no_sync and a third one, each with other rows. The second one alone uses the
// layer that the others leave out.
struct Steps : nn::Module<Steps> {
  nn::Linear in{6, 8}, at_times{8, 8}, out{8, 3};
  bool longer = false;
  Tensor forward(const Tensor& x) {
    const Tensor h = tanh(in(x));
    return out(longer ? tanh(at_times(h)) : h);
  }
};

Steps steps() {
  manual_seed(4);
  return Steps();
}

Tensor loss_of(auto& model, Steps& inner, int step) {
  inner.longer = step == 1;
  const Tensor x = sin(arange(0, 42) * (1.0 + step)).reshape({7, 6});
  return square(model(x.to(f64))).sum();
}

Values accumulated_by(Steps model) {
  model.to(f64);
  for (int i = 0; i < 3; ++i) loss_of(model, model, i).backward();
  return grads_of(model.parameters());
}

// How many sums over devices were made while `work` ran.
size_t sums_of(const std::function<void()>& work) {
  profiler::Profiler profiler;
  work();
  profiler.stop();
  const auto events = profiler.events();
  return static_cast<size_t>(std::count_if(events.begin(), events.end(),
                                           [](auto& e) { return e.lane == "cpu (beside)"; }));
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
      if (e.lane == "cpu (beside)") ++count, before_the_end += e.queued < last;
    return std::pair(count, before_the_end);
  };
  const auto each = sums(kEach);
  BOOST_TEST(each.first >=
             8u);  // two for each parameter, of which the last may have nothing beside
  BOOST_TEST(each.second >= 8u);
  BOOST_TEST(sums(kNone).first == 0u);
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

BOOST_AUTO_TEST_CASE(no_sync_sums_several_passes_at_once) {
  const auto expected = accumulated_by(steps());
  Values first;
  for (const double cap : {kEach, kNone, kEach}) {
    nn::DataParallel model(steps(), three, {.bucket_cap_mb = cap});
    model.to(f64);
    const auto pass = [&](int i) { loss_of(model, model.module, i).backward(); };
    BOOST_TEST(sums_of([&] {
                 auto guard = model.no_sync();
                 pass(0);
                 pass(1);
               }) == 0u);
    BOOST_TEST((sums_of([&] { pass(2); }) > 0u) == (cap == kEach));
    const auto found = grads_of(model.parameters());
    BOOST_TEST(largest_difference(found, expected) < 1e-10);
    if (first.empty()) first = found;
    BOOST_TEST((found == first));
  }
  for (uint32_t n : {1u, 2u, 4u}) {
    nn::DataParallel inner(steps(), places(2));
    nn::DataParallel model(inner, places(n));  // the outer one decides
    model.to(f64);
    for (int i = 0; i < 3; ++i) {
      std::optional<nn::NoSync> guard;
      if (i < 2) guard.emplace(model.no_sync());
      loss_of(model, model.module.module, i).backward();
    }
    BOOST_TEST(largest_difference(grads_of(model.parameters()), expected) < 1e-10);
  }
}

// Whoever asks for a gradient gets all of it, also before the pass that would have summed it.
BOOST_AUTO_TEST_CASE(what_no_sync_holds_back_comes_when_it_is_needed) {
  const auto expected = accumulated_by(steps());
  const auto held = [](auto&& then) {
    nn::DataParallel model(steps(), three, {.bucket_cap_mb = kEach});
    model.to(f64);
    auto guard = model.no_sync();
    for (int i = 0; i < 3; ++i) loss_of(model, model.module, i).backward();
    then(model);
    return grads_of(model.parameters());
  };
  BOOST_TEST(largest_difference(held([](auto&) {}), expected) < 1e-10);
  BOOST_TEST(largest_difference(held([](auto& model) { model.to(f32), model.to(f64); }), expected) <
             1e-5);
  for (auto& g : held([](auto& model) { model.zero_grad(); })) BOOST_TEST(g.empty());
  for (auto& g : held([](auto& model) { model.zero_grad(false); }))
    BOOST_TEST(g == std::vector<double>(g.size(), 0.0));
  // A pass that fails leaves what it found.
  const auto after_failure = held([](auto& model) {
    model.module.longer = false;
    Tensor x = zeros({7, 6}, f64), loss = square(nn::DataParallel(model.module, three)(x)).sum();
    auto hook = model.module.out.bias.register_hook(
        [](const Tensor&) -> Tensor { throw std::runtime_error("hook"); });
    BOOST_CHECK_THROW(loss.backward(), std::runtime_error);
    hook.remove();
  });
  BOOST_TEST(largest_difference(after_failure, expected) < 1e-10);
}

BOOST_AUTO_TEST_CASE(no_sync_is_of_the_call_as_in_pytorch) {
  nn::DataParallel model(steps(), three, {.bucket_cap_mb = kEach});
  model.to(f64);
  const auto loss = [&](bool syncs) {
    std::optional<nn::NoSync> guard;
    if (!syncs) guard.emplace(model.no_sync());
    const auto nested = syncs ? nullptr : std::make_unique<nn::NoSync>(model.no_sync());
    return loss_of(model, model.module, 0);
  };
  const Tensor within = loss(false);
  BOOST_TEST(sums_of([&] { within.backward(); }) == 0u);
  const Tensor outside = loss(true);
  auto guard = model.no_sync();
  BOOST_TEST(sums_of([&] { outside.backward(); }) > 0u);
  auto copy = model;  // has no guard
  const Tensor of_copy = loss_of(copy, copy.module, 0);
  BOOST_TEST(sums_of([&] { of_copy.backward(); }) > 0u);
  // A hook sees the sum of each pass.
  std::vector<double> seen;
  auto hook = model.module.out.bias.register_hook(
      [&](const Tensor& g) { seen.push_back(g.sum().template item<double>()); });
  model.zero_grad();
  for (int i = 0; i < 2; ++i) loss_of(model, model.module, 0).backward();
  BOOST_TEST_REQUIRE(seen.size() == 2u);
  BOOST_TEST(seen[0] == seen[1]);
  const double all = model.module.out.bias.grad().sum().item<double>();
  BOOST_TEST(std::abs(all - 2 * seen[0]) < 1e-10);
  hook.remove();
}

BOOST_AUTO_TEST_CASE(a_bucket_has_a_size) {
  require_error<ValueError>([] { shared(0); }, "DataParallel: bucket_cap_mb", "0", "above 0");
  const uint32_t devices = device_count("cpu");
  square(shared(kEach)(ones({3, 6}))).sum().backward();
  BOOST_TEST(device_count("cpu") == std::max(devices, 3u));  // what sums is no device
}

BOOST_AUTO_TEST_SUITE_END()
