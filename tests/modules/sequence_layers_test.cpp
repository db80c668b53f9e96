// Recurrent layers, attention, and the normalisations of groups, instances and by root mean square.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(sequence_layers_test)

using namespace tenon;
using test::require_error;

namespace {

struct LastStep : nn::Module<LastStep> {
  nn::GRU gru{1, 8};
  nn::Linear out{8, 2};
  Tensor forward(const Tensor& x) { return out(gru(x).first.select(0, -1)); }
};

template <class M>
std::vector<std::string> names_of(M& module) {
  std::vector<std::string> names;
  for (auto& [name, tensor] : module.named_parameters()) names.push_back(name);
  return names;
}
std::vector<float> values(const Tensor& x) { return x.to_vector<float>(); }

}  // namespace

BOOST_AUTO_TEST_CASE(recurrent_layers_have_the_names_of_pytorch) {
  nn::LSTM lstm(3, 4, {.num_layers = 2, .bidirectional = true});
  const std::vector<std::string> expected = {
      "weight_ih_l0",         "weight_hh_l0",         "bias_ih_l0",         "bias_hh_l0",
      "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse", "bias_hh_l0_reverse",
      "weight_ih_l1",         "weight_hh_l1",         "bias_ih_l1",         "bias_hh_l1",
      "weight_ih_l1_reverse", "weight_hh_l1_reverse", "bias_ih_l1_reverse", "bias_hh_l1_reverse"};
  BOOST_TEST(names_of(lstm) == expected, boost::test_tools::per_element());
  BOOST_TEST((lstm.weights[8].shape() == Shape{16, 8}));
  nn::GRU gru(3, 4, {.bias = false});
  BOOST_TEST((names_of(gru) == std::vector<std::string>{"weight_ih_l0", "weight_hh_l0"}));
}

BOOST_AUTO_TEST_CASE(a_recurrent_layer_is_its_function) {
  const Tensor x = rand({5, 2, 3});
  nn::LSTM lstm(3, 4);
  const auto [y, h, c] = lstm(x);
  const std::vector<Tensor> w(lstm.weights.begin(), lstm.weights.end());
  const auto [y0, h0, c0] = tenon::lstm(x, Tensor(), Tensor(), w);
  BOOST_TEST((values(y) == values(y0)));
  BOOST_TEST((values(c) == values(c0)));
  nn::RNN first(3, 4, {.batch_first = true}, "relu");
  BOOST_TEST((first(x).first.shape() == Shape{5, 2, 4}));
  BOOST_TEST((first(x).second.shape() == Shape{1, 5, 4}));
}

// Learns to tell whether the first number of a sequence was positive.
BOOST_AUTO_TEST_CASE(a_recurrent_layer_learns) {
  manual_seed(1);
  LastStep net;
  optim::Adam adam(net.parameters(), {.lr = 0.03});
  const Tensor x = randn({6, 64, 1}), target = gt(x.select(0, 0).squeeze(1), 0).to(i64);
  float first = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    adam.zero_grad();
    Tensor loss = cross_entropy(net(x), target);
    loss.backward();
    adam.step();
    (i ? last : first) = loss.item<float>();
  }
  BOOST_TEST(last < first / 2, first << " became " << last);
}

BOOST_AUTO_TEST_CASE(attention_has_the_names_of_pytorch_and_attends) {
  nn::MultiheadAttention attention(8, 2);
  BOOST_TEST((names_of(attention) == std::vector<std::string>{"in_proj_weight", "in_proj_bias",
                                                              "out_proj.weight", "out_proj.bias"}));
  const Tensor x = rand({3, 5, 8});
  const auto [y, weights] = attention(x, x, x);
  BOOST_TEST((y.shape() == x.shape()));
  BOOST_TEST((weights.shape() == Shape{5, 3, 3}));
  BOOST_TEST(std::abs(weights.sum().item<float>() - 15) < 1e-3);
  nn::MultiheadAttention by_batch(8, 2, {.batch_first = true});
  by_batch.in_proj_weight = attention.in_proj_weight, by_batch.out_proj = attention.out_proj;
  const auto found = by_batch(x.transpose(0, 1), x.transpose(0, 1), x.transpose(0, 1)).first;
  BOOST_TEST(amax(abs(found.transpose(0, 1) - y)).item<float>() < 1e-5);
  y.sum().backward();
  for (auto& [name, p] : attention.named_parameters()) BOOST_TEST(p.grad().defined(), name);
  const Tensor none = attention(x, x, x, nn::AttentionMasks{.need_weights = false}).second;
  BOOST_TEST(!none.defined());
}

BOOST_AUTO_TEST_CASE(normalisations) {
  const Tensor x = randn({2, 6, 4, 4}) * 3.0 + 1.0;
  nn::GroupNorm groups(3, 6);
  BOOST_TEST(std::abs(groups(x).reshape({6, 32}).select(0, 4).mean().item<float>()) < 1e-5);
  nn::InstanceNorm2d instances(6, {.track_running_stats = true});
  instances(x);
  BOOST_TEST(amax(abs(instances.running_mean)).item<float>() > 0);
  instances.eval();
  BOOST_TEST((values(instances(x)) != values(nn::InstanceNorm2d(6)(x))));
  nn::RMSNorm rms(4);
  BOOST_TEST(std::abs(square(rms(x)).mean().item<float>() - 1) < 1e-3);
  BOOST_TEST(nn::str(groups) == "GroupNorm(3, 6, eps=1e-05, affine=True)");
  BOOST_TEST(nn::str(rms) == "RMSNorm((4,), eps=None, elementwise_affine=True)");
  BOOST_TEST(nn::str(nn::LSTM(3, 4, {.num_layers = 2, .batch_first = true})) ==
             "LSTM(3, 4, num_layers=2, batch_first=True)");
}

BOOST_AUTO_TEST_CASE(bad_options_and_inputs) {
  require_error<ValueError>([] { nn::LSTM(0, 4); }, "LSTM: input_size is 0");
  require_error<ValueError>([] { nn::GRU(3, 4, {.num_layers = 0}); }, "num_layers");
  require_error<ValueError>([] { nn::RNN(3, 4, {}, "gelu"); }, "\"tanh\" or \"relu\"");
  require_error<ValueError>([] { nn::LSTM(3, 4, {.dropout = 1.5}); }, "dropout");
  require_error<ShapeError>([] { nn::LSTM(3, 4)(zeros({2, 2, 5})); }, "weight_ih of layer 0");
  require_error<ValueError>([] { nn::MultiheadAttention(8, 3); }, "a multiple of num_heads, 3");
  require_error<ValueError>([] { nn::GroupNorm(4, 6); }, "a multiple of num_groups, 4");
  require_error<ShapeError>([] { nn::GroupNorm(2, 6)(zeros({1, 4})); }, "num_channels=6");
  require_error<ShapeError>([] { nn::InstanceNorm1d(2)(zeros({1, 2})); }, "of 3 dimensions");
  require_error<ShapeError>([] { nn::RMSNorm(3)(zeros({1, 4})); }, "normalized_shape (3,)");
}

BOOST_AUTO_TEST_SUITE_END()
