// Mixed precision: which dtype an operator chooses, how guards nest, and how gradients go through
// the conversions. What each operator chooses is in tests/ops/autocast_test.cpp.
#include <thread>

#include <tenon/core/tensor_impl.h>
#include <tenon/tenon.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(autocast_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using test::require_error;

namespace {

using Floats = std::vector<float>;
Floats values(const Tensor& t) { return t.detach().to(f32).to_vector<float>(); }

struct Weights {
  Tensor weight, bias;
  Weights() {
    manual_seed(4);
    weight = randn({3, 5}).requires_grad_();
    bias = randn({3}).requires_grad_();
  }
};
Tensor input() {
  manual_seed(8);
  return randn({4, 5});
}

// How often a tensor was converted while `body` ran.
size_t conversions(const std::function<void()>& body) {
  count_dispatch();
  reset_dispatch_stats();
  body();
  synchronize();
  size_t copies = 0;
  for (auto& runs : dispatch_stats().runs)
    if (runs.op == "copy") copies += runs.runs;
  count_dispatch(false);
  return copies;
}

}  // namespace

BOOST_AUTO_TEST_CASE(operators_choose_their_dtype) {
  const Weights w;
  const Tensor x = input();
  for (DType lower : {bf16, f16}) {
    const Autocast guard(lower);
    const Tensor y = linear(x, w.weight, w.bias);
    BOOST_TEST(y.dtype() == lower);
    BOOST_TEST(relu(y).dtype() == lower);
    BOOST_TEST(softmax(y, 1).dtype() == f32);
    BOOST_TEST(exp(y).dtype() == f32);
    BOOST_TEST(y.sum().dtype() == f32);
    BOOST_TEST(mse_loss(y, y * 2).dtype() == f32);
    BOOST_TEST((y + x.narrow(1, 0, 3)).dtype() == f32);
    BOOST_TEST(cat({y, x}, 1).dtype() == f32);
    BOOST_TEST(matmul(x.to(f64), w.weight.to(f64).t()).dtype() == f64);
    BOOST_TEST(sum(y, {1}, false, lower).dtype() == lower);
  }
  BOOST_TEST(linear(x, w.weight, w.bias).dtype() == f32);
}

BOOST_AUTO_TEST_CASE(guards_nest_and_belong_to_a_thread) {
  const Tensor x = input(), w = Weights().weight.t();
  const auto type = [&] { return matmul(x, w).dtype(); };
  BOOST_TEST(!autocast_enabled());
  {
    const Autocast outer(bf16);
    BOOST_TEST(type() == bf16);
    {
      const Autocast inner(f16);
      BOOST_TEST(autocast_dtype() == f16);
      BOOST_TEST(type() == f16);
      const NoAutocast off;
      BOOST_TEST(type() == f32);
      BOOST_TEST(!autocast_enabled());
      // As always, a tensor without dimensions does not count; others are promoted.
      BOOST_TEST(matmul(x.to(bf16), w).dtype() == f32);
    }
    BOOST_TEST(type() == bf16);
    DType elsewhere = bf16;
    std::thread([&] { elsewhere = type(); }).join();
    BOOST_TEST(elsewhere == f32);
    // A guard for other devices leaves the one outside of it in force.
    const Autocast for_others(f16, {.device_type = "sim"});
    BOOST_TEST(type() == bf16);
    BOOST_TEST(autocast_dtype("sim") == f16);
  }
  BOOST_TEST(autocast(f16, type) == f16);
  BOOST_TEST(type() == f32);
  require_error<DTypeError>([] { Autocast guard(f32); }, "Autocast", "f16 or bf16", "found f32");
  require_error<DTypeError>([] { Autocast guard(i64); }, "found i64");
}

// The gradients are those of the conversions written out, and f32, wherever backward() is called.
BOOST_AUTO_TEST_CASE(gradients_have_the_dtype_of_the_parameters) {
  const Tensor x = input();
  const auto by_hand = [&] {
    Weights w;
    const Tensor y = linear(x.to(bf16), w.weight.to(bf16), w.bias.to(bf16));
    softmax(relu(y).to(f32), 1).select(1, 0).sum().backward();
    return w;
  }();
  for (bool inside : {false, true}) {
    Weights w;
    const auto loss = [&] {
      return softmax(relu(linear(x, w.weight, w.bias)), 1).select(1, 0).sum();
    };
    if (inside) {
      const Autocast guard(bf16);
      loss().backward();
    } else {
      autocast(bf16, loss).backward();
    }
    BOOST_TEST(w.weight.grad().dtype() == f32);
    BOOST_TEST(values(w.weight.grad()) == values(by_hand.weight.grad()));
    BOOST_TEST(values(w.bias.grad()) == values(by_hand.bias.grad()));
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_second_order) {
  Weights w;
  const Tensor x = input();
  const Autocast guard(bf16);
  const Tensor y = linear(x, w.weight, w.bias).to(f32), loss = (y * y * y).sum();
  const Tensor first =
      grad(std::span(&loss, 1), std::vector{w.weight}, {}, {.create_graph = true})[0];
  BOOST_TEST(first.dtype() == f32);
  (first * first).sum().backward();
  BOOST_TEST(w.weight.grad().dtype() == f32);
}

BOOST_AUTO_TEST_CASE(a_parameter_is_converted_once) {
  const Weights w;
  const Tensor x = input().to(bf16), lower = w.weight.detach().to(bf16);
  const auto twice = [&](const Tensor& weight) { return linear(x, weight) + linear(x, weight); };
  const auto under_guard = [&] { autocast(bf16, [&] { return twice(w.weight); }); };
  // What the device converts by itself, where it has no products of this type.
  const size_t always = conversions([&] { twice(lower); });
  BOOST_TEST(conversions(under_guard) == always + 1);
  BOOST_TEST(conversions([&] {
               const Autocast guard(bf16, {.cache_enabled = false});
               twice(w.weight);
             }) == always + 2);
  // As long as the outermost guard lives.
  BOOST_TEST(conversions([&] {
               const Autocast outer(bf16);
               under_guard();
               under_guard();
             }) == 2 * always + 1);
  BOOST_TEST(conversions([&] {
               under_guard();
               under_guard();
             }) == 2 * always + 2);
}

BOOST_AUTO_TEST_CASE(what_was_converted_is_never_stale) {
  Weights w;
  const Tensor x = input();
  const auto expected = [&] { return values(linear(x.to(bf16), w.weight.detach().to(bf16))); };
  const Autocast guard(bf16);
  BOOST_TEST(values(linear(x, w.weight)) == expected());
  optim::SGD optimizer({w.weight}, {.lr = 0.5});
  for (int i = 0; i < 3; ++i) {
    optimizer.zero_grad();
    linear(x, w.weight).sum().backward();
    optimizer.step();
    BOOST_TEST(values(linear(x, w.weight)) == expected());
  }
  no_grad([&] { w.weight.fill_(0.25); });
  BOOST_TEST(values(linear(x, w.weight)) == expected());
  set_data(w.weight, full({3, 5}, 3));
  BOOST_TEST(values(linear(x, w.weight)) == expected());
}

BOOST_AUTO_TEST_CASE(what_was_converted_under_no_grad_gets_gradients_afterwards) {
  Weights w;
  const Tensor x = input();
  const Autocast guard(bf16);
  no_grad([&] { linear(x, w.weight); });
  linear(x, w.weight).sum().backward();
  BOOST_TEST(w.weight.grad().defined());
  // One recorded conversion serves two backward passes.
  linear(x, w.weight).sum().backward();
  linear(x, w.weight).sum().backward();
}

BOOST_AUTO_TEST_CASE(a_checkpoint_computes_again_as_it_did_before) {
  const Tensor x = input();
  const auto gradients = [&](bool again) {
    Weights w;
    const auto block = [&](const Tensor& t) {
      const Tensor y = linear(t, w.weight, w.bias);
      const NoAutocast off;
      return matmul(y.to(f32), w.weight);
    };
    autocast(bf16, [&] { return (again ? checkpoint(block, x) : block(x)).sum(); }).backward();
    return std::vector{values(w.weight.grad()), values(w.bias.grad())};
  };
  BOOST_TEST((gradients(true) == gradients(false)));
}

namespace {

DType seen_in_forward, seen_in_backward;
struct Product : autograd::Function<Product> {
  static Tensor forward(autograd::Context& context, const Tensor& a, const Tensor& b) {
    context.save_for_backward({a, b});
    const Tensor y = matmul(a, b);
    seen_in_forward = y.dtype();
    return y;
  }
  static std::vector<Tensor> backward(autograd::Context& context, std::span<const Tensor> g) {
    const Tensor &a = context.saved_tensors()[0], &b = context.saved_tensors()[1];
    const Tensor ga = matmul(g[0].to(f32), b.t());
    seen_in_backward = ga.dtype();
    return {ga, matmul(a.t(), g[0].to(f32))};
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(functions_of_users_run_backward_as_forward) {
  Tensor a = randn({3, 4}).requires_grad_(), b = randn({4, 2}).requires_grad_();
  autocast(bf16, [&] { return Product::apply(a, b); }).sum().backward();
  BOOST_TEST(seen_in_forward == bf16);
  BOOST_TEST(seen_in_backward == bf16);
  BOOST_TEST(a.grad().dtype() == f32);
  const Tensor y = Product::apply(a, b);
  autocast(bf16, [&] { y.sum().backward(); });
  BOOST_TEST(seen_in_forward == f32);
  BOOST_TEST(seen_in_backward == f32);
}

BOOST_AUTO_TEST_CASE(operators_of_users_say_what_they_take) {
  using custom::CastInputs;
  const auto define = [](const char* name, CastInputs inputs) {
    return custom::Op({
        .name = name,
        .infer = [](const custom::InferContext& c) { return std::vector{c.input(0)}; },
        .decompose =
            [](const custom::CallContext& c) { return std::vector{c.input(0) * c.input(1)}; },
        .gradient =
            [](const custom::GradientContext& c) {
              return std::vector{c.grads[0] * c.inputs[1], c.grads[0] * c.inputs[0]};
            },
        .saves_inputs = {0, 1},
        .autocast = inputs,
    });
  };
  Tensor a = randn({3}).requires_grad_();
  const Tensor b = randn({3}).to(bf16);
  const auto as_it_is = define("autocast::none", CastInputs::none),
             lower = define("autocast::lower", CastInputs::lower),
             wide = define("autocast::f32", CastInputs::f32),
             widest = define("autocast::widest", CastInputs::widest);
  const Autocast guard(f16);
  BOOST_TEST(lower({a, b}).dtype() == f16);
  BOOST_TEST(wide({b, b}).dtype() == f32);
  BOOST_TEST(widest({b, a}).dtype() == f32);
  BOOST_TEST(as_it_is({b, b}).dtype() == bf16);
  lower({a, b}).sum().backward();
  BOOST_TEST(a.grad().dtype() == f32);
}

// The recording reads the parameter, although a conversion from before the capture was there.
BOOST_AUTO_TEST_CASE(a_stream_graph_converts_what_a_parameter_is_at_the_replay) {
  Tensor w = ones({3, 5}, {.device = "sim:0"}).requires_grad_(), y;
  const Tensor x = ones({4, 5}, {.device = "sim:0"});
  const Autocast guard(bf16);
  const NoGrad not_recorded;
  const auto step = [&] { y = linear(x, w); };
  step();
  StreamGraph graph = StreamGraph::capture("sim:0", step);
  for (float value : {2.f, 3.f}) {
    w.fill_(value);
    graph.replay();
    BOOST_TEST(values(y.to(Device()))[0] == 5 * value);
  }
}

// Each part reads its replica of a parameter and converts that one.
BOOST_AUTO_TEST_CASE(data_parallel_trains_as_one_device_does) {
  const auto train = [](const std::vector<Device>& devices) {
    manual_seed(3);
    nn::Linear layer(6, 3);
    optim::SGD optimizer(layer.parameters(), {.lr = 0.5});
    nn::DataParallel parallel(layer, devices);
    const Tensor x = randn({8, 6}), y = randn({8, 3});
    std::vector<Floats> found;
    const Autocast guard(bf16);
    for (int i = 0; i < 3; ++i) {
      optimizer.zero_grad();
      const Tensor out = parallel(x);
      BOOST_TEST(out.dtype() == bf16);
      mse_loss(out, y).backward();
      optimizer.step();
      found.push_back(values(out));
    }
    BOOST_TEST(layer.weight.grad().dtype() == f32);
    return found;
  };
  const auto one = train({"cpu:0"}), two = train({"cpu:0", "cpu:1"});
  for (size_t i = 0; i < one.size(); ++i)
    for (size_t k = 0; k < one[i].size(); ++k)
      BOOST_TEST(std::abs(one[i][k] - two[i][k]) <= 0.02f + 0.02f * std::abs(one[i][k]));
}

BOOST_AUTO_TEST_SUITE_END()
