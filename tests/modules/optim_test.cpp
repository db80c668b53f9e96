// Optimizers step by step against PyTorch's, and what they refuse.
#include <tenon/core/tensor_impl.h>
#include <tenon/tenon.h>

#include "modules/optimizers.h"
#include "modules/stepped.h"

BOOST_AUTO_TEST_SUITE(optim_test)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(steps_are_pytorchs) {
  int ran = 0;
  for (auto& c : reference_cases()) {
    Tensor param = leaf(c.param);
    auto opt = make(c.op, c.args, {param});
    ++ran;
    for (int64_t i = 0; i < c.grads.size(0); ++i) {
      step_with(*opt, param, c.grads[i]);
      require_close(param.to_vector<double>(), c.steps[i].to_vector<double>(), 1e-6, 1e-7,
                    c.op + c.args.dump() + " step " + std::to_string(i));
    }
  }
  BOOST_TEST(ran == 96);
}

// A layer's weight as a view of another tensor: what is trained is that memory.
BOOST_AUTO_TEST_CASE(parameters_that_are_not_contiguous_train) {
  for (auto& op : optimizers())
    for (int way = 0; way < 3; ++way) {
      Tensor whole = sample({6, 8}).to(f32);
      Tensor view = way == 0   ? whole.t()
                    : way == 1 ? whole.slice(1, 0, 8, 2).t()
                               : whole.narrow(1, 1, 4).t();
      nn::Parameter weight(view), twin(view.clone());
      Tensor x = sample({5, view.size(0)}, 0.4).to(f32);
      auto opt = make(op, {{"lr", 0.002}, {"momentum", 0.9}, {"weight_decay", 0.01}}, {weight});
      auto same = make(op, {{"lr", 0.002}, {"momentum", 0.9}, {"weight_decay", 0.01}}, {twin});
      double loss = 0, before = 0;
      for (int i = 0; i < 5; ++i) {
        weight.set_grad({});
        Tensor y = square(x.matmul(weight)).sum();
        y.backward();
        twin.set_grad(weight.grad().clone());
        loss = y.item();
        if (i == 0) before = loss;
        const uint64_t version = weight.version();
        opt->step();
        same->step();
        BOOST_TEST(weight.version() > version);
        BOOST_TEST(weight.to_vector<float>() == twin.to_vector<float>(),
                   op << " step " << i << ", way " << way);
      }
      BOOST_TEST(loss < before);
      BOOST_TEST(view.to_vector<float>() == twin.to_vector<float>());
    }
}

BOOST_AUTO_TEST_CASE(in_float32_too) {
  for (auto& c : reference_cases()) {
    Tensor param = leaf(c.param.to(f32));
    auto opt = make(c.op, c.args, {param});
    for (int64_t i = 0; i < c.grads.size(0); ++i) step_with(*opt, param, c.grads[i].to(f32));
    require_close(param.to_vector<double>(), c.steps[c.steps.size(0) - 1].to_vector<double>(), 1e-4,
                  1e-5, c.op + c.args.dump());
  }
}

BOOST_AUTO_TEST_CASE(groups_have_options_of_their_own) {
  Tensor a = leaf(doubles({1}, {1})), b = leaf(doubles({1}, {1}));
  optim::SGD opt({{{a}, {.lr = 0.5}}, {{b}, {.lr = 0.25, .weight_decay = 2}}});
  BOOST_TEST(opt.num_groups() == 2u);
  a.set_grad(doubles({1}, {1}));
  b.set_grad(doubles({1}, {1}));
  opt.step();
  require_values(a.detach(), {1}, {0.5});
  require_values(b.detach(), {1}, {1 - 0.25 * 3});
  opt.set_lr(0.125, 1);
  BOOST_TEST(opt.lr(0) == 0.5);
  BOOST_TEST(opt.lr(1) == 0.125);
  opt.options(0).lr = 2;
  BOOST_TEST(opt.lr() == 2);
  require_error<ValueError>([&] { opt.set_lr(-1); },
                            "SGD: lr is -1; it has to be finite and at least 0");
}

BOOST_AUTO_TEST_CASE(parameters_without_gradient_stay) {
  Tensor a = leaf(doubles({1}, {1})), b = leaf(doubles({1}, {1}));
  optim::SGD opt({a, b}, {.lr = 1, .momentum = 0.5, .dampening = 0.5});
  step_with(opt, a, doubles({1}, {1}));
  require_values(a.detach(), {1}, {0});
  require_values(b.detach(), {1}, {1});
  // b's first gradient comes later, and fills its momentum undampened all the same.
  step_with(opt, b, doubles({1}, {1}));
  require_values(a.detach(), {1}, {-1});
  require_values(b.detach(), {1}, {0});
  opt.zero_grad();
  BOOST_TEST(!a.grad().defined());
  a.set_grad(doubles({3}, {1}));
  opt.zero_grad(false);
  require_values(a.grad(), {1}, {0});
}

BOOST_AUTO_TEST_CASE(mixed_types_and_devices) {
  std::vector<Tensor> params = {leaf(ones({2})), leaf(ones({2}, {.dtype = f64})),
                                leaf(ones({2}, {.device = "cpu:1"})), leaf(ones({0}))};
  optim::AdamW opt(params, {.lr = 0.1});
  for (int i = 0; i < 2; ++i) {
    for (auto& p : params) p.set_grad(ones_like(p));
    opt.step();
  }
  require_close(params[0].to_vector<double>(), params[1].to_vector<double>(), 1e-5, 1e-6);
  require_close(params[2].to_vector<double>(), params[1].to_vector<double>(), 1e-5, 1e-6);
  BOOST_TEST(params[2].device().str() == "cpu:1");
}

BOOST_AUTO_TEST_CASE(state_can_be_saved_and_taken_up_again) {
  auto cases = reference_cases();
  for (auto& c : cases) {
    Tensor first = leaf(c.param);
    auto before = make(c.op, c.args, {first});
    for (int64_t i = 0; i < 3; ++i) step_with(*before, first, c.grads[i]);
    auto state = before->state_dict();
    Tensor second = leaf(first.detach());
    auto after = make(c.op, {{"lr", 123.0}, {"momentum", 0.9}}, {second});
    after->load_state_dict(state);
    BOOST_TEST(after->lr() == before->lr());
    for (int64_t i = 3; i < 6; ++i) {
      step_with(*before, first, c.grads[i]);
      step_with(*after, second, c.grads[i]);
    }
    require_equal(second.detach(), first.detach());
  }
}

// A step that throws is as if it had not been asked for: no step is counted, and no state is begun.
BOOST_AUTO_TEST_CASE(a_failed_step_does_not_count) {
  for (auto& op : optimizers()) {
    const json args = {{"lr", 0.1}, {"momentum", 0.9}, {"dampening", 0.5}, {"amsgrad", true}};
    Tensor bad = ones({2, 1}).expand({2, 3}).detach().requires_grad_(), good = leaf(ones({2, 3}));
    auto opt = make(op, args, {bad});
    bad.set_grad(ones({2, 3}));
    for (int i = 0; i < 3; ++i)
      require_error<ValueError>([&] { opt->step(); }, "share one place in memory");
    auto state = opt->state_dict();
    BOOST_TEST(state.tensors.size() == 0u);
    for (auto& [key, value] : state.numbers) BOOST_TEST(!key.ends_with(".step"));
    // And the first step that succeeds is the first.
    bad.set_grad({});
    set_data(bad, good.detach().clone());
    auto fresh = make(op, args, {good});
    for (int i = 0; i < 2; ++i) {
      step_with(*opt, bad, sample({2, 3}).to(f32));
      step_with(*fresh, good, sample({2, 3}).to(f32));
    }
    require_equal(bad.detach(), good.detach());
  }
}

BOOST_AUTO_TEST_CASE(bad_input) {
  Tensor p = leaf(ones({2}));
  require_error<ValueError>([] { optim::SGD(std::vector<Tensor>{}); },
                            "SGD: got an empty list of parameters");
  require_error<ValueError>(
      [&] {
        optim::Adam({p, p});
      },
      "Adam: the parameter of shape (2,) is given twice; it");
  const Tensor q = leaf(ones({3}));
  require_error<ValueError>(
      [&] {
        optim::SGD({{{p}, {.lr = 1}}, {{q}, {.lr = 1}}, {{q}, {.lr = 1}}});
      },
      "SGD: the parameter of shape (3,) is given twice, in groups 1 and 2; it");
  require_error<ValueError>(
      [&] {
        optim::SGD({{{p}, {.lr = 1}}, {{}, {.lr = 1}}});
      },
      "SGD: got an empty list of parameters for group 1 (counted from 0); does");
  require_error<ValueError>([&] { optim::AdamW({p * 2}); },
                            "AdamW: the parameter of shape (2,) is the result of an operator");
  require_error<ValueError>(
      [&] {
        optim::SGD({p, Tensor()});
      },
      "a parameter is an undefined tensor");
  require_error<DTypeError>([] { optim::SGD({ones({2}, {.dtype = i64})}); },
                            "is of type i64; it has to be floating");
  require_error<ValueError>([&] { optim::SGD({p}, {.lr = -0.5}); },
                            "SGD: lr is -0.5; it has to be finite and at least 0");
  require_error<ValueError>([&] { optim::SGD({p}, {.nesterov = true}); },
                            "SGD: momentum is 0; it has to be above 0 for nesterov");
  require_error<ValueError>(
      [&] {
        optim::Adam({p}, {.betas = {0.9, 1}});
      },
      "Adam: betas[1] is 1; it has to be at least 0 and below 1");
  require_error<ValueError>([&] { optim::AdamW({p}, {.eps = -1}); }, "AdamW: eps is -1");
}

BOOST_AUTO_TEST_CASE(a_step_holds_no_gradient_until_the_next) {
  const Device device = default_device();
  Tensor weight = ones({100, 100}).requires_grad_();
  optim::SGD sgd({weight}, {.lr = 0.1, .momentum = 0.9});
  optim::Adam adam({weight});
  for (optim::Optimizer* optimizer :
       {static_cast<optim::Optimizer*>(&sgd), static_cast<optim::Optimizer*>(&adam)}) {
    for (int i = 0; i < 2; ++i) {
      weight.square().sum().backward();
      optimizer->step();
      synchronize();
      const auto held = memory_stats(device).allocated;
      optimizer->zero_grad();
      BOOST_TEST(memory_stats(device).allocated + 100 * 100 * 4 <= held);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
