// What optimizers keep besides the steps of one parameter: master weights, numbers, closures.
#include <cmath>

#include <tenon/core/tensor_impl.h>
#include <tenon/tenon.h>

#include "modules/optimizers.h"
#include "modules/stepped.h"

BOOST_AUTO_TEST_SUITE(optim_state_test)

using namespace tenon;
using namespace tenon::test;

// A step of 1e-4 is less than half of the distance between 1 and its neighbours in both types.
BOOST_AUTO_TEST_CASE(small_steps_of_half_types_add_up) {
  for (DType dtype : {f16, bf16})
    for (auto& op : optimizers()) {
      if (op == "Rprop" || op == "Adadelta") continue;  // their steps do not depend on lr this way
      Tensor p = leaf(ones({3}).to(dtype)), twin = leaf(ones({3}));
      const json args = {{"lr", 1e-4}};
      auto opt = make(op, args, {p}), same = make(op, args, {twin});
      for (int i = 0; i < 200; ++i) {
        const Tensor g = full({3}, 1 + i % 3);
        step_with(*opt, p, g.to(dtype));
        step_with(*same, twin, g);
      }
      BOOST_TEST(p.dtype() == dtype);
      require_equal(p.detach(), twin.detach().to(dtype));
      BOOST_TEST(p.to_vector<float>()[0] < 1, op);
      for (auto& [key, value] : opt->state_dict().tensors) BOOST_TEST(value.dtype() == f32, key);
    }
}

BOOST_AUTO_TEST_CASE(master_weights_follow_changes_and_are_saved) {
  Tensor p = leaf(ones({2}).to(bf16));
  optim::SGD opt({p}, {.lr = 1e-3, .momentum = 0.5});
  step_with(opt, p, ones({2}).to(bf16));
  auto state = opt.state_dict();
  require_close(state.tensors.at("state.0.master_param").to_vector<double>(), {0.999, 0.999}, 0,
                1e-7);
  // One element is changed by somebody else: its master weight is the new value, the other stays.
  no_grad([&] { p.detach().narrow(0, 0, 1).fill_(3); });
  step_with(opt, p, zeros({2}).to(bf16));
  require_close(opt.state_dict().tensors.at("state.0.master_param").to_vector<double>(),
                {3 - 0.0005, 0.999 - 0.0005}, 0, 1e-6);

  Tensor q = leaf(p.detach());
  optim::SGD again({q}, {.lr = 1});
  again.load_state_dict(opt.state_dict());
  for (int i = 0; i < 20; ++i) {
    step_with(opt, p, ones({2}).to(bf16));
    step_with(again, q, ones({2}).to(bf16));
  }
  require_equal(q.detach(), p.detach());
  // A model that is converted keeps its optimizer, which then needs no master weights.
  set_data(p, p.detach().to(f32));
  step_with(opt, p, ones({2}));
  BOOST_TEST(!opt.state_dict().tensors.contains("state.0.master_param"));
}

BOOST_AUTO_TEST_CASE(numbers_of_a_state_are_needed) {
  Tensor p = leaf(ones({2})), q = leaf(ones({2}));
  optim::NAdam nadam({p}), other({q});
  step_with(nadam, p, ones({2}));
  auto state = nadam.state_dict();
  std::erase_if(state.numbers, [](auto& n) { return n.first == "state.0.mu_product"; });
  require_error<StateDictError>([&] { other.load_state_dict(state); },
                                "Error in loading state_dict for NAdam: it has no "
                                "\"state.0.mu_product\"");
  other.load_state_dict(nadam.state_dict());
}

BOOST_AUTO_TEST_CASE(a_closure_computes_the_loss) {
  Tensor p = leaf(full({1}, 3));
  optim::RMSprop opt({p});
  const NoGrad guard;
  const Tensor loss = opt.step([&] {
    opt.zero_grad();
    Tensor y = square(p).sum();
    y.backward();
    return y;
  });
  BOOST_TEST(loss.item() == 9);
  BOOST_TEST(p.item() < 3);
}

BOOST_AUTO_TEST_CASE(options_outside_their_range) {
  Tensor p = leaf(ones({2}));
  const std::vector<Tensor> params = {p};
  require_error<ValueError>([&] { optim::RMSprop(params, {.alpha = -1}); },
                            "RMSprop: alpha is -1; it has to be finite and at least 0");
  require_error<ValueError>([&] { optim::Adagrad(params, {.lr_decay = -1}); },
                            "Adagrad: lr_decay is -1");
  require_error<ValueError>([&] { optim::Adadelta(params, {.rho = 1.5}); },
                            "Adadelta: rho is 1.5; it has to be at least 0 and at most 1");
  require_error<ValueError>([&] { optim::Adamax(params, {.eps = -1}); }, "Adamax: eps is -1");
  require_error<ValueError>([&] { optim::NAdam(params, {.momentum_decay = -1}); },
                            "NAdam: momentum_decay is -1");
  require_error<ValueError>([&] { optim::RAdam(params, {.lr = NAN}); }, "RAdam: lr is nan");
  require_error<ValueError>([&] { optim::ASGD(params, {.t0 = INFINITY}); },
                            "ASGD: t0 is inf; it has to be finite");
  optim::LionOptions lion;
  lion.betas = {0.9, 1};
  require_error<ValueError>([&] { optim::Lion(params, lion); },
                            "Lion: betas[1] is 1; it has to be at least 0 and below 1");
  optim::RpropOptions rprop;
  rprop.etas = {1.5, 1.2};
  require_error<ValueError>([&] { optim::Rprop(params, rprop); },
                            "Rprop: etas[0] is 1.5; it has to be above 0 and below 1");
}

// Parameters whose first gradients came at different steps.
BOOST_AUTO_TEST_CASE(each_parameter_counts_its_own_steps) {
  for (auto& op : optimizers()) {
    const json args = {{"lr", 0.01}};
    Tensor a = leaf(doubles({1, 2}, {2})), b = leaf(doubles({3}, {1})), twin = leaf(b.detach());
    auto opt = make(op, args, {a, b}), same = make(op, args, {twin});
    step_with(*opt, a, doubles({1, -1}, {2}));
    for (int i = 0; i < 3; ++i) {
      const Tensor g = doubles({0.5 * i - 0.4}, {1});
      b.set_grad(g.clone());
      step_with(*opt, a, doubles({1, 1}, {2}));
      step_with(*same, twin, g);
    }
    require_equal(b.detach(), twin.detach());
  }
}

BOOST_AUTO_TEST_SUITE_END()
