// Programs in files whose tensors lie in memory in ways of their own: with strides that say
// nothing, and between each other.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "../files.h"
#include "bits.h"
#include "saved_nets.h"

BOOST_AUTO_TEST_SUITE(program_strides_test)

using namespace tenon;
using namespace tenon::test::saved;
using test::same_bits;

// The stride of a dimension of one element addresses nothing, so it may be anything.
BOOST_AUTO_TEST_CASE(convolutions_of_tensors_with_any_strides_in_dimensions_of_one_element) {
  const TempFolder folder;
  const NoGrad guard;
  const std::vector<std::pair<const char*, std::function<Tensor()>>> inputs = {
      {"a part",
       [] {
         return randn({3, 4, 8, 8}).narrow(0, 1, 1).narrow(1, 2, 1);
       }},
      {"parts",
       [] {
         return randn({3, 4, 8, 8}).narrow(1, 2, 1);
       }},
      {"channels last",
       [] {
         return randn({1, 8, 8, 1}).permute({0, 3, 1, 2});
       }},
      {"a part, channels last",
       [] {
         return randn({3, 8, 8, 4}).permute({0, 3, 1, 2}).narrow(0, 1, 1).narrow(1, 1, 1);
       }},
      {"channels last of many",
       [] {
         return randn({3, 8, 8, 1}).permute({0, 3, 1, 2});
       }},
      {"turned",
       [] {
         return randn({8, 8, 1, 1}).permute({3, 2, 0, 1});
       }},
      {"turned once more",
       [] {
         return randn({8, 1, 8, 1}).permute({1, 3, 0, 2});
       }},
      {"a row",
       [] {
         return randn({2, 1, 8, 8}).narrow(2, 3, 1);
       }},
      {"a column",
       [] {
         return randn({2, 1, 8, 8}).narrow(3, 3, 1);
       }},
      {"one element", [] {
         return randn({3, 3, 8, 8}).narrow(0, 1, 1).narrow(1, 1, 1).narrow(2, 1, 1).narrow(3, 1, 1);
       }}};
  const Tensor weight = randn({3, 1, 3, 3}), part = randn({8, 3, 3, 1}).permute({0, 3, 1, 2});
  for (auto& w : {weight, weight.contiguous(channels_last), part.narrow(2, 1, 1).narrow(3, 1, 1)})
    for (auto& [name, make] : inputs)
      BOOST_TEST_CONTEXT(name << ", weight of " << w.shape().str()) {
        auto f = compile([&](const Tensor& x) {
          return relu(conv2d(x, w, Tensor(), {.padding = w.size(2) / 2}));
        });
        for (int i = 0; i < 3; ++i) f(make());
        f.save(folder / "conv.tenon");
        auto program = Program::load(folder / "conv.tenon");
        const Tensor x = make();
        BOOST_TEST(same_bits(program.run({{"0", x}})[0], f(x)));
      }
}

// No byte belongs to two of them, but each lies in the gaps of the others.
BOOST_AUTO_TEST_CASE(optimizers_of_parts_of_one_tensor_that_lie_between_each_other) {
  const TempFolder folder;
  const Tensor values = randn({4, 6, 5});
  const auto parts = [&](const Tensor& all) {
    return std::vector<Tensor>{
        all.narrow(1, 0, 2).narrow(2, 0, 2), all.narrow(1, 0, 2).narrow(2, 2, 3),
        all.narrow(1, 2, 2).narrow(2, 0, 5), all.select(1, 4), all.select(1, 5)};
  };
  const std::vector<MakeOptimizer> all = {
      making<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9}),
      making<optim::Adam>(optim::AdamOptions{.lr = 0.01})};
  for (auto& make : all) {
    const Tensor memory = values.clone();
    std::vector<Tensor> parameters = parts(memory);
    for (auto& p : parameters) p.requires_grad_();
    const Optimizer optimizer = make(parameters);
    auto step = compile([&](const Tensor& x) {
      optimizer->zero_grad();
      Tensor loss = zeros({});
      for (auto& p : parameters) loss = loss + (p * p * x).sum();
      loss.backward();
      optimizer->step();
      return loss;
    });
    for (int i = 0; i < 3; ++i) step(full({1}, 1 + i));
    step.save(folder / "parts.tenon");
    auto program = Program::load(folder / "parts.tenon");
    for (int i = 0; i < 3; ++i) {
      const Tensor x = full({1}, 2 + i);
      BOOST_TEST(same_bits(program.run({{"0", x}})[0], step(x)));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
