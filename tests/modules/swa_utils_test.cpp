// Averages of weights.
#include <tenon/tenon.h>

#include "modules/stepped.h"
#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(swa_utils_test)

using namespace tenon;
using namespace tenon::test;
using namespace tenon::optim::swa_utils;

namespace {

struct Net : nn::Module<Net> {
  nn::Linear fc{1, 1};
  nn::BatchNorm1d norm{1};
  Tensor forward(const Tensor& x) { return norm(fc(x)); }
};

struct Mixed : nn::Module<Mixed> {
  nn::Dropout dropout{1.0};
  nn::BatchNorm3d solid{1};
  nn::SyncBatchNorm shared{1};
  Tensor forward(const Tensor& x) { return shared(x) + solid(dropout(x)); }
};

void set_weight(Net& net, double value) {
  no_grad([&] { net.fc.weight.fill_(value); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(plain_averages) {
  Net net;
  AveragedModel average(net);
  for (double w : {1.0, 2.0, 6.0}) {
    set_weight(net, w);
    average.update_parameters(net);
  }
  BOOST_TEST(average.module.fc.weight.item() == 3);
  BOOST_TEST(average.n_averaged.item<int>() == 3);
  BOOST_TEST(net.fc.weight.item() == 6);
  BOOST_TEST(average.state_dict().contains("module.fc.weight"));
  BOOST_TEST(average.state_dict().contains("n_averaged"));
}

BOOST_AUTO_TEST_CASE(exponential_averages_begin_with_the_first_model) {
  Net net;
  AveragedModel average(net, get_ema_avg_fn(0.75));
  for (double w : {4.0, 8.0, 0.0}) {
    set_weight(net, w);
    average.update_parameters(net);
  }
  BOOST_TEST(average.module.fc.weight.item() == (4 * 0.75 + 8 * 0.25) * 0.75);
  require_error<ValueError>([] { get_ema_avg_fn(1.5); },
                            "get_ema_avg_fn: decay is 1.5; it has to be at least 0 and at most 1");
}

BOOST_AUTO_TEST_CASE(buffers_are_copied_or_averaged) {
  Net net;
  AveragedModel copied(net), averaged(net, get_swa_avg_fn(), true);
  for (double v : {2.0, 4.0}) {
    net.norm.running_mean.fill_(v);
    net.norm.num_batches_tracked.fill_(static_cast<int64_t>(v));
    copied.update_parameters(net);
    averaged.update_parameters(net);
  }
  BOOST_TEST(copied.module.norm.running_mean.item() == 4);
  BOOST_TEST(averaged.module.norm.running_mean.item() == 3);
  BOOST_TEST(averaged.module.norm.num_batches_tracked.item<int>() == 4);
}

BOOST_AUTO_TEST_CASE(models_of_other_shapes_or_names_are_refused) {
  const nn::Sequential net(nn::Linear(2, 3), nn::Linear(3, 1));
  AveragedModel average(net);
  average.update_parameters(net);
  const auto refuses = [&](const nn::Sequential& other, const char* text) {
    require_error<Error>([&] { average.update_parameters(other); }, text);
    for (size_t i = 0; i < 4; ++i)
      require_equal(average.parameters()[i].detach(), net.parameters()[i].detach());
    BOOST_TEST(average.n_averaged.item<int>() == 1);
  };
  refuses(nn::Sequential(nn::Linear(2, 3), nn::Linear(3, 5)),
          "AveragedModel: parameter \"1.weight\" has shape (1, 3) in the average and (5, 3) in the "
          "model; average the model that it was made of");
  refuses(nn::Sequential(nn::Linear(2, 3), relu, nn::Linear(3, 1)),
          "AveragedModel: parameter 2 is \"1.weight\" in the average and \"2.weight\" in the "
          "model");
  refuses(nn::Sequential(nn::Linear(2, 3)),
          "AveragedModel: it has 4 parameters and 0 buffers, the model 2 and 0");
  AveragedModel statistics(nn::Sequential(nn::BatchNorm1d(1, {.affine = false})));
  require_error<ShapeError>(
      [&] { statistics.update_parameters(nn::Sequential(nn::BatchNorm1d(2, {.affine = false}))); },
      "AveragedModel: buffer \"0.running_mean\" has shape (1,) in the average and (2,)");
}

BOOST_AUTO_TEST_CASE(running_statistics_are_those_of_all_batches) {
  Net net;
  no_grad([&] { net.fc.weight.fill_(2), net.fc.bias.fill_(0); });
  net.norm.running_mean.fill_(99);
  net.eval();
  const std::vector<Tensor> batches = {tensor({1, 3}, {2, 1}), tensor({5, 7}, {2, 1})};
  update_bn(batches, net);
  BOOST_TEST(net.norm.running_mean.item() == 8);  // of 2, 6, 10 and 14
  BOOST_TEST(net.norm.running_var.item() == 8);
  BOOST_TEST(net.norm.num_batches_tracked.item<int>() == 2);
  BOOST_TEST(!net.norm.training);
  BOOST_TEST(*net.norm.options.momentum == 0.1);
  const std::vector<data::Batch> more = {{tensor({1, 3}, {2, 1}), Tensor()}};
  update_bn(more, net, Device("cpu:0"));
  BOOST_TEST(net.norm.running_mean.item() == 4);
}

BOOST_AUTO_TEST_CASE(every_batch_normalization_is_computed_again) {
  Mixed net;
  net.eval();
  const std::vector<Tensor> batches = {tensor({1, 3}, {2, 1, 1, 1, 1}),
                                       tensor({5, 7}, {2, 1, 1, 1, 1})};
  update_bn(batches, net);
  BOOST_TEST(net.shared.running_mean.item() == 4);
  BOOST_TEST(net.shared.running_var.item() == 2);
  BOOST_TEST(net.shared.num_batches_tracked.item<int>() == 2);
  BOOST_TEST(*net.shared.options.momentum == 0.1);
  BOOST_TEST(net.solid.running_mean.item() == 0);  // dropout was in training mode
  BOOST_TEST(net.solid.running_var.item() == 0);
  BOOST_TEST((!net.solid.training && !net.shared.training && !net.dropout.training));
}

BOOST_AUTO_TEST_CASE(rates_go_to_that_of_the_averages) {
  struct Case {
    const char* strategy;
    int64_t epochs;
    std::vector<std::vector<double>> rates;
  };
  const Case cases[] = {
      {"cos", 3, {{0.5, 1}, {0.3875, 0.7625}, {0.1625, 0.2875}, {0.05, 0.05}, {0.05, 0.05}}},
      {"linear", 2, {{0.5, 1}, {0.275, 0.525}, {0.05, 0.05}, {0.05, 0.05}}},
      {"linear", 0, {{0.05, 0.05}, {0.05, 0.05}}}};
  for (auto& c : cases) {
    optim::SGD sgd({{{zeros({1})}, {.lr = 0.5}}, {{zeros({1})}, {.lr = 1}}});
    SWALR scheduler(sgd, 0.05, c.epochs, c.strategy);
    for (auto& expected : c.rates) {
      require_close(scheduler.get_last_lr(), expected, 1e-12, 0, c.strategy);
      scheduler.step();
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
