// Recurrent layers, attention, and the normalizations of groups, instances and by root mean square.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "modules/ramp.h"
#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(sequence_layers_test)

using namespace tenon;
using test::ramp;
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

using Doubles = std::vector<double>;
const TensorOptions in_f64{.dtype = f64};
// sin(0), sin(0.7), …
Tensor waves(const Shape& shape) { return sin(arange(shape.numel(), f64) * 0.7).reshape(shape); }
void require_close(const Tensor& found, const Doubles& expected, double tolerance) {
  test::require_close(found.to_vector<double>(), expected, tolerance, tolerance);
}

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

BOOST_AUTO_TEST_CASE(normalizations) {
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

// The numbers are PyTorch 2.15's.
BOOST_AUTO_TEST_CASE(projected_outputs_of_an_lstm) {
  struct Case {
    bool bidirectional;
    Doubles y, h, c, of_x, of_hr;
  };
  const Case cases[] = {
      {false,
       {0.1411345781, -0.1741793918, 0.1399034878, -0.1736983807, 0.1670054296, -0.2218879628,
        0.1655514909, -0.2211348591, 0.1693994269, -0.2355332619, 0.1689834281, -0.2343030107},
       {0.1959116196, -0.2587889953, 0.13742386, -0.1991923344, 0.1693994269, -0.2355332619,
        0.1689834281, -0.2343030107},
       {-0.8643474777, 0.4365441119, 0.6135724497, 0.2993630292, -1.1016693186, 0.5808714316,
        0.6195144951, -0.0426439182, -0.5037401306, -0.1195115744, 0.598259527, 0.8074945147,
        -0.5038982683, -0.1108572117, 0.5919105304, 0.8010182185},
       {-0.0234064669, -0.0411790802, -0.0395845286, -0.0331848058, -0.0700466662, -0.0739644851,
        -0.0551869966, -0.094413229, -0.0892354445, -0.1269108897, -0.1876049607, -0.1600654873,
        -0.3509486507, -0.3863888451, -0.2401043282, -0.3949294215, -0.4571943959, -0.304433702},
       {-1.0187304508, 0.3890277991, 0.264979123, 0.2678872687, 0.4028013254, -0.1806370673,
        -0.0673453656, -0.0488085554}},
      {true,
       {0.1419822403, -0.1729634342, 0.1727951751, -0.2328892618, 0.1409734919, -0.1720781677,
        0.1717554636, -0.2319050179, 0.1681953386, -0.2188865515, 0.1664938383, -0.2167421017,
        0.1665317254, -0.2172897335, 0.1662237439, -0.2165059285, 0.1703411838, -0.2312652544,
        0.1384389316, -0.1694240135, 0.1703184715, -0.2309749598, 0.1393351664, -0.170112189},
       {0.1959116196, -0.2587889953, 0.13742386, -0.1991923344, 0.1668939196, -0.2115218791,
        0.198445241, -0.2590418827, 0.1703411838, -0.2312652544, 0.1703184715, -0.2309749598,
        0.1727951751, -0.2328892618, 0.1717554636, -0.2319050179},
       {-0.8643474777, 0.4365441119,  0.6135724497,  0.2993630292,  -1.1016693186, 0.5808714316,
        0.6195144951,  -0.0426439182, -0.4352133113, -0.062269769,  0.4724510431,  0.7208355783,
        -0.7296517706, 0.1330998697,  0.5346967872,  0.6471178159,  -0.4607648413, -0.1300645785,
        0.634815944,   0.7292740056,  -0.4633107087, -0.1224168984, 0.6312089183,  0.7320053441,
        -0.4735376032, -0.1065770832, 0.6185123516,  0.7406212734,  -0.4643884566, -0.1196135667,
        0.6249923884,  0.7355428075},
       {-0.0527467998, 0.019781295, 0.0830059377, -0.2037910229, -0.1073775637, 0.0395372415,
        -0.1630668023, -0.1367002628, -0.0460414537, -0.2656029179, -0.2963063637, -0.1876522968,
        -0.3612107772, -0.4082030647, -0.2632110726, -0.4157047076, -0.5022874954, -0.3526366257},
       {-0.6559813305, 0.2348208295, 0.1933960954, 0.2095169823, 0.577869561, -0.2601554637,
        -0.0930178833, -0.0690322001}}};
  for (auto& expected : cases) {
    nn::LSTM lstm(3, 4, 2,
                  {.bidirectional = expected.bidirectional, .proj_size = 2, .tensor = in_f64});
    for (Tensor& p : lstm.parameters()) no_grad([&] { p.copy_(waves(p.shape()) * 0.5); });
    Tensor x = ramp({3, 2, 3}).requires_grad_();
    const auto [y, h, c] = lstm(x);
    require_close(y, expected.y, 1e-8);
    require_close(h, expected.h, 1e-8);
    require_close(c, expected.c, 1e-8);
    ((y * ramp(y.shape())).sum() + (h * h).sum() + c.sum()).backward();
    require_close(x.grad(), expected.of_x, 1e-8);
    require_close(lstm.named_parameters()[4].tensor.grad(), expected.of_hr, 1e-8);
    // Initial states have the widths of what is returned.
    BOOST_CHECK((std::get<0>(lstm(x, h, c)).shape() == y.shape()));
  }
  nn::LSTM lstm(3, 4, {.bias = false, .proj_size = 2});
  BOOST_TEST(
      (names_of(lstm) == std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "weight_hr_l0"}));
  BOOST_TEST(nn::str(nn::LSTM(3, 4, 2, {.proj_size = 2})) ==
             "LSTM(3, 4, proj_size=2, num_layers=2)");
  require_error<ValueError>([] { nn::LSTM(3, 4, {.proj_size = 4}); }, "proj_size is 4",
                            "less than hidden_size");
  require_error<ValueError>([] { nn::GRU(3, 4, {.proj_size = 2}); }, "only an LSTM");
  require_error<ShapeError>([&] { lstm(zeros({2, 1, 3}), zeros({1, 1, 4})); }, "(1, 1, 2)");
}

BOOST_AUTO_TEST_CASE(attention_to_keys_and_values_of_other_widths) {
  nn::MultiheadAttention attention(4, 2, {.kdim = 3, .vdim = 5, .tensor = in_f64});
  BOOST_TEST((names_of(attention) == std::vector<std::string>{"q_proj_weight", "k_proj_weight",
                                                              "v_proj_weight", "in_proj_bias",
                                                              "out_proj.weight", "out_proj.bias"}));
  for (Tensor& p : attention.parameters()) no_grad([&] { p.copy_(waves(p.shape())); });
  const auto [y, w] = attention(ramp({3, 1, 4}), ramp({2, 1, 3}), ramp({2, 1, 5}));
  require_close(
      y,
      {1.6918382404, -1.3662793726, 3.0822819808, -1.0776579562, 1.6198864255, -1.3046371179,
       3.0380723767, -1.0559896576, 1.5499815886, -1.2443751739, 2.9944169138, -1.0339852967},
      1e-8);
  require_close(
      w, {0.5401238438, 0.4598761562, 0.5413045142, 0.4586954858, 0.5414404786, 0.4585595214},
      1e-8);
  (y * ramp({3, 1, 4})).sum().backward();
  require_close(attention.k_proj_weight.grad(),
                {0.0021275323, 0.0021275323, 0.0021275323, 0.0110088634, 0.0110088634, 0.0110088634,
                 0.0096619659, 0.0096619659, 0.0096619659, 5.12174e-05, 5.12174e-05, 5.12174e-05},
                1e-8);
  require_close(attention.in_proj_bias.grad(),
                {0.0387223548, 0.0201353211, -0.002762097, 0.001847072, 0.0, 0.0, -0.0, -0.0,
                 0.3233793535, 0.0032378814, -0.3184264169, -0.4903297958},
                1e-8);
  BOOST_TEST((nn::MultiheadAttention(4, 2, {.kdim = 3}).v_proj_weight.shape() == Shape{4, 4}));
  BOOST_TEST(nn::MultiheadAttention(4, 2, {.kdim = 4, .vdim = 4}).in_proj_weight.defined());
  require_error<ShapeError>(
      [&] {
        attention(ramp({3, 1, 4}), ramp({2, 1, 4}), ramp({2, 1, 5}));
      },
      "the key is 4 wide, but k_proj_weight, of shape (4, 3), takes 3");
  require_error<ShapeError>(
      [&] {
        attention(ramp({3, 1, 4}), ramp({2, 1, 3}), ramp({3, 1, 5}));
      },
      "(s, batch, vdim)");
  require_error<ValueError>([] { nn::MultiheadAttention(4, 2, {.vdim = 0}); }, "vdim is 0");
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
