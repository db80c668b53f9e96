// Models of the examples learn on several devices what they learn on one; LeNet does in
// data_parallel_test.cpp.
#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "../examples/chargpt/model.h"
#include "../examples/resnet18/model.h"
#include "parallel/trained.h"
#include "support/sanitized.h"
#include "support/state_values.h"

BOOST_AUTO_TEST_SUITE(models_test)

using namespace tenon;
using namespace tenon::test;

namespace {

const int kSteps = kSanitized ? 5 : 20;

// All parameters and buffers after some steps; `loss_of` calls a model with the next batch.
template <class Model, class LossOf>
std::vector<std::vector<double>> learned(Model model, const LossOf& loss_of) {
  model.to(f64);
  optim::SGD optimizer(model.parameters(), {.lr = 0.02, .momentum = 0.9});
  manual_seed(7);
  for (int i = 0; i < kSteps; ++i) {
    optimizer.zero_grad();
    loss_of(model).backward();
    optimizer.step();
  }
  return state_values(model);
}

template <class Make, class LossOf>
void require_alike_on_any_number(const Make& make, const LossOf& loss_of) {
  const auto made = [&] {
    manual_seed(5);
    return make();
  };
  const auto expected = learned(made(), loss_of);
  BOOST_TEST(largest_difference(expected, state_values(made())) > 1e-3);
  for (const uint32_t n : {2u, 3u, 4u})
    BOOST_TEST(largest_difference(learned(nn::DataParallel(made(), places(n)), loss_of), expected) <
               1e-9);
}

}  // namespace

// The batches have parts that differ in size.

BOOST_AUTO_TEST_CASE(resnet18_with_synchronized_normalization) {
  const auto make = [] {
    ResNet18 net(3, 4);
    nn::SyncBatchNorm::convert_sync_batchnorm(net);
    return net;
  };
  require_alike_on_any_number(make, [](auto& model) {
    const Tensor x = randn({9, 3, 8, 8}).to(f64), y = randint(0, 10, {9});
    return cross_entropy(model(x), y);
  });
}

BOOST_AUTO_TEST_CASE(a_transformer_of_characters) {
  const auto text = [](auto& model) {
    const Tensor x = randint(0, 20, {5, 8}), y = randint(0, 20, {5, 8});
    return cross_entropy(model(x).flatten(0, 1), y.flatten());
  };
  require_alike_on_any_number([] { return CharGpt{{}, 20}; }, text);
}

BOOST_AUTO_TEST_SUITE_END()
