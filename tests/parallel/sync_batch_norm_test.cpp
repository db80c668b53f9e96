// Batch normalization over all devices is that of the whole batch.
#include <functional>

#include <tenon/tenon.h>

#include "ops/check.h"
#include "parallel/trained.h"

BOOST_AUTO_TEST_SUITE(sync_batch_norm_test)

using namespace tenon;
using namespace tenon::test;

namespace {

struct Net : nn::Module<Net> {
  nn::Conv2d conv{3, 4, 3};
  nn::BatchNorm2d first{4};
  nn::BatchNorm2d second{4, {.momentum = std::nullopt, .affine = false}};
  nn::Linear out{4, 3};
  Tensor forward(const Tensor& x) {
    Tensor h = relu(first(conv(x)));
    h = second(h * h) + second(h);  // the same layer twice
    return out(h.mean({2, 3}));
  }
};

Net net() {
  manual_seed(3);
  Net made;
  nn::SyncBatchNorm::convert_sync_batchnorm(made);
  return made;
}

// Parameters, gradients and buffers after some steps, and the input's gradient.
template <class Model>
std::vector<std::vector<double>> learned(Model model, int64_t batch) {
  model.to(f64);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  manual_seed(5);
  Tensor x;
  for (int i = 0; i < 4; ++i) {
    // Rows that differ much, so that the parts have statistics of their own.
    x = randn({batch, 3, 5, 5}).to(f64) *
        arange(1, 1.0 + static_cast<double>(batch), 1, {.dtype = f64}).reshape({batch, 1, 1, 1});
    x.requires_grad_(true);
    optimizer.zero_grad();
    cross_entropy(model(x), randint(0, 3, {batch})).backward();
    optimizer.step();
  }
  std::vector<std::vector<double>> all = {x.grad().to_vector<double>()};
  for (Tensor& p : model.parameters()) {
    all.push_back(p.template to_vector<double>());
    all.push_back(p.grad().template to_vector<double>());
  }
  for (Tensor& b : model.buffers()) all.push_back(b.template to_vector<double>());
  return all;
}

const std::vector<Device> three = {"cpu:0", "cpu:1", "cpu:2"};

}  // namespace

BOOST_AUTO_TEST_CASE(many_devices_learn_what_one_does) {
  for (const int64_t batch : {7, 2}) {  // parts of 3, 2 and 2 rows; two parts of one
    const auto expected = learned(net(), batch);
    BOOST_TEST(largest_difference(learned(nn::DataParallel(net(), three), batch), expected) <
               1e-10);
    const auto twice = learned(nn::DataParallel(nn::DataParallel(net(), {"cpu:0"}), three), batch);
    BOOST_TEST(largest_difference(twice, expected) < 1e-10);
  }
  Net plain = net();
  plain.first.sync = plain.second.sync = false;
  BOOST_TEST(largest_difference(learned(nn::DataParallel(plain, three), 7), learned(net(), 7)) >
             1e-3);
}

BOOST_AUTO_TEST_CASE(as_a_layer_of_its_own) {
  const auto model = [] {
    manual_seed(4);
    return nn::Sequential(nn::Linear(8, 6), nn::SyncBatchNorm(6), nn::Tanh(), nn::Linear(6, 3),
                          nn::SyncBatchNorm(3, {.track_running_stats = false}));
  };
  BOOST_TEST(largest_difference(trained(nn::DataParallel(model(), three), "cpu:0", 5),
                                trained(model(), "cpu:0", 5)) < 1e-4);
  BOOST_TEST(nn::str(nn::SyncBatchNorm(6)) ==
             "SyncBatchNorm(6, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)");
  nn::BatchNorm3d converted(2);
  nn::SyncBatchNorm::convert_sync_batchnorm(converted);
  BOOST_TEST(nn::str(converted) ==
             "BatchNorm3d(2, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, "
             "sync=True)");
}

// Statistics of half types are f32, and so are those that f16 could not hold.
BOOST_AUTO_TEST_CASE(of_half_types) {
  nn::DataParallel model(nn::SyncBatchNorm(1, {.track_running_stats = false}), three);
  const Tensor x = tensor({100, 200, 300, 400, 500, 600}, {6, 1}).to(f16);
  const Tensor y = model(x);
  BOOST_TEST(y.dtype() == f16);
  require_values(y.to(f32), {6, 1}, {-1.4638, -0.8783, -0.2928, 0.2928, 0.8783, 1.4638}, 1e-3);
}

BOOST_AUTO_TEST_CASE(running_statistics_serve_in_eval_mode) {
  nn::DataParallel model(net(), three);
  const Tensor x = randn({6, 3, 5, 5});
  model(x);
  const Tensor mean = model.module.first.running_mean.clone();
  model.eval();
  Net plain = model.module;
  BOOST_TEST(abs(model(x) - plain(x)).max().item() < 1e-5);
  BOOST_TEST(abs(model.module.first.running_mean - mean).max().item() == 0);
  BOOST_TEST(model.module.second.num_batches_tracked.item<int64_t>() == 2);
}

namespace {

// Each part does something else, by its first element.
struct Uneven : nn::Module<Uneven> {
  nn::SyncBatchNorm one{2}, other{2};
  Tensor forward(const Tensor& x) {
    const double what = x.reshape({-1}).select(0, 0).item();
    if (what == 1) return x;
    if (what == 2) return other(x);
    if (what == 3) throw std::runtime_error("part three");
    return one(x);
  }
};

Tensor rows(const std::vector<double>& values) {
  return tensor(values, {3, 1}).to(f32).expand({3, 2}).contiguous();
}

}  // namespace

BOOST_AUTO_TEST_CASE(parts_that_differ_are_refused) {
  nn::DataParallel model(Uneven{}, three);
  for (int again = 0; again < 2; ++again) {
    require_error<ValueError>(
        [&] {
          model(rows({0, 0, 1}));
        },
        "part 2 of the batch has ended where part 0 computes with the others", "in the same order");
    require_error<ValueError>([&] { model(rows({1, 0, 0})); }, "part 0 of the batch has ended");
    require_error<ValueError>(
        [&] {
          model(rows({0, 2, 0}));
        },
        "part 1 of the batch is in another", "(in module DataParallel.module.one)");
    BOOST_CHECK_EXCEPTION(model(rows({0, 3, 0})), std::runtime_error,
                          [](const auto& e) { return std::string(e.what()) == "part three"; });
    BOOST_CHECK_THROW(model(rows({3, 0, 0})), std::runtime_error);
  }
  model(rows({0, 0, 5}));  // which needs both
  require_error<ShapeError>(
      [&] {
        model(zeros({6, 2, 1})), nn::SyncBatchNorm(2)(zeros({2}));
      },
      "SyncBatchNorm: expected an input of shape (N, C) or (N, C, …)");
  require_error<ShapeError>(
      [&] {
        nn::DataParallel(nn::SyncBatchNorm(3), three)(zeros({6, 2}));
      },
      "num_features=3");
  BOOST_TEST(model.module.one.num_batches_tracked.item<int64_t>() >= 1);
}

namespace {

// In the middle of the module below.
std::function<Tensor(const Tensor&)> block;

struct WithBlock : nn::Module<WithBlock> {
  nn::Linear in{4, 4};
  nn::SyncBatchNorm norm{4};
  nn::Linear out{4, 2};
  Tensor forward(const Tensor& x) { return out(block(in(x))); }
};

}  // namespace

// One part waits for the others inside the function, which they call as well.
BOOST_AUTO_TEST_CASE(a_compiled_function_around_the_layer_runs_plainly_in_all_parts) {
  nn::DataParallel model(WithBlock{}, three);
  const auto plain = [&](const Tensor& x) { return relu(model.module.norm(x)); };
  auto compiled = compile(plain);
  const Tensor x = randn({6, 4});
  block = plain;
  const Tensor expected = model(x);
  block = [&](const Tensor& h) -> Tensor { return compiled(h); };
  for (int i = 0; i < 4; ++i) BOOST_TEST(abs(model(x) - expected).max().item() == 0);
  block = nullptr;
}

// What the caller's thread has set holds in all parts.
BOOST_AUTO_TEST_CASE(settings_of_the_caller_hold_in_all_parts) {
  nn::DataParallel model(net(), three);
  const Tensor x = randn({6, 3, 5, 5});
  {
    const NoGrad guard;
    BOOST_TEST(!model(x).requires_grad());
  }
  {
    // Each part computes the product of conv in bf16.
    const Autocast guard(bf16);
    Net one = net();
    BOOST_TEST(abs(model(x) - one(x)).max().item() < 0.1);
    BOOST_TEST(nn::DataParallel(nn::Sequential(nn::SyncBatchNorm(3), nn::Conv2d(3, 2, 3)), three)(x)
                   .dtype() == bf16);
  }
  {
    // Each part runs on the stream of its device.
    const Stream second("cpu:0"), third("cpu:1");
    const StreamGuard on_second(second), on_third(third);
    model(x).wait();
    profiler::Profiler profiler;
    model(x).wait();
    synchronize();
    profiler.stop();
    size_t first = 0, further = 0;
    for (auto& e : profiler.events())
      if (e.kind == profiler::Kind::op && e.lane.starts_with("cpu:1"))
        ++(e.lane == "cpu:1" ? first : further);
    BOOST_TEST(first == 0u);
    BOOST_TEST(further > 0u);
  }
  Tensor once = x.clone(), again = x.clone();
  once.requires_grad_(true), again.requires_grad_(true);
  nn::DataParallel same(net(), three);
  model = nn::DataParallel(net(), three);
  model(once).sum().backward();
  checkpoint([&](const Tensor& t) { return same(t); }, again).sum().backward();
  BOOST_TEST(abs(once.grad() - again.grad()).max().item() < 1e-5);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_in_a_part_is_refused_and_one_around_all_is_not) {
  struct Inside : nn::Module<Inside> {
    nn::SyncBatchNorm norm{4};
    Tensor forward(const Tensor& x) {
      return checkpoint([this](const Tensor& y) { return norm(y); }, x);
    }
  };
  const Tensor x = randn({6, 4}).requires_grad_();
  nn::DataParallel inside(Inside(), three);
  require_error<AutogradError>([&] { inside(x); },
                               "the parts of DataParallel compute their "
                               "statistics together",
                               "call it outside of checkpoint()");
  nn::DataParallel all(nn::SyncBatchNorm(4), three);
  checkpoint([&](const Tensor& y) { return all(y * y); }, x).sum().backward();
  const auto found = x.grad().to_vector<float>();
  Tensor(x).set_grad(Tensor());
  all(x * x).sum().backward();
  BOOST_TEST((found == x.grad().to_vector<float>()));
  Inside alone;
  alone(x).sum().backward();
}

BOOST_AUTO_TEST_SUITE_END()
