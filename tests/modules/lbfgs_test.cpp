// L-BFGS against PyTorch 2.15: losses, calls of the closure and parameters of each step on the
// function of Rosenbrock in three variables.
#include <tenon/tenon.h>

#include "modules/stepped.h"
#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(lbfgs_test)

using namespace tenon;
using namespace tenon::test;

namespace {

Tensor rosenbrock(const Tensor& x) {
  const Tensor first = x.narrow(0, 0, 2), second = x.narrow(0, 1, 2);
  return (square(1 - first) + 100 * square(second - square(first))).sum();
}

struct Step {
  double loss;
  int calls;
  std::vector<double> x;
};

void follow(const optim::LBFGSOptions& options, const std::vector<Step>& steps) {
  Tensor x = leaf(doubles({-1.2, 1, 0.5}, {3}));
  optim::LBFGS optimizer({x}, options);
  for (auto& expected : steps) {
    int calls = 0;
    const Tensor loss = optimizer.step([&] {
      ++calls;
      optimizer.zero_grad();
      Tensor y = rosenbrock(x);
      if (options.maximize) y = -y;
      y.backward();
      return y;
    });
    require_close({loss.item()}, {expected.loss}, 1e-6, 1e-12);
    BOOST_TEST(calls == expected.calls);
    require_close(x.to_vector<double>(), expected.x, 1e-7, 1e-10);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(steps_of_fixed_size) {
  follow({.lr = 0.1, .max_iter = 4, .history_size = 3},
         {{49.199999999999996, 4, {-1.0986720025774441, 0.9394688934746704, 0.5614306096255568}},
          {21.884761150031657, 4, {-1.0453235377114813, 0.9115428919495108, 0.612623925202922}},
          {12.23791028294555, 4, {-1.0071798026527918, 0.8949683750053874, 0.6559151691085047}},
          {7.570503923303425, 4, {-0.9803742409020718, 0.8845972668238657, 0.6875377727107161}}});
}

BOOST_AUTO_TEST_CASE(steps_by_the_line_search) {
  follow(
      {.max_iter = 5, .strong_wolfe = true},
      {{49.199999999999996, 6, {-0.8772845198432951, 0.7866907088075796, 0.6243305167079569}},
       {3.60177952372781, 7, {-0.8193712482021351, 0.6536174249470166, 0.41820221013704}},
       {3.4697296981075074, 6, {-0.5475262648379273, 0.3088318104026579, 0.07104774078573903}},
       {2.93992717447196, 6, {-0.24804365996768202, 0.02479833070677065, 0.007325294166758715}}});
  follow(
      {.max_iter = 5, .history_size = 2, .strong_wolfe = true, .maximize = true},
      {{-49.199999999999996, 6, {-0.8779977970573642, 0.7867521348864106, 0.6241711772025091}},
       {-3.600238378111041, 6, {-0.8506067545288606, 0.7157931180924945, 0.5018339349379048}},
       {-3.5225870681768443, 6, {-0.7391221863571781, 0.5659950160361099, 0.315415859766446}},
       {-3.254124271088133, 6, {-0.4753458007477045, 0.23609827740679257, 0.05443045758348101}}});
}

BOOST_AUTO_TEST_CASE(it_ends_at_the_minimum) {
  Tensor x = leaf(doubles({-1.2, 1, 0.5}, {3}));
  optim::LBFGS optimizer({x}, {.strong_wolfe = true});
  int calls = 0;
  auto closure = [&] {
    ++calls;
    optimizer.zero_grad();
    Tensor y = rosenbrock(x);
    y.backward();
    return y;
  };
  for (int i = 0; i < 3; ++i) optimizer.step(closure);
  require_close(x.to_vector<double>(), {1, 1, 1}, 1e-5, 0);
  calls = 0;
  for (int i = 0; i < 3; ++i) optimizer.step(closure);
  BOOST_TEST(calls <= 6);
}

// Parameters of several shapes, types and devices are one vector.
BOOST_AUTO_TEST_CASE(parameters_on_several_devices) {
  Tensor a = leaf(ones({2, 2})), b = leaf(full({3}, 2, {.device = "cpu:1"})),
         unused = leaf(ones({2}));
  optim::LBFGS optimizer({a, b, unused}, {.strong_wolfe = true});
  auto closure = [&] {
    optimizer.zero_grad();
    Tensor y = square(a - 3).sum() + square(b + 1).sum().to("cpu:0") * 4;
    y.backward();
    return y;
  };
  BOOST_TEST(optimizer.step(closure).item() == 16 + 4 * 27);
  for (double v : a.to_vector<double>()) BOOST_TEST(std::abs(v - 3) < 1e-3);
  for (double v : b.to_vector<double>()) BOOST_TEST(std::abs(v + 1) < 1e-3);
  require_equal(unused.detach(), ones({2}));
  BOOST_TEST(b.device().str() == "cpu:1");
}

BOOST_AUTO_TEST_CASE(states_continue_where_they_ended) {
  for (bool strong_wolfe : {false, true}) {
    Tensor x = leaf(doubles({-1.2, 1, 0.5}, {3})), y = leaf(zeros({3}, {.dtype = f64}));
    optim::LBFGS first({x},
                       {.lr = 0.1, .max_iter = 4, .history_size = 3, .strong_wolfe = strong_wolfe}),
        second({y});
    auto closure_of = [](optim::LBFGS& optimizer, const Tensor& p) {
      return [&optimizer, p] {
        optimizer.zero_grad();
        Tensor loss = rosenbrock(p);
        loss.backward();
        return loss;
      };
    };
    for (int i = 0; i < 3; ++i) {
      second.load_state_dict(first.state_dict());
      no_grad([&] { y.copy_(x); });
      first.step(closure_of(first, x));
      second.step(closure_of(second, y));
      require_equal(y.detach(), x.detach());
    }
    auto state = first.state_dict();
    state.tensors.erase("state.0.d");
    require_error<StateDictError>([&] { second.load_state_dict(state); },
                                  "Error in loading state_dict for LBFGS: it has no \"state.0.d\"");
  }
}

BOOST_AUTO_TEST_CASE(bad_input) {
  Tensor x = leaf(ones({2}));
  optim::LBFGS optimizer({x});
  require_error<ValueError>([&] { optimizer.step(); }, "LBFGS: a step needs a closure");
  require_error<ValueError>([&] { optim::LBFGS({x}, {.history_size = 0}); },
                            "LBFGS: history_size is 0; it has to be at least 1");
  require_error<ValueError>([&] { optim::LBFGS({x}, {.max_iter = 0}); }, "max_iter is 0");
}

BOOST_AUTO_TEST_SUITE_END()
