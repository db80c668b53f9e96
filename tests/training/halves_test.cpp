// Training in f16 and bf16 on the CPU, from the first number drawn to the last step.
#include <tenon/tenon.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(halves_test)

using namespace tenon;
using namespace tenon::test;

namespace {

struct SmallNet : nn::Module<SmallNet> {
  nn::Conv2d conv{1, 8, 3, {.padding = 1}};
  nn::BatchNorm2d norm{8};
  nn::MaxPool2d pool{2};
  nn::Linear hidden{8 * 6 * 6, 32};
  nn::LayerNorm even{Shape{32}};
  nn::Dropout dropout{0.1};
  nn::Linear classes{32, 4};
  Tensor forward(const Tensor& x) {
    const Tensor h = hidden(pool(relu(norm(conv(x)))).flatten(1));
    return classes(dropout(gelu(even(h))));
  }
};

// The losses of the first and of the last step on one batch.
template <class Optimizer, class Options>
std::pair<double, double> train(DType dtype, const Options& options) {
  manual_seed(5);
  SmallNet model;
  model.to(dtype);
  Optimizer optimizer(model.parameters(), options);
  const Tensor x = empty({16, 1, 12, 12}, {.dtype = dtype}).normal_(0, 1), y = randint(0, 4, {16});
  double first = 0, last = 0;
  for (int step = 0; step < 25; ++step) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    optimizer.step();
    last = loss.template item<float>();
    if (step == 0) first = last;
  }
  for (auto& p : model.parameters()) BOOST_CHECK(p.dtype() == dtype);
  return {first, last};
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_loss_falls) {
  DeviceGuard on_cpu("cpu");
  for (DType dtype : {f32, bf16, f16}) {
    const auto [before, after] =
        train<optim::SGD>(dtype, optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
    BOOST_TEST(before > 1, name_of(dtype) << ": " << before);
    BOOST_TEST(after < 0.5 * before, name_of(dtype) << ": " << before << " to " << after);
    const auto [first, last] =
        train<optim::AdamW>(dtype, optim::AdamWOptions{.lr = 0.01, .eps = 1e-4});
    BOOST_TEST(last < 0.5 * first, name_of(dtype) << ": " << first << " to " << last);
  }
}

BOOST_AUTO_TEST_SUITE_END()
