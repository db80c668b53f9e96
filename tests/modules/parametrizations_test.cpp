// Layers whose weight is computed from other parameters. The numbers are PyTorch 2.15's.
#include <tenon/tenon.h>

#include "modules/ramp.h"
#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(parametrizations_test)

using namespace tenon;
using namespace tenon::test;
using nn::utils::parametrizations::spectral_norm;
using nn::utils::parametrizations::weight_norm;
using Doubles = std::vector<double>;

namespace {

const nn::WeightOptions in_f64{.tensor = {.dtype = f64}};

nn::Linear linear_layer() {
  nn::Linear layer(3, 2, in_f64);
  no_grad([&] { layer.bias.copy_(ramp({2})); });
  return layer;
}
void require_close(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  test::require_close(found.to_vector<double>(), expected, tolerance, tolerance);
}
template <class M>
std::string names_of(const M& module) {
  std::string text;
  for (auto& name : module.state_dict().keys()) text += (text.empty() ? "" : " ") + name;
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(lengths_and_directions) {
  struct Case {
    std::optional<int64_t> dim;
    Doubles y, of_g, of_v;
  };
  const Case cases[] = {
      {0,
       {-0.1465834953, -0.1105491092, -0.3995975839, -0.2733652353},
       {-0.4136579544, -0.2351788488},
       {0.0088095023, -0.0020728241, -0.0129551505, 0.09867644, 0.3947057602, 0.6907350803}},
      {1,
       {0.1806806449, -0.3281863214, -0.3457347006, -0.359891942},
       {-0.3699864862, -0.2531442277, -0.1235531651},
       {-0.0432177947, -0.0349593593, 0.0792007469, 0.1296533841, 0.2447155148, 0.3960037344}},
      {std::nullopt,
       {-0.1584937687, -0.3379079579, -0.4029811843, -0.3728347316},
       {-0.4602572617},
       {-0.0089304067, -0.0155697666, -0.0222091265, 0.103097103, 0.1119807536, 0.1208644042}},
  };
  for (auto& expected : cases) {
    auto layer = weight_norm(linear_layer(), expected.dim);
    Tensor &g = layer.parametrizations.weight.original0,
           &v = layer.parametrizations.weight.original1;
    no_grad([&] {
      g.copy_(ramp(g.shape()) + 1);
      v.copy_(ramp({2, 3}) + 0.05);
    });
    const Tensor y = layer(ramp({2, 3}));
    require_close(y, expected.y, 1e-9);
    (y * ramp({2, 2})).sum().backward();
    require_close(g.grad(), expected.of_g, 1e-9);
    require_close(v.grad(), expected.of_v, 1e-9);
    require_close(layer.module.bias.grad(), {-0.8, -0.6}, 1e-9);
  }
}

BOOST_AUTO_TEST_CASE(a_new_weight_norm_changes_nothing) {
  nn::Conv2d conv(2, 3, 2, {}, in_f64);
  const Tensor x = ramp({1, 2, 3, 3}), expected = conv(x);
  auto layer = weight_norm(conv);
  BOOST_TEST(names_of(layer) ==
             "bias parametrizations.weight.original0 parametrizations.weight.original1");
  BOOST_CHECK((layer.parametrizations.weight.original0.shape() == Shape{3, 1, 1, 1}));
  require_equal(layer(x), expected, 1e-12);
  require_equal(nn::clone(layer)(x), expected, 1e-12);
  const auto plain = nn::utils::parametrize::remove_parametrizations(layer);
  BOOST_TEST(names_of(plain) == "weight bias");
  require_equal(plain(x), expected, 1e-12);
  require_error<IndexError>([] { weight_norm(nn::Linear(2, 2), 2); }, "weight_norm: dim is 2");
}

BOOST_AUTO_TEST_CASE(largest_singular_value) {
  auto layer = spectral_norm(linear_layer());
  auto& parts = layer.parametrizations.weight;
  BOOST_TEST(names_of(layer) ==
             "bias parametrizations.weight.original parametrizations.weight.0._u "
             "parametrizations.weight.0._v");
  no_grad([&] {
    parts.original.copy_(ramp({2, 3}) + 0.05);
    parts.vectors.left.copy_(tensor({0.6, 0.8}, f64));
    parts.vectors.right.copy_(tensor({0, 0.6, -0.8}, f64));
  });
  const Tensor y = layer(ramp({2, 3}));
  const Doubles expected = {1.3761663039, -0.0588788538, 0.0330017909, -0.2507594986};
  require_close(y, expected, 1e-9);
  (y * ramp({2, 2})).sum().backward();
  require_close(parts.vectors.left, {-0.1414213562, -0.9899494937}, 1e-9);
  require_close(parts.vectors.right, {0.9045340337, 0.4221158824, -0.0603022689}, 1e-9);
  require_close(
      parts.original.grad(),
      {0.6322370334, 0.6589065048, 0.6855759763, -3.8038884175, -1.4851949539, 0.8334985097}, 1e-8);
  layer.eval();
  require_close(layer(ramp({2, 3})), expected, 1e-9);  // makes no step
  require_close(parts.vectors.left, {-0.1414213562, -0.9899494937}, 1e-9);
}

BOOST_AUTO_TEST_CASE(spectral_norm_of_other_layers) {
  auto transposed = spectral_norm(nn::ConvTranspose2d(2, 3, 2));
  BOOST_TEST(transposed.parametrizations.weight.vectors.left.numel() == 3);
  BOOST_TEST(transposed.parametrizations.weight.vectors.right.numel() == 8);
  auto layer = spectral_norm(nn::Linear(6, 4, in_f64), {.n_power_iterations = 40});
  layer(ramp({1, 6}));
  // With so many steps the weight has the largest singular value 1.
  test::require_close({svdvals(layer.eval().weight())[0].item()}, {1}, 1e-3, 1e-3);
  require_error<ValueError>([] { spectral_norm(nn::Linear(2, 2), {.n_power_iterations = 0}); },
                            "n_power_iterations is 0");
  require_error<ValueError>([] { spectral_norm(nn::Linear(2, 2), {.eps = 0}); }, "eps is 0");
}

BOOST_AUTO_TEST_CASE(a_frozen_weight_stays_frozen) {
  nn::Linear layer(3, 2);
  layer.weight.requires_grad_(false);
  const auto lengths = weight_norm(layer);
  const auto spectral = spectral_norm(layer);
  BOOST_TEST(!lengths.parametrizations.weight.original0.requires_grad());
  BOOST_TEST(!lengths.parametrizations.weight.original1.requires_grad());
  BOOST_TEST(!spectral.parametrizations.weight.original.requires_grad());
  BOOST_TEST(lengths.module.bias.requires_grad());
  const auto plain = nn::utils::parametrize::remove_parametrizations(lengths);
  BOOST_TEST(!plain.weight.requires_grad());
  BOOST_TEST(nn::utils::parametrize::remove_parametrizations(weight_norm(nn::Linear(3, 2)))
                 .weight.requires_grad());
}

namespace {

struct Net : nn::Module<Net> {
  nn::WeightNorm<nn::Linear> first{nn::Linear(3, 4)};
  nn::SpectralNorm<nn::Linear> second{nn::Linear(4, 1)};
  Tensor forward(const Tensor& x) { return second(relu(first(x))); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(on_several_devices_as_on_one) {
  Net shared, alone;
  shared.to(f64);
  alone = nn::clone(shared);
  nn::DataParallel<Net> parallel(shared, parse_devices("cpu:0,cpu:1"));
  for (int i = 0; i < 2; ++i) {
    const Tensor x = ramp({6, 3});
    shared.zero_grad(), alone.zero_grad();
    require_equal(parallel(x), alone(x), 1e-12);
    parallel(x).sum().backward();
    alone(x).sum().backward();
    for (size_t k = 0; k < shared.parameters().size(); ++k)
      require_close(shared.parameters()[k].grad(), alone.parameters()[k].grad().to_vector<double>(),
                    1e-9);
    for (size_t k = 0; k < shared.buffers().size(); ++k)
      require_close(shared.buffers()[k], alone.buffers()[k].to_vector<double>(), 1e-9);
  }
}

BOOST_AUTO_TEST_CASE(inside_a_model_that_learns) {
  Net net;
  BOOST_TEST(net.parameters().size() == 5u);
  BOOST_TEST(net.buffers().size() == 2u);
  optim::SGD optimizer(net.parameters(), 0.1);
  const auto before = net.first.parametrizations.weight.original0.to_vector<float>();
  mse_loss(net(ones({5, 3})), full({5, 1}, 9)).backward();
  mse_loss(net(ones({5, 3}) * -1), full({5, 1}, -9)).backward();
  optimizer.step();
  BOOST_TEST((net.first.parametrizations.weight.original0.to_vector<float>() != before));
  const Tensor x = ones({2, 3});
  BOOST_TEST(nn::clone(net).eval()(x).equal(net.eval()(x)));
}

// torch.nn.utils.parametrizations.weight_norm takes -1 for all dimensions, and -2 for the one.
BOOST_AUTO_TEST_CASE(weight_norm_counts_dimensions_as_pytorch_does) {
  BOOST_TEST(
      (weight_norm(linear_layer(), -1).parametrizations.weight.original0.shape() == Shape{}));
  BOOST_TEST(
      (weight_norm(linear_layer(), -2).parametrizations.weight.original0.shape() == Shape{2, 1}));
}

BOOST_AUTO_TEST_SUITE_END()
