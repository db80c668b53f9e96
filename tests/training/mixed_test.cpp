// Training under an Autocast guard gives the losses that f32 gives, within 1 %: PyTorch's do as
// well (the same models and sizes, 100 steps, bf16 on the CPU: 0.5 % at most).
#include <cmath>
#include <functional>

#include <tenon/tenon.h>

#include "support/expect.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(mixed_test)

using namespace tenon;

namespace {

struct Mlp : nn::Module<Mlp> {
  nn::Linear first{16, 32}, second{32, 4};
  nn::BatchNorm1d norm{32};
  Tensor forward(const Tensor& x) { return second(relu(norm(first(x)))); }
};

struct LeNet : nn::Module<LeNet> {
  nn::Conv2d first{1, 4, 3, {.padding = 1}}, second{4, 8, 3, {.padding = 1}};
  nn::MaxPool2d pool{2};
  nn::Linear hidden{8 * 3 * 3, 16}, classes{16, 4};
  Tensor forward(const Tensor& x) {
    const Tensor h = pool(relu(second(pool(relu(first(x))))));
    return classes(relu(hidden(h.flatten(1))));
  }
};

struct Transformer : nn::Module<Transformer> {
  nn::Linear qkv{16, 48}, out{16, 16}, up{16, 32}, down{32, 16}, classes{16, 4};
  nn::LayerNorm before{Shape{16}}, between{Shape{16}};
  Tensor forward(const Tensor& x) {
    const int64_t n = x.size(0), l = x.size(1);
    const auto parts = chunk(qkv(before(x)).reshape({n, l, 6, 8}).transpose(1, 2), 3, 1);
    const Tensor y =
        scaled_dot_product_attention(parts[0], parts[1], parts[2], {.is_causal = true});
    const Tensor h = x + out(y.transpose(1, 2).reshape({n, l, 16}));
    return classes(mean(h + down(gelu(up(between(h)))), {1}));
  }
};

// The losses of 100 steps. The labels are a noisy function of the inputs, so that there is
// something to learn, and something that cannot be learned.
template <class Model>
std::vector<double> losses(const Shape& input, std::optional<DType> lower, bool scaled = false) {
  manual_seed(2);
  Model model;
  optim::SGD optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9});
  amp::GradScaler scaler({.enabled = scaled});
  Shape shape = input;
  shape.insert(0, 64);
  const Tensor x = randn(shape), teacher = randn({input.numel(), 4});
  const Tensor y = argmax(matmul(x.flatten(1), teacher) + randn({64, 4}) * 4, 1);
  std::vector<double> found;
  for (int step = 0; step < 100; ++step) {
    optimizer.zero_grad();
    const auto loss_of = [&] { return cross_entropy(model(x), y); };
    const Tensor loss = lower ? autocast(*lower, loss_of) : loss_of();
    BOOST_REQUIRE(loss.dtype() == f32);
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    found.push_back(loss.item());
  }
  for (auto& p : model.parameters()) BOOST_TEST(p.dtype() == f32);
  return found;
}

template <class Model>
void compare(const char* name, const Shape& input) {
  const auto whole = losses<Model>(input, std::nullopt);
  BOOST_TEST(whole.back() < 0.95 * whole.front(),
             name << ": " << whole.front() << " " << whole.back());
  for (const auto& [lower, scaled] : {std::pair(bf16, false), {f16, true}}) {
    const auto mixed = losses<Model>(input, lower, scaled);
    double worst = 0;
    for (size_t i = 0; i < whole.size(); ++i)
      worst = std::max(worst, std::abs(mixed[i] - whole[i]) / whole[i]);
    BOOST_TEST(worst > 0, name << " was not computed in " << lower);
    BOOST_TEST(worst < 0.01, name << " in " << lower << ": " << worst);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(losses_are_those_of_f32) {
  if (test::kSanitized) return;
  const DeviceGuard on_cpu("cpu");
  compare<Mlp>("MLP", {16});
  compare<LeNet>("LeNet", {1, 12, 12});
  compare<Transformer>("transformer", {6, 16});
}

BOOST_AUTO_TEST_SUITE_END()
