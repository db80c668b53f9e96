// Hooks of modules.
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(hooks_test)

using namespace tenon;
using test::require_error;

namespace {

using Floats = std::vector<float>;
using Hooked = std::span<Tensor>;
using Seen = std::span<const Tensor>;
Floats values(const Tensor& t) { return t.to_vector<float>(); }

struct Scale : nn::Module<Scale> {
  nn::Parameter factor{full({1}, 2)};
  Tensor forward(const Tensor& x) { return x * factor; }
};
struct Net : nn::Module<Net> {
  Scale first, second;
  Tensor forward(const Tensor& x) { return second(first(x) + 1); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(hooks_see_and_replace_what_goes_in_and_out) {
  Net net;
  std::vector<std::string> order;
  auto before = net.first.register_forward_pre_hook([&](nn::ModuleRef module, Hooked inputs) {
    order.push_back("before");
    BOOST_CHECK(module.as<Scale>() == &net.first);
    BOOST_TEST(inputs.size() == 1u);
    inputs[0] = inputs[0] * 10;
  });
  auto after = net.first.register_forward_hook([&](nn::ModuleRef, Seen inputs, Hooked outputs) {
    order.push_back("after");
    BOOST_TEST(values(inputs[0]) == (Floats{10, 20}));
    BOOST_TEST(values(outputs[0].detach()) == (Floats{20, 40}));
    outputs[0] = outputs[0] + 3;
  });
  auto last = net.register_forward_hook([&](nn::ModuleRef, Seen, Hooked outputs) {
    order.push_back("net");
    BOOST_TEST(values(outputs[0].detach()) == (Floats{48, 88}));
  });
  const Tensor x = tensor({1, 2});
  BOOST_TEST(values(net(x).detach()) == (Floats{48, 88}));
  BOOST_TEST(order == (std::vector<std::string>{"before", "after", "net"}));
  BOOST_TEST(values(x) == (Floats{1, 2}));
  before.remove();
  before.remove();
  { const auto moved = std::move(after); }
  last = nn::ModuleHook();
  BOOST_TEST(values(net(x).detach()) == (Floats{6, 10}));
  BOOST_TEST(order.size() == 3u);
  BOOST_TEST(nn::detail::hooks_registered.load() == 0u);
}

BOOST_AUTO_TEST_CASE(backward_hooks_see_the_gradients_of_a_call) {
  Net net;
  int calls = 0;
  auto hook = net.first.register_full_backward_hook(
      [&](nn::ModuleRef module, Hooked grad_inputs, Seen grad_outputs) {
        ++calls;
        BOOST_CHECK(module.as<Scale>() == &net.first);
        BOOST_TEST(values(grad_outputs[0]) == (Floats{2, 2}));
        BOOST_TEST(values(grad_inputs[0]) == (Floats{4, 4}));
        grad_inputs[0] = grad_inputs[0] * 100;
      });
  Tensor x = tensor({1, 2}).requires_grad_();
  net(x).sum().backward();
  BOOST_TEST(calls == 1);
  BOOST_TEST(values(x.grad()) == (Floats{400, 400}));
  BOOST_TEST(values(net.first.factor.grad()) == (Floats{6}));
  BOOST_TEST(values(net.second.factor.grad()) == (Floats{8}));
  hook.remove();
  net(x).sum().backward();
  BOOST_TEST(calls == 1);
  BOOST_TEST(values(x.grad()) == (Floats{404, 404}));
}

BOOST_AUTO_TEST_CASE(inputs_without_gradients) {
  Net net;
  int calls = 0;
  auto hook = net.first.register_full_backward_hook(
      [&](nn::ModuleRef, Hooked grad_inputs, Seen grad_outputs) {
        ++calls;
        BOOST_TEST(grad_inputs.size() == 1u);
        BOOST_TEST(!grad_inputs[0].defined());
        BOOST_TEST(values(grad_outputs[0]) == (Floats{2}));
      });
  net(tensor({1})).sum().backward();
  BOOST_TEST(calls == 1);
  no_grad([&] { net(tensor({1})); });
  BOOST_TEST(calls == 1);
}

// A hook that was removed after the call does not run in the backward pass.
BOOST_AUTO_TEST_CASE(backward_hooks_that_are_gone) {
  Net net;
  Tensor y;
  {
    auto hook = net.register_full_backward_hook(
        [](nn::ModuleRef, Hooked, Seen) { BOOST_ERROR("it is gone"); });
    y = net(tensor({1}));
  }
  y.backward();
  BOOST_TEST(values(net.first.factor.grad()) == (Floats{2}));
}

namespace {
struct Many : nn::Module<Many> {
  std::tuple<Tensor, std::vector<Tensor>> forward(const std::vector<Tensor>& list, int shift,
                                                  const Tensor& weight, const std::string& text) {
    BOOST_TEST(text == "text");
    return {list[0] + shift, {list[1] * weight}};
  }
};
}  // namespace

BOOST_AUTO_TEST_CASE(tensors_in_containers) {
  Many many;
  auto before = many.register_forward_pre_hook([](nn::ModuleRef, Hooked inputs) {
    BOOST_TEST(inputs.size() == 3u);
    inputs[2] = inputs[2] + 1;
  });
  auto after = many.register_forward_hook([](nn::ModuleRef, Seen inputs, Hooked outputs) {
    BOOST_TEST(inputs.size() == 3u);
    BOOST_TEST(outputs.size() == 2u);
    outputs[0] = outputs[0] * 2;
  });
  Tensor a = tensor({1}).requires_grad_(), b = tensor({2}).requires_grad_(), w = tensor({4});
  auto backward =
      many.register_full_backward_hook([](nn::ModuleRef, Hooked grad_inputs, Seen grad_outputs) {
        BOOST_TEST(grad_inputs.size() == 3u);
        BOOST_TEST(!grad_inputs[2].defined());  // it requires none
        BOOST_TEST(!grad_outputs[0].defined());
        BOOST_TEST(values(grad_inputs[1]) == (Floats{5}));
      });
  const std::string text = "text";
  auto [sum, products] = many(std::vector<Tensor>{a, b}, 3, w, text);
  BOOST_TEST(values(sum.detach()) == (Floats{8}));
  BOOST_TEST(values(products[0].detach()) == (Floats{10}));
  products[0].backward();
  BOOST_TEST(values(b.grad()) == (Floats{5}));
  BOOST_TEST(!a.grad().defined());
}

BOOST_AUTO_TEST_CASE(hooks_belong_to_one_module) {
  nn::Sequential net(nn::Linear(2, 2), nn::ReLU(), nn::Linear(2, 1));
  int calls = 0;
  std::vector<nn::ModuleHook> hooks;
  for (auto& [name, module] : net.named_modules())
    if (module.as<nn::Linear>())
      hooks.push_back(nn::register_forward_hook(module, [&](auto, Seen, Hooked) { ++calls; }));
  auto counted = [&](auto&& body) {
    calls = 0;
    body();
    return calls;
  };
  BOOST_TEST(counted([&] { net(ones({1, 2})); }) == 2);
  BOOST_TEST(counted([&] { nn::clone(net)(ones({1, 2})); }) == 0);
  BOOST_TEST(counted([&] { nn::Linear(2, 2)(ones({1, 2})); }) == 0);
}

BOOST_AUTO_TEST_CASE(parts_of_a_batch_run_hooks_by_themselves) {
  nn::DataParallel net(Net(), {"cpu:0", "cpu:1"});
  std::vector<std::string> where;
  int whole = 0;
  auto inner = net.module.first.register_forward_hook([&](auto, Seen inputs, Hooked) {
    BOOST_TEST(inputs[0].size(0) == 2);
    where.push_back(inputs[0].device().str());
  });
  auto outer = net.register_forward_hook([&](auto, Seen inputs, Hooked) {
    ++whole;
    BOOST_TEST(inputs[0].size(0) == 4);
  });
  std::vector<std::string> back;
  auto backward = net.module.first.register_full_backward_hook(
      [&](auto, Hooked, Seen grad_outputs) { back.push_back(grad_outputs[0].device().str()); });
  net(ones({4, 1}, {.device = Device()})).sum().backward();
  BOOST_TEST(where == (std::vector<std::string>{"cpu:0", "cpu:1"}));
  BOOST_TEST(whole == 1);
  BOOST_TEST(back.size() == 2u);
  BOOST_TEST(values(net.module.first.factor.grad()) == (Floats{8}));
}

BOOST_AUTO_TEST_CASE(what_hooks_throw_reaches_the_caller) {
  Net net;
  {
    auto hook = net.first.register_forward_pre_hook(
        [](auto, Hooked inputs) { inputs[0] = inputs[0] + ones({7}); });
    require_error<ShapeError>([&] { net(ones({2})); }, "add:", "(in module Net.first)");
  }
  {
    auto hook = net.second.register_forward_hook(
        [](auto, Seen, Hooked) { throw std::out_of_range("mine"); });
    require_error<std::out_of_range>([&] { net(ones({2})); }, "mine");
  }
  auto hook = net.second.register_full_backward_hook(
      [](auto, Hooked, Seen) { throw std::out_of_range("mine"); });
  require_error<std::out_of_range>([&] { net(ones({1})).backward(); }, "mine");
  require_error<ValueError>([&] { (void)net.register_forward_hook({}); },
                            "register_forward_hook: the hook is an empty function");
  require_error<ValueError>(
      [] { (void)nn::register_forward_pre_hook(nn::ModuleRef(), [](auto, Hooked) {}); },
      "leads to no module");
}

namespace {
// Gives the value in its middle to whoever has the module.
struct Open : nn::Module<Open> {
  Tensor middle;
  Tensor forward(const Tensor& x) {
    middle = x * 3;
    return middle * 2;
  }
};
}  // namespace

// A pass that begins while another one is inside the module has gradients of its own.
BOOST_AUTO_TEST_CASE(passes_over_one_graph_do_not_meet) {
  Open open;
  std::vector<float> seen;
  auto hook = open.register_full_backward_hook([&](nn::ModuleRef, Hooked, Seen grad_outputs) {
    BOOST_REQUIRE(grad_outputs.size() == 1u);
    seen.push_back(grad_outputs[0].item<float>());
  });
  Tensor x = tensor({1}).requires_grad_(), y = open(x), seed = tensor({5});
  bool first = true;
  open.middle.register_hook([&](const Tensor&) {
    if (std::exchange(first, false))
      grad(std::span(&y, 1), std::span(&x, 1), std::span(&seed, 1), {.retain_graph = true});
  });
  y.backward(tensor({7}), {.retain_graph = true});
  BOOST_TEST(seen == (Floats{5, 7}));
}

// Each output has a place, also where the gradient of the inputs came another way.
BOOST_AUTO_TEST_CASE(outputs_that_no_gradient_reaches) {
  Open open;
  int calls = 0;
  auto hook =
      open.register_full_backward_hook([&](nn::ModuleRef, Hooked grad_inputs, Seen grad_outputs) {
        ++calls;
        BOOST_REQUIRE(grad_outputs.size() == 1u);
        BOOST_TEST(!grad_outputs[0].defined());
        BOOST_TEST(values(grad_inputs[0]) == (Floats{3}));
      });
  Tensor x = tensor({1}).requires_grad_();
  const Tensor y = open(x);
  open.middle.sum().backward();
  BOOST_TEST(calls == 1);
}

// A pass that is recorded leaves nothing in the graph that leads back to it.
BOOST_AUTO_TEST_CASE(recorded_passes_end_with_their_graph) {
  Scale layer;
  int calls = 0;
  auto hook = layer.register_full_backward_hook([&](nn::ModuleRef, Hooked, Seen) { ++calls; });
  auto in_use = [] {
    synchronize();
    return memory_stats(default_device()).allocated;
  };
  const Tensor x = ones({1 << 16});
  const auto run = [&] {
    const Tensor y = layer(x);
    return grad((y * y).sum(), layer.factor, {.create_graph = true}).item<float>();
  };
  run();
  const uint64_t before = in_use();
  for (int i = 0; i < 3; ++i) run();
  BOOST_TEST(calls == 4);
  BOOST_TEST(in_use() == before);
}

namespace {
// Changes what it is given by reference.
struct Step : nn::Module<Step> {
  Tensor forward(const Tensor& x, Tensor& state, std::vector<Tensor>& past,
                 std::pair<Tensor, int>& counted) {
    state = state + x;
    past.push_back(state);
    ++counted.second;
    return state * 2;
  }
};
}  // namespace

BOOST_AUTO_TEST_CASE(arguments_that_forward_changes) {
  Step step;
  Tensor x = tensor({1}), state = tensor({10});
  std::vector<Tensor> past{tensor({3})};
  std::pair<Tensor, int> counted(tensor({4}), 0);
  const auto require = [&](float sum, size_t steps) {
    BOOST_TEST(values(x) == Floats{1});
    BOOST_TEST(values(state) == Floats{sum});
    BOOST_TEST(past.size() == steps + 1);
    BOOST_TEST(values(past[0]) == Floats{3});
    BOOST_TEST(values(past.back()) == Floats{sum});
    BOOST_TEST(values(counted.first) == Floats{4});
    BOOST_TEST(counted.second == int(steps));
  };
  step(x, state, past, counted);
  require(11, 1);
  std::vector<Tensor> seen;
  auto after = step.register_forward_hook([&](nn::ModuleRef, Seen, Hooked) {});
  step(x, state, past, counted);
  require(12, 2);
  // What a hook put in place of an argument is for this call: the caller sees what forward
  // assigned.
  auto before = step.register_forward_pre_hook([&](nn::ModuleRef, Hooked inputs) {
    inputs[0] = inputs[0] * 100;
    for (size_t i = 2; i < inputs.size(); ++i) inputs[i] = inputs[i] * -1;
  });
  BOOST_TEST(values(step(x, state, past, counted)) == Floats{224});
  require(112, 3);
}

namespace {
struct Remembers : nn::Module<Remembers> {
  std::vector<Tensor> past;
  Tensor forward(const std::vector<Tensor>& list) {
    past.push_back(list[0]);
    return list[0] + 1;
  }
};
}  // namespace

// A variable that forward changes by another way is left alone.
BOOST_AUTO_TEST_CASE(arguments_that_are_fields) {
  Remembers module;
  module.past = {tensor({1})};
  auto hook = module.register_forward_pre_hook(
      [](nn::ModuleRef, Hooked inputs) { inputs[0] = inputs[0] * 2; });
  BOOST_TEST(values(module(module.past)) == Floats{3});
  BOOST_REQUIRE(module.past.size() == 2u);
  BOOST_TEST(values(module.past[0]) == Floats{1});
  BOOST_TEST(values(module.past[1]) == Floats{2});
}

BOOST_AUTO_TEST_CASE(errors_in_the_backward_pass_name_the_module) {
  Net net;
  Tensor x = tensor({1, 2}).requires_grad_();
  const auto run = [&] { net(x).sum().backward(); };
  {
    auto hook = net.second.register_full_backward_hook(
        [](auto, Hooked grads, Seen) { grads[0] = grads[0] + ones({7}); });
    require_error<ShapeError>(run, "add:", "(in module Net.second)");
  }
  {
    auto hook = net.first.register_full_backward_hook(
        [](auto, Hooked grads, Seen) { grads[0] = grads[0].sum(); });
    require_error<ShapeError>(run, "the gradient of argument 0 has shape (),",
                              "(in module Net.first)");
  }
  Open open;
  Tensor y = open(x);
  open.middle.register_hook([](const Tensor& g) { return g.sum(); });
  require_error<ShapeError>([&] { y.sum().backward(); }, "register_hook: what the hook returned",
                            "(in module Open)");
}

BOOST_AUTO_TEST_SUITE_END()
