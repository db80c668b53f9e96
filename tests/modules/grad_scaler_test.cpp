// Scaling of losses and gradients. The expected scales are PyTorch 2.15's.
#include <cmath>
#include <limits>

#include <tenon/tenon.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(grad_scaler_test)

using namespace tenon;
using test::require_error;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                kNaN = std::numeric_limits<float>::quiet_NaN();

struct One {
  Tensor p = tensor({1.0, 2.0}, {2}).to(f32).requires_grad_();
  optim::SGD optimizer{{p}, {.lr = 1}};

  // One step whose gradients are `g` before they are scaled. Returns whether it was made.
  bool step(amp::GradScaler& scaler, std::vector<float> g) {
    optimizer.zero_grad();
    scaler.scale((p * tensor(g, {2})).sum()).backward();
    const bool made = scaler.step(optimizer);
    scaler.update();
    return made;
  }
  std::vector<float> values() const { return p.detach().to_vector<float>(); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_step_is_that_of_the_gradients) {
  One a;
  amp::GradScaler scaler;
  BOOST_TEST(scaler.get_scale() == 65536);
  BOOST_TEST(a.step(scaler, {0.5, -0.25}));
  BOOST_TEST(a.values() == (std::vector<float>{0.5, 2.25}));
  BOOST_TEST(a.p.grad().to_vector<float>() == (std::vector<float>{0.5, -0.25}));
  BOOST_TEST(scaler.get_scale() == 65536);
}

BOOST_AUTO_TEST_CASE(a_step_with_an_infinity_or_nan_is_left_out) {
  One a;
  amp::GradScaler scaler;
  double scale = 65536;
  for (float bad : {kInfinity, -kInfinity, kNaN}) {
    BOOST_TEST(!a.step(scaler, {1, bad}));
    BOOST_TEST(!a.step(scaler, {bad, 1}));
    BOOST_TEST(a.values() == (std::vector<float>{1, 2}));
    BOOST_TEST(scaler.get_scale() == (scale *= 0.25));
  }
  // So large that only the scaled one is infinite.
  BOOST_TEST(!a.step(scaler, {3e38f, 1}));
  BOOST_TEST(a.step(scaler, {1, 1}));
}

BOOST_AUTO_TEST_CASE(the_scale_grows) {
  One a;
  amp::GradScaler scaler(
      {.init_scale = 4, .growth_factor = 3, .backoff_factor = 0.25, .growth_interval = 2});
  std::vector<double> scales;
  for (float g : {1.f, 1.f, 1.f, kInfinity, 1.f, 1.f, 1.f, 1.f}) {
    a.step(scaler, {g, 0});
    scales.push_back(scaler.get_scale());
  }
  BOOST_TEST(scales == (std::vector<double>{4, 12, 12, 3, 3, 9, 9, 27}));
  // Not beyond what f32 holds.
  scaler.update(3e38);
  a.step(scaler, {0, 0});
  a.step(scaler, {0, 0});
  BOOST_TEST(scaler.get_scale() == static_cast<double>(3e38f));
}

BOOST_AUTO_TEST_CASE(gradients_are_clipped_between_unscale_and_step) {
  One a;
  amp::GradScaler scaler;
  scaler.scale((a.p * tensor({3.0, 4.0}, {2}).to(f32)).sum()).backward();
  scaler.unscale_(a.optimizer);
  BOOST_TEST(nn::utils::clip_grad_norm_({a.p}, 1).item() == 5);
  BOOST_TEST(scaler.step(a.optimizer));
  scaler.update();
  BOOST_TEST(std::abs(a.values()[0] - 0.4f) < 1e-5f);
  BOOST_TEST(std::abs(a.values()[1] - 1.2f) < 1e-5f);
}

// Two optimizers take one scaler: each leaves out its own steps, and one infinity shrinks the
// scale.
BOOST_AUTO_TEST_CASE(several_optimizers) {
  One a, b;
  amp::GradScaler scaler;
  const auto losses = scaler.scale(std::vector{(a.p * 2.0).sum(), (b.p * double{kInfinity}).sum()});
  losses[0].backward();
  losses[1].backward();
  BOOST_TEST(scaler.step(a.optimizer));
  BOOST_TEST(!scaler.step(b.optimizer));
  scaler.update();
  BOOST_TEST(a.values() == (std::vector<float>{-1, 0}));
  BOOST_TEST(b.values() == (std::vector<float>{1, 2}));
  BOOST_TEST(scaler.get_scale() == 32768);
}

BOOST_AUTO_TEST_CASE(parameters_on_several_devices) {
  Tensor p = ones({2}).requires_grad_(), q = ones({2}, {.device = "cpu:1"}).requires_grad_();
  optim::SGD optimizer({p, q}, {.lr = 1});
  amp::GradScaler scaler;
  const auto step = [&](double factor) {
    optimizer.zero_grad();
    scaler.scale(p.sum() + (q * factor).sum().to(p.device())).backward();
    const bool made = scaler.step(optimizer);
    scaler.update();
    return made;
  };
  BOOST_TEST(step(2));
  BOOST_TEST(q.detach().to_vector<float>() == (std::vector<float>{-1, -1}));
  BOOST_TEST(!step(double{kNaN}));
  BOOST_TEST(p.detach().to_vector<float>() == (std::vector<float>{0, 0}));
}

BOOST_AUTO_TEST_CASE(bf16_gradients_are_unscaled_and_f16_ones_refused) {
  for (DType dtype : {bf16, f16}) {
    Tensor p = ones({2}).to(dtype).requires_grad_();
    optim::SGD optimizer({p}, {.lr = 1});
    amp::GradScaler scaler({.init_scale = 8});
    scaler.scale((p * 0.5).sum()).backward();
    if (dtype == f16) {
      require_error<ValueError>([&] { scaler.step(optimizer); }, "unscale the f16 gradient",
                                "keep the parameters in f32");
      continue;
    }
    BOOST_TEST(scaler.step(optimizer));
    BOOST_TEST(p.detach().to(f32).to_vector<float>() == (std::vector<float>{0.5, 0.5}));
  }
}

BOOST_AUTO_TEST_CASE(calls_in_another_order_are_refused) {
  One a;
  amp::GradScaler scaler;
  require_error<ValueError>([&] { scaler.step(a.optimizer); }, "GradScaler.step",
                            "nothing was scaled yet");
  require_error<ValueError>([&] { scaler.unscale_(a.optimizer); }, "nothing was scaled yet");
  require_error<ValueError>([&] { scaler.update(); }, "nothing was scaled yet");
  scaler.scale(a.p.sum());
  require_error<ValueError>([&] { scaler.step(a.optimizer); }, "has a gradient");
  require_error<ValueError>([&] { scaler.update(); }, "no gradients were looked at");
  scaler.scale(a.p.sum()).backward();
  scaler.unscale_(a.optimizer);
  require_error<ValueError>([&] { scaler.unscale_(a.optimizer); }, "already called");
  BOOST_TEST(scaler.step(a.optimizer));
  require_error<ValueError>([&] { scaler.step(a.optimizer); }, "already called");
  require_error<ValueError>([&] { scaler.unscale_(a.optimizer); }, "after step()");
  scaler.update();
  require_error<DTypeError>([&] { scaler.scale(tensor({1}, {1}).to(i64)); }, "i64");
  require_error<ValueError>([&] { scaler.update(0); }, "new_scale");
  for (amp::GradScalerOptions o : {amp::GradScalerOptions{.init_scale = 0},
                                   {.growth_factor = 1},
                                   {.backoff_factor = 1},
                                   {.growth_interval = 0}})
    require_error<ValueError>([&] { amp::GradScaler refused(o); }, "GradScaler");
}

BOOST_AUTO_TEST_CASE(a_state_is_saved_and_loaded) {
  const auto train = [](amp::GradScaler& scaler, One& a, int from, int to) {
    for (int i = from; i < to; ++i) a.step(scaler, {i == 2 ? kInfinity : 0.125f, 0});
  };
  const amp::GradScalerOptions options{.init_scale = 16, .growth_interval = 3};
  One a, b;
  amp::GradScaler whole(options), first(options), second;
  train(whole, a, 0, 9);
  train(first, b, 0, 4);
  second.load_state_dict(first.state_dict());
  BOOST_TEST(second.get_scale() == first.get_scale());
  train(second, b, 4, 9);
  BOOST_TEST((second.state_dict().numbers == whole.state_dict().numbers));
  BOOST_TEST(a.values() == b.values());

  auto state = whole.state_dict();
  state.numbers[0].second = -1;
  require_error<StateDictError>([&] { second.load_state_dict(state); }, "GradScaler", "init_scale");
  state.numbers.erase(state.numbers.begin());
  require_error<StateDictError>([&] { second.load_state_dict(state); }, "\"scale\"");
  BOOST_TEST((second.state_dict().numbers == whole.state_dict().numbers));
}

BOOST_AUTO_TEST_CASE(factors_are_changed_between_steps) {
  One a;
  amp::GradScaler scaler({.init_scale = 4, .growth_interval = 1});
  a.step(scaler, {1, 1});
  BOOST_TEST(scaler.get_scale() == 8);
  scaler.set_growth_factor(3);
  scaler.set_backoff_factor(0.125);
  scaler.set_growth_interval(2);
  BOOST_TEST(scaler.get_growth_factor() == 3);
  BOOST_TEST(scaler.get_backoff_factor() == 0.125);
  BOOST_TEST(scaler.get_growth_interval() == 2);
  std::vector<double> scales;
  for (float g : {1.f, 1.f, kInfinity}) {
    a.step(scaler, {g, 0});
    scales.push_back(scaler.get_scale());
  }
  BOOST_TEST(scales == (std::vector<double>{8, 24, 3}));
  require_error<ValueError>([&] { scaler.set_growth_factor(1); }, "growth_factor");
  require_error<ValueError>([&] { scaler.set_backoff_factor(1); }, "backoff_factor");
  require_error<ValueError>([&] { scaler.set_growth_interval(0); }, "growth_interval");
  BOOST_TEST(scaler.get_growth_factor() == 3);
}

BOOST_AUTO_TEST_CASE(without_scaling_steps_are_those_of_the_optimizer) {
  One a;
  amp::GradScaler off({.enabled = false});
  BOOST_TEST((!off.is_enabled() && amp::GradScaler().is_enabled()));
  const Tensor loss = (a.p * 2.0).sum();
  BOOST_TEST(off.scale(loss).is_same(loss));
  loss.backward();
  off.unscale_(a.optimizer);
  BOOST_TEST(off.step(a.optimizer));
  off.update();
  BOOST_TEST(off.get_scale() == 1);
  BOOST_TEST(off.state_dict().numbers.empty());
  BOOST_TEST(a.values() == (std::vector<float>{-1, 0}));
}

BOOST_AUTO_TEST_SUITE_END()
