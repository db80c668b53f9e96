// The states of optimizers and schedulers in a checkpoint: each goes on as if nothing had happened.
#include <functional>
#include <memory>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "serialization/training_run.h"

BOOST_AUTO_TEST_SUITE(optimizer_state_test)

using namespace tenon;
using namespace tenon::test::training_run;
using test::require_error;
using Groups = std::vector<optim::ParamGroup<optim::AdamOptions>>;

namespace {

using Make = std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>;
template <class O, class Options>
Make make(const Options& options) {
  return
      [=](std::vector<Tensor> params) { return std::make_unique<O>(std::move(params), options); };
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_optimizer_goes_on_with_the_same_steps) {
  using namespace optim;
  const Make all[] = {
      make<SGD>(SGDOptions{.lr = 0.1}),
      make<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}),
      make<Adam>(AdamOptions{.lr = 0.1, .weight_decay = 0.1, .amsgrad = true}),
      make<AdamW>(AdamWOptions{.lr = 0.1}),
      make<RMSprop>(RMSpropOptions{.lr = 0.1, .momentum = 0.5, .centered = true}),
      make<Adagrad>(AdagradOptions{.lr = 0.1, .lr_decay = 0.1}),
      make<Adadelta>(AdadeltaOptions{}),
      make<Adamax>(AdamaxOptions{.lr = 0.1}),
      make<NAdam>(NAdamOptions{.lr = 0.1}),
      make<RAdam>(RAdamOptions{.lr = 0.1}),
      make<ASGD>(ASGDOptions{.lr = 0.1, .t0 = 2}),
      make<Rprop>(RpropOptions{.lr = 0.1}),
      make<Lion>(LionOptions{.lr = 0.1}),
      make<LBFGS>(LBFGSOptions{.lr = 0.1, .max_iter = 3}),
  };
  for (const Make& optimizer_of : all)
    for (DType dtype : {f32, bf16}) {
      TempFolder folder;
      Net first, second;
      first.to(dtype), second.to(dtype);
      const auto a = optimizer_of(first.parameters()), b = optimizer_of(second.parameters());
      for (int i = 0; i < 4; ++i) step(*a, first, i);
      save(folder / "x.h5", {.model = first, .optimizer = *a});
      step(*b, second, 9);
      load(folder / "x.h5", {.model = second, .optimizer = *b});
      for (int i = 4; i < 8; ++i) step(*a, first, i), step(*b, second, i);
      BOOST_TEST((values_of(first.parameters()) == values_of(second.parameters())),
                 a->name() << " in " << dtype);
    }
}

BOOST_AUTO_TEST_CASE(every_scheduler_goes_on_with_the_same_rates) {
  using namespace optim;
  using Schedule = std::function<std::unique_ptr<LRScheduler>(Optimizer&, bool other)>;
  using Parts = std::vector<std::shared_ptr<LRScheduler>>;
  // With other numbers, which the checkpoint replaces.
  const Schedule all[] = {
      [](Optimizer& o, bool b) { return std::make_unique<StepLR>(o, b ? 5 : 2, b ? 0.9 : 0.5); },
      [](Optimizer& o, bool b) {
        return std::make_unique<MultiStepLR>(o, std::vector<int64_t>{b ? 1 : 3, 6}, 0.5);
      },
      [](Optimizer& o, bool b) { return std::make_unique<ConstantLR>(o, b ? 0.9 : 0.5, 4); },
      [](Optimizer& o, bool b) { return std::make_unique<LinearLR>(o, b ? 0.9 : 0.5, 1, 7); },
      [](Optimizer& o, bool b) { return std::make_unique<ExponentialLR>(o, b ? 0.9 : 0.5); },
      [](Optimizer& o, bool b) { return std::make_unique<PolynomialLR>(o, b ? 30 : 9); },
      [](Optimizer& o, bool b) { return std::make_unique<CosineAnnealingLR>(o, b ? 30 : 6); },
      [](Optimizer& o, bool) { return std::make_unique<CosineAnnealingWarmRestarts>(o, 3, 2); },
      [](Optimizer& o, bool b) {
        return std::make_unique<OneCycleLR>(
            o, 1.0, OneCycleOptions{.total_steps = 20, .base_momentum = b ? 0.5 : 0.8});
      },
      [](Optimizer& o, bool b) {
        return std::make_unique<CyclicLR>(
            o, 0.1, 1.0, CyclicOptions{.step_size_up = 3, .base_momentum = b ? 0.5 : 0.8});
      },
      [](Optimizer& o, bool) {
        return std::make_unique<LambdaLR>(o, [](int64_t e) { return 1.0 / double(1 + e); });
      },
      [](Optimizer& o, bool) {
        return std::make_unique<MultiplicativeLR>(o, [](int64_t e) { return 1 - 0.1 / double(e); });
      },
      [](Optimizer& o, bool) { return std::make_unique<swa_utils::SWALR>(o, 0.01, 6); },
      [](Optimizer& o, bool b) {
        return std::make_unique<SequentialLR>(
            o,
            Parts{std::make_shared<LinearLR>(o, b ? 0.9 : 0.2, 1, 3),
                  std::make_shared<SequentialLR>(o,
                                                 Parts{std::make_shared<ExponentialLR>(o, 0.5),
                                                       std::make_shared<StepLR>(o, 2, 0.1)},
                                                 std::vector<int64_t>{4})},
            std::vector<int64_t>{3});
      },
      [](Optimizer& o, bool b) {
        return std::make_unique<ChainedScheduler>(
            Parts{std::make_shared<ExponentialLR>(o, b ? 0.9 : 0.5),
                  std::make_shared<ConstantLR>(o, 0.5, 5)});
      },
  };
  for (const Schedule& schedule_of : all)
    for (int before : {0, 2, 5}) {
      TempFolder folder;
      Net net;
      Adam first(net.parameters(), {.lr = 0.4}), second(net.parameters(), {.lr = 0.7});
      const auto a = schedule_of(first, false), b = schedule_of(second, true);
      for (int i = 0; i < before; ++i) a->step();
      b->step();
      save(folder / "x.h5", {.model = net, .optimizer = first, .scheduler = *a});
      load(folder / "x.h5", {.model = net, .optimizer = second, .scheduler = *b});
      for (int i = 0; i < 8; ++i) {
        BOOST_TEST(a->get_last_lr() == b->get_last_lr(), boost::test_tools::per_element());
        BOOST_TEST(first.options().betas[0] == second.options().betas[0]);
        a->step(), b->step();
      }
    }
  TempFolder folder;
  Net net;
  SGD first(net.parameters(), {.lr = 1}), second(net.parameters(), {.lr = 1});
  ReduceLROnPlateau a(first, {.mode = "max", .factor = 0.5, .patience = 1}),
      b(second, {.mode = "max"}), least(second);
  for (int fresh : {1, 0}) {  // also before it has seen a metric: its best is infinite
    if (!fresh)
      for (double metric : {3.0, 2.0}) a.step(metric);
    save(folder / "x.h5", {.model = net, .optimizer = first, .scheduler = a});
    load(folder / "x.h5", {.model = net, .optimizer = second, .scheduler = b});
  }
  b.step(2);
  BOOST_TEST(second.lr() == 0.5);
  require_error<StateDictError>(
      [&] { load(folder / "x.h5", {.model = net, .optimizer = second, .scheduler = least}); },
      "scheduler: ", "\"mode\" is \"max\" there and \"min\" here");
}

BOOST_AUTO_TEST_CASE(parameters_are_known_by_name) {
  Net first, second;
  optim::Adam a(Groups{{{first.fc1.weight, first.fc1.bias}, {.lr = 0.1}},
                       {{first.fc2.weight, first.fc2.bias}, {.lr = 0.2, .betas = {0.5, 0.9}}}}),
      b(Groups{{{second.fc2.bias, second.fc2.weight}, {.lr = 1}},
               {{second.fc1.bias, second.fc1.weight}, {.lr = 1}}});
  optim::ExponentialLR rate_a(a, 0.5), rate_b(b, 0.9);
  for (int i = 0; i < 3; ++i) step(a, first, i), rate_a.step();
  nn::DataParallel wrapped(second, {"cpu:0"});  // its names begin with "module."
  TempFolder folder;
  save(folder / "x.h5", {.model = first, .optimizer = a, .scheduler = rate_a});
  load(folder / "x.h5", {.model = wrapped, .optimizer = b, .scheduler = rate_b});
  BOOST_TEST(b.lr(0) == 0.2 * 0.125);
  BOOST_TEST(b.lr(1) == 0.1 * 0.125);
  BOOST_TEST(b.options(0).betas[0] == 0.5);
  BOOST_TEST(b.initial_lr(0) == 0.2);
  for (int i = 3; i < 6; ++i) {
    step(a, first, i), rate_a.step();
    step(b, second, i), rate_b.step();
  }
  BOOST_TEST((values_of(first.parameters()) == values_of(second.parameters())));
  // And back, to a model that is not wrapped.
  save(folder / "y.h5", {.model = wrapped, .optimizer = b, .scheduler = rate_b});
  step(a, first, 9);
  load(folder / "y.h5", {.model = first, .optimizer = a, .scheduler = rate_a});
  BOOST_TEST(a.lr(0) == b.lr(1));
  step(a, first, 6), step(b, second, 6);
  BOOST_TEST((values_of(first.parameters()) == values_of(second.parameters())));
}

BOOST_AUTO_TEST_SUITE_END()
