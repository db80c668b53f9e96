// Small layers, and weights of losses, against values that PyTorch gives.
#include <tenon/tenon.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(small_layers_test)

using namespace tenon;
using namespace tenon::test;

namespace {

const TensorOptions in_f64{.dtype = f64};

// -0.5, -0.4, …
Tensor ramp(const Shape& shape) {
  return (arange(0, static_cast<double>(shape.numel()), 1, in_f64) * 0.1 - 0.5).reshape(shape);
}

}  // namespace

BOOST_AUTO_TEST_CASE(bilinear) {
  nn::Bilinear layer(2, 3, 2, {.tensor = in_f64});
  for (Tensor& p : layer.parameters()) no_grad([&] { p.copy_(ramp(p.shape())); });
  require_values(layer(ramp({2, 2}), ramp({2, 3})), {2, 2}, {-0.806, -0.058, -0.552, -0.362});
  require_values(layer(ramp({2}), ramp({3})), {2}, {-0.806, -0.058});
  Tensor x1 = ramp({2, 2, 2}), x2 = ramp({2, 2, 3});
  x1.requires_grad_(true);
  const Tensor y = layer(x1, x2);
  require_equal(y, einsum("abi,oij,abj->abo", {x1, layer.weight, x2}) + layer.bias, 1e-12);
  y.sum().backward();
  require_equal(x1.grad(), einsum("oij,abj->abi", {layer.weight, x2}), 1e-12);
  BOOST_TEST(nn::str(layer) ==
             "Bilinear(in1_features=2, in2_features=3, out_features=2, bias=True)");
  require_error<ShapeError>(
      [&] {
        layer(ramp({2, 2}), ramp({1, 3}));
      },
      "Bilinear: expected inputs of shapes (…, 2) and (…, 3), got (2, 2)");
  require_error<ShapeError>([&] { layer(ramp({}), ramp({3})); }, "Bilinear: expected inputs");
  require_error<ValueError>([] { nn::Bilinear(0, 3, 2); }, "in1_features is 0");
}

BOOST_AUTO_TEST_CASE(distances_and_normalisations) {
  const Tensor x = ramp({2, 3}), y = square(x);
  require_values(nn::CosineSimilarity()(x, y), {2}, {-0.9848752, -0.9761871});
  require_values(nn::CosineSimilarity(0)(x, y), {3}, {-0.9754918, -0.9833822, -1});
  require_values(nn::PairwiseDistance(1, 1e-6, true)(x, y), {2, 1}, {1.699997, 0.349999});
  require_values(nn::PairwiseDistance()(x, y), {2}, {1.0140003, 0.2640062});
  require_values(nn::LocalResponseNorm(2, 0.5, 0.5, 2)(ramp({1, 3, 2})), {1, 3, 2},
                 {-0.3481553, -0.280056, -0.207763, -0.1396861, -0.0702728, 0});
  require_values(nn::Softmax2d()(ramp({2, 1, 2})), {2, 1, 2},
                 {0.4501660, 0.4501660, 0.5498340, 0.5498340});
  require_error<ShapeError>([&] { nn::Softmax2d()(x); }, "Softmax2d: expected an input of shape");
  BOOST_TEST(nn::str(nn::LocalResponseNorm(2)) ==
             "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)");
}

BOOST_AUTO_TEST_CASE(dropout_of_channels) {
  manual_seed(2);
  const auto check = [](const Tensor& y, const Shape& kept) {
    // Of each channel all or nothing is left, scaled by two, and some of both.
    const Tensor rows = y.reshape({kept.numel(), -1});
    const Tensor first = rows.narrow(1, 0, 1);
    BOOST_TEST(abs(rows - first).max().item() == 0);
    const double share = eq(first, 2).to(f64).mean().item();
    BOOST_TEST((share > 0.3 && share < 0.7), share);
    BOOST_TEST(logical_or(eq(first, 0), eq(first, 2)).all().item<bool>());
  };
  check(nn::Dropout1d()(ones({8, 16, 3})), {8, 16});
  check(nn::Dropout1d()(ones({64, 3})), {64});
  check(nn::Dropout2d()(ones({8, 16, 3, 2})), {8, 16});
  check(nn::Dropout2d()(ones({8, 16, 3})), {8, 16});
  check(nn::Dropout3d()(ones({8, 16, 3, 2, 2})), {8, 16});
  check(nn::Dropout3d()(ones({64, 3, 2, 2})), {64});
  nn::Dropout2d still;
  still.eval();
  require_equal(still(ones({2, 2, 2, 2})), ones({2, 2, 2, 2}));
  require_error<ShapeError>([] { nn::Dropout2d()(ones({2, 2})); }, "Dropout2d: expected an input");
  require_error<ValueError>([] { nn::Dropout3d(1.5); }, "Dropout3d: p is 1.5");
  BOOST_TEST(nn::str(nn::AlphaDropout(0.2)) == "AlphaDropout(p=0.2, inplace=False)");
}

// What is dropped becomes one number, the rest is scaled, and mean and variance stay.
BOOST_AUTO_TEST_CASE(alpha_dropout_keeps_mean_and_variance) {
  manual_seed(3);
  const Tensor x = randn({200000}), y = nn::AlphaDropout(0.3)(x);
  BOOST_TEST(std::abs(y.mean().item()) < 0.02);
  BOOST_TEST(std::abs(var(y).item() - 1) < 0.02);
  // a alpha (1 - p), with a = ((alpha^2 p + 1) (1 - p))^(-1/2)
  const double dropped = amin(y).item(), a = 1 / std::sqrt((1.7580993 * 1.7580993 * 0.3 + 1) * 0.7);
  const double share = lt(abs(y + a * 1.7580993 * 0.7), 1e-5).to(f64).mean().item();
  BOOST_TEST(std::abs(share - 0.3) < 0.01, share << " " << dropped);
  require_equal(nn::AlphaDropout(1)(ones({3})), zeros({3}));
  require_equal(nn::AlphaDropout(0)(ones({3})), ones({3}));
}

BOOST_AUTO_TEST_CASE(weights_of_losses) {
  const Tensor x = ramp({2, 3}), y = square(x), w = x + 0.6;
  using R = Reduction;
  require_values(mse_loss(x, y, R::mean, w), {}, {0.0922333});
  require_values(mse_loss(x, y, R::sum, w), {}, {0.19369});
  require_values(mse_loss(x, y, R::none, w), {2, 3},
                 {0.05625, 0.06272, 0.04563, 0.02304, 0.00605, 0});
  require_values(l1_loss(x, y, R::mean, w), {}, {0.2166667});
  require_values(l1_loss(x, y, R::sum, w), {}, {0.455});
  require_values(huber_loss(x, y, R::mean, 0.3, w), {}, {0.0131242});
  require_values(huber_loss(x, y, R::sum, 0.3, w), {}, {0.078745});
  require_values(huber_loss(x, y, R::none, 0.3, w), {2, 3},
                 {0.018, 0.0246, 0.0216, 0.01152, 0.003025, 0});
  require_error<ShapeError>(
      [&] {
        mse_loss(x, y, R::mean, w.reshape({3, 2}));
      },
      "mse_loss: the weight has shape (3, 2), but must have that of the input");
}

BOOST_AUTO_TEST_SUITE_END()
