// Schedulers beyond the reference cases (conformance/cases/optimizer_schedule.h): several groups,
// several schedulers, momentum, states and errors. The expected rates are PyTorch 2.15's.
#include <cmath>

#include <tenon/tenon.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(lr_scheduler_test)

using namespace tenon;
using namespace tenon::test;
using Rates = std::vector<std::vector<double>>;

namespace {

std::vector<optim::ParamGroup<optim::SGDOptions>> two_groups() {
  return {{{zeros({1})}, {.lr = 0.5}}, {{zeros({1})}, {.lr = 1}}};
}

template <class Scheduler>
void require_rates(Scheduler& scheduler, const Rates& expected,
                   const std::function<double()>& momentum = {}) {
  for (size_t i = 0; i < expected.size(); ++i) {
    auto found = scheduler.get_last_lr();
    if (momentum) found.push_back(momentum());
    require_close(found, expected[i], 1e-12, 1e-15, "epoch " + std::to_string(i));
    if (i + 1 < expected.size()) scheduler.step();
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(functions_of_the_epoch) {
  optim::SGD a(two_groups()), b(two_groups());
  optim::LambdaLR lambda(a, {[](int64_t e) { return 1.0 / static_cast<double>(1 + e); },
                             [](int64_t e) { return std::pow(0.5, static_cast<double>(e)); }});
  require_rates(lambda, {{0.5, 1}, {0.25, 0.5}, {0.5 / 3, 0.25}, {0.125, 0.125}});
  optim::MultiplicativeLR times(b, [](int64_t e) { return 1 - static_cast<double>(e) / 10; });
  require_rates(times, {{0.5, 1}, {0.45, 0.9}, {0.36, 0.72}, {0.252, 0.504}});
}

BOOST_AUTO_TEST_CASE(chained_schedulers_multiply) {
  optim::SGD optimizer(two_groups());
  auto warm = std::make_shared<optim::ConstantLR>(optimizer, 0.1, 2);
  auto decay = std::make_shared<optim::ExponentialLR>(optimizer, 0.9);
  optim::ChainedScheduler both({warm, decay});
  require_rates(both,
                {{0.05, 0.1}, {0.045, 0.09}, {0.405, 0.81}, {0.3645, 0.729}, {0.32805, 0.6561}});
}

BOOST_AUTO_TEST_CASE(a_constant_rate_for_no_epochs) {
  auto none = [](optim::SGD& o, double factor) {
    return std::make_shared<optim::ConstantLR>(o, factor, 0);
  };
  auto made = [] { return optim::SGD({zeros({1})}, {.lr = 1}); };
  optim::SGD a = made(), b = made(), c = made(), d = made();
  require_rates(*none(a, 0.5), {{0.5}, {0.5}, {0.5}});
  optim::SequentialLR first(b, {none(b, 0.5), std::make_shared<optim::ExponentialLR>(b, 0.5)}, {2});
  require_rates(first, {{0.5}, {0.5}, {1}, {0.5}, {0.25}});
  optim::SequentialLR last(c, {std::make_shared<optim::ExponentialLR>(c, 0.5), none(c, 0.5)}, {2});
  require_rates(last, {{1}, {0.5}, {1}, {1}, {1}});
  optim::SequentialLR between(d,
                              {std::make_shared<optim::ConstantLR>(d, 0.5, 2), none(d, 0.25),
                               std::make_shared<optim::ConstantLR>(d, 0.5, 2)},
                              {2, 4});
  require_rates(between, {{0.5}, {0.5}, {1}, {1}, {0.5}, {0.5}, {1}, {1}});
}

BOOST_AUTO_TEST_CASE(one_scheduler_after_the_other) {
  optim::SGD optimizer(two_groups());
  optim::SequentialLR all(optimizer,
                          {std::make_shared<optim::ConstantLR>(optimizer, 0.1, 10),
                           std::make_shared<optim::StepLR>(optimizer, 2, 0.5),
                           std::make_shared<optim::LambdaLR>(
                               optimizer, [](int64_t e) { return static_cast<double>(e); })},
                          {2, 5});
  require_rates(
      all, {{0.05, 0.1}, {0.05, 0.1}, {0.5, 1}, {0.5, 1}, {0.25, 0.5}, {0, 0}, {0.5, 1}, {1, 2}});
}

BOOST_AUTO_TEST_CASE(some_go_on_from_the_rates_that_they_find) {
  optim::SGD a(two_groups()), b(two_groups());
  optim::SequentialLR average(a,
                              {std::make_shared<optim::ExponentialLR>(a, 0.5),
                               std::make_shared<optim::swa_utils::SWALR>(a, 0.05, 2, "linear")},
                              {3});
  require_rates(average, {{0.5, 1},
                          {0.25, 0.5},
                          {0.125, 0.25},
                          {0.125, 0.25},
                          {0.0875, 0.15},
                          {0.05, 0.05},
                          {0.05, 0.05}});
  auto times = std::make_shared<optim::MultiplicativeLR>(
      b, [](int64_t e) { return 1 - static_cast<double>(e + 1) / 10; });
  optim::SequentialLR decay(b, {std::make_shared<optim::StepLR>(b, 1, 0.5), times}, {2});
  require_rates(decay, {{0.5, 1}, {0.25, 0.5}, {0.225, 0.45}, {0.18, 0.36}, {0.126, 0.252}});
}

BOOST_AUTO_TEST_CASE(momentum_cycles_against_the_rate) {
  optim::SGD sgd(
      {{{zeros({1})}, {.lr = 0.5, .momentum = 0.9}}, {{zeros({1})}, {.lr = 1, .momentum = 0.9}}});
  optim::OneCycleLR one(sgd, {1, 2}, {.total_steps = 6, .pct_start = 0.5});
  require_rates(one,
                {{0.04, 0.08, 0.95},
                 {0.52, 1.04, 0.9},
                 {1, 2, 0.85},
                 {0.750001, 1.500002, 0.875},
                 {0.250003, 0.500006, 0.925},
                 {4e-06, 8e-06, 0.95}},
                [&] { return sgd.options(1).momentum; });
  one.step();  // as in PyTorch, one more than there are
  require_error<ValueError>([&] { one.step(); },
                            "OneCycleLR: step 7 was asked for, but total_steps is 6");

  optim::Adam adam({zeros({1})});
  optim::OneCycleLR three(
      adam, 1,
      {.epochs = 2, .steps_per_epoch = 5, .anneal_strategy = "linear", .three_phase = true});
  require_rates(three,
                {{0.04, 0.95},
                 {0.52, 0.9},
                 {1, 0.85},
                 {0.52, 0.9},
                 {0.04, 0.95},
                 {0.0320008, 0.95},
                 {0.0240016, 0.95},
                 {0.0160024, 0.95}},
                [&] { return adam.options().betas[0]; });

  optim::SGD other({zeros({1})}, {.lr = 0.5, .momentum = 0.9});
  optim::CyclicLR cyclic(other, 0.1, 0.5, {.step_size_up = 2, .step_size_down = 1});
  require_rates(
      cyclic,
      {{0.1, 0.9}, {0.3, 0.85}, {0.5, 0.8}, {0.1, 0.9}, {0.3, 0.85}, {0.5, 0.8}, {0.1, 0.9}},
      [&] { return other.options().momentum; });
}

BOOST_AUTO_TEST_CASE(a_cycle_scaled_by_a_function) {
  optim::SGD sgd({zeros({1})}, {.lr = 0.5});
  optim::CyclicLR cyclic(sgd, 0.1, 0.5,
                         {.step_size_up = 2,
                          .scale_fn = [](double step) { return 1 / (1 + step); },
                          .scale_mode = "iterations",
                          .cycle_momentum = false});
  require_rates(cyclic, {{0.1}, {0.2}, {0.1 + 0.4 / 3}, {0.15}, {0.1}, {0.1 + 0.1 / 3}});
}

BOOST_AUTO_TEST_CASE(states_continue_where_they_ended) {
  auto make = [](optim::Optimizer& o, double gamma) {
    return std::make_unique<optim::SequentialLR>(
        o,
        std::vector<std::shared_ptr<optim::LRScheduler>>{
            std::make_shared<optim::LinearLR>(o, 0.1, 1, 4),
            std::make_shared<optim::CosineAnnealingWarmRestarts>(o, 3, 2),
            std::make_shared<optim::StepLR>(o, 2, gamma)},
        std::vector<int64_t>{4, 12});
  };
  for (int before : {0, 2, 6, 13}) {
    optim::SGD first(two_groups()), second(two_groups());
    auto a = make(first, 0.5), b = make(second, 0.25);
    for (int i = 0; i < before; ++i) a->step();
    b->load_state_dict(a->state_dict());
    second.load_state_dict(first.state_dict());
    for (int i = 0; i < 8; ++i) {
      BOOST_TEST(a->get_last_lr() == b->get_last_lr(), boost::test_tools::per_element());
      a->step(), b->step();
    }
  }
  optim::SGD first({zeros({1})}, {.lr = 1}), second({zeros({1})}, {.lr = 1});
  optim::ReduceLROnPlateau a(first, {.factor = 0.5, .patience = 1}), b(second);
  for (double metric : {3.0, 2.0, 2.0}) a.step(metric);
  b.load_state_dict(a.state_dict());
  b.step(2);
  BOOST_TEST(second.lr() == 0.5);
  b.load_state_dict(optim::ReduceLROnPlateau(first).state_dict());  // which has seen no metric
  for (int i = 0; i < 11; ++i) b.step(1e9);
  BOOST_TEST(second.lr() == 0.5);
}

BOOST_AUTO_TEST_CASE(foreign_states_are_refused) {
  optim::SGD sgd({zeros({1})}, {.lr = 1});
  optim::StepLR step(sgd, 3);
  optim::ExponentialLR decay(sgd, 0.5);
  require_error<StateDictError>([&] { step.load_state_dict(decay.state_dict()); },
                                "Error in loading state_dict for StepLR: it has no \"step_size\", "
                                "so it does not come from a scheduler of this kind");
  require_error<StateDictError>([&] { decay.load_state_dict(step.state_dict()); },
                                "unexpected \"step_size\"");
  decay.step();
  BOOST_TEST(sgd.lr() == 0.5);
}

BOOST_AUTO_TEST_CASE(bad_input) {
  optim::SGD sgd({zeros({1})}, {.lr = 1}), other({zeros({1})});
  optim::Adagrad adagrad({zeros({1})});
  require_error<ValueError>([&] { optim::StepLR(sgd, 0); },
                            "StepLR: step_size is 0; it has to be at least 1");
  require_error<ValueError>([&] { optim::LinearLR(sgd, 0); },
                            "LinearLR: start_factor is 0; it has to be above 0 and at most 1");
  require_error<ValueError>([&] { optim::ConstantLR(sgd, 2); }, "ConstantLR: factor is 2");
  require_error<ValueError>([&] { optim::CosineAnnealingLR(sgd, 0); }, "T_max is 0");
  require_error<ValueError>([&] { optim::OneCycleLR(sgd, 1, {.epochs = 3}); },
                            "OneCycleLR: total_steps is 0; it has to be at least 1, or epochs and "
                            "steps_per_epoch both");
  require_error<ValueError>(
      [&] { optim::OneCycleLR(sgd, 1, {.total_steps = 3, .anneal_strategy = "up"}); },
      "anneal_strategy is \"up\"; it has to be \"cos\" or \"linear\"");
  require_error<ValueError>([&] { optim::CyclicLR(adagrad, 0.1, 1); },
                            "CyclicLR: the optimizer has neither a momentum nor betas");
  require_error<ValueError>([&] { optim::CyclicLR(sgd, 0.1, 1, {.mode = "square"}); },
                            "mode is \"square\"");
  require_error<ValueError>([&] { optim::LambdaLR(sgd, std::vector<optim::LRLambda>{}); },
                            "LambdaLR: 0 functions for 1 groups");
  auto one = std::make_shared<optim::StepLR>(sgd, 1);
  require_error<ValueError>(
      [&] {
        optim::SequentialLR(sgd, {one, one}, {});
      },
      "SequentialLR: 2 schedulers need 1 milestones, found 0");
  require_error<ValueError>([&] { optim::SequentialLR(other, {one}, {}); },
                            "the schedulers have another optimizer");
  require_error<ValueError>([&] { optim::ChainedScheduler({}); }, "got no scheduler");
  require_error<ValueError>([&] { optim::ReduceLROnPlateau(sgd, {.factor = 1}); },
                            "ReduceLROnPlateau: factor is 1; it has to be at least 0 and below 1");
}

BOOST_AUTO_TEST_SUITE_END()
