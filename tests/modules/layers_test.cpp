// Each layer against values that PyTorch gives for the same parameters.
#include <tenon/core/ops/loss.h>
#include <tenon/core/random.h>
#include <tenon/modules/activation.h>
#include <tenon/modules/conv.h>
#include <tenon/modules/dropout.h>
#include <tenon/modules/embedding.h>
#include <tenon/modules/flatten.h>
#include <tenon/modules/init.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/loss.h>
#include <tenon/modules/norm.h>
#include <tenon/modules/pool.h>
#include <tenon/modules/sequential.h>

#include "logged.h"
#include "modules/ramp.h"
#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(layers_test)

using namespace tenon;
using namespace tenon::test;

namespace {

const TensorOptions in_f64{.dtype = f64};

}  // namespace

BOOST_AUTO_TEST_CASE(linear) {
  auto layer = filled(nn::Linear(3, 2, {.tensor = in_f64}));
  require_values(layer(ramp({2, 3})), {2, 2}, {0, -0.26, -0.36, -0.35});
  auto plain = filled(nn::Linear(3, 2, {.bias = false, .tensor = in_f64}));
  require_values(plain(ramp({1, 2, 3})), {1, 2, 2}, {0.5, 0.14, 0.14, 0.05});
  require_error<ShapeError>([&] { layer(ramp({2, 4})); }, "(2, 3)");
  require_error<ValueError>([] { nn::Linear(-1, 2); },
                            "Linear: in_features is -1; it has to be at least 0");
}

BOOST_AUTO_TEST_CASE(convolution) {
  Tensor x = ramp({1, 2, 4, 4});
  auto grouped =
      filled(nn::Conv2d(2, 2, 3, {.stride = 2, .padding = 1, .groups = 2}, {.tensor = in_f64}));
  require_values(grouped(x), {1, 2, 2, 2}, {-0.47, -0.31, -0.11, -0.17, 5.13, 8.37, 10.04, 15.5});
  auto dilated =
      filled(nn::Conv2d(2, 1, {2, 1}, {.dilation = 2}, {.bias = false, .tensor = in_f64}));
  require_values(dilated(x), {1, 1, 2, 4}, {-0.58, -0.72, -0.86, -1.0, -1.14, -1.28, -1.42, -1.56});
  require_error<ValueError>([] { nn::Conv2d(3, 4, 3, {.groups = 2}); },
                            "Conv2d: in_channels is 3; it has to be a multiple of groups");
  require_error<ValueError>([] { nn::Conv2d(3, -8, 3); },
                            "Conv2d: out_channels is -8; it has to be at least 0");
  require_error<ValueError>(
      [] {
        nn::Conv2d(3, 4, 3, {.stride = {1, 0}});
      },
      "Conv2d: stride is (1, 0)");
}

BOOST_AUTO_TEST_CASE(pooling) {
  Tensor x = ramp({1, 2, 4, 4});
  require_values(nn::MaxPool2d(3, {.stride = 2, .padding = 1})(x), {1, 2, 2, 2},
                 {0, 0.2, 0.8, 1, 1.6, 1.8, 2.4, 2.6});
  require_values(nn::MaxPool2d(3, {.ceil_mode = true})(x), {1, 2, 2, 2},
                 {0.5, 0.6, 0.9, 1, 2.1, 2.2, 2.5, 2.6});
  require_values(nn::AvgPool2d(3, {.stride = 2, .padding = 1})(x), {1, 2, 2, 2},
                 {-0.1111111, -0.0666667, 0.2333333, 0.5, 0.6, 1.0, 1.3, 2.1}, 1e-6);
  require_values(nn::AvgPool2d(3, {.stride = 2, .padding = 1, .count_include_pad = false})(x),
                 {1, 2, 2, 2}, {-0.25, -0.1, 0.35, 0.5, 1.35, 1.5, 1.95, 2.1});
  require_values(nn::AdaptiveAvgPool2d({1, 3})(x), {1, 2, 1, 3},
                 {0.15, 0.25, 0.35, 1.75, 1.85, 1.95});
}

BOOST_AUTO_TEST_CASE(batch_normalization) {
  nn::BatchNorm1d norm(3, {.tensor = in_f64});
  Tensor x = square(ramp({4, 3}));
  require_values(norm(x), {4, 3},
                 {1.4048027, 0.4682676, -0.3332419, -0.7804459, -1.0926243, -0.9997258, -1.0926243,
                  -0.7804459, -0.3332419, 0.4682676, 1.4048027, 1.6662096});
  require_values(norm.running_mean, {3}, {0.0115, 0.0115, 0.0135});
  require_values(norm.running_var, {3}, {0.90123, 0.90123, 0.90243});
  norm(x * 2);
  require_values(norm.running_mean, {3}, {0.03335, 0.03335, 0.03915});
  BOOST_TEST(norm.num_batches_tracked.item<int64_t>() == 2);
  norm.eval();
  require_values(norm(x), {4, 3},
                 {0.2398301, 0.1402007, 0.0560889, 0.0073615, -0.0258483, -0.0431835, -0.0258483,
                  0.0073615, 0.0560889, 0.1402007, 0.2398301, 0.3539061});
  BOOST_TEST(norm.num_batches_tracked.item<int64_t>() == 2);
  require_error<ShapeError>(
      [&] { norm(ramp({3})); },
      "BatchNorm1d: expected an input of shape (N, C) or (N, C, L), got one of shape (3,)");
  for (bool affine : {true, false}) {
    nn::BatchNorm2d four(4, {.affine = affine, .track_running_stats = affine});
    require_error<ShapeError>(
        [&] {
          four(zeros({2, 3, 5, 5}));
        },
        "BatchNorm2d: was made for num_features=4 channels, got an input of "
        "shape (2, 3, 5, 5), which has 3");
  }
}

BOOST_AUTO_TEST_CASE(batch_normalization_with_plain_averages_or_none) {
  Tensor x = ramp({1, 2, 4, 4});
  nn::BatchNorm2d average(2, {.momentum = std::nullopt, .tensor = in_f64});
  average(x);
  average(x * 3);
  require_values(average.running_mean, {2}, {0.5, 3.7});
  require_values(average.running_var, {2}, {1.1333333, 1.1333333});
  nn::BatchNorm2d none(2, {.affine = false, .track_running_stats = false, .tensor = in_f64});
  none.eval();
  require_values(none(x).select(0, 0).select(1, 0), {2, 4},
                 {-1.6269402, -1.4100148, -1.1930894, -0.9761641, -1.6269402, -1.4100148,
                  -1.1930894, -0.9761641});
  BOOST_TEST(none.state_dict().size() == 0u);
}

BOOST_AUTO_TEST_CASE(layer_normalization) {
  Tensor x = square(ramp({4, 3}));
  require_values(filled(nn::LayerNorm(3, {.tensor = in_f64}))(x), {4, 3},
                 {-1.1354928, -0.3593285, 0.050792, -1.1748262, -0.245754, -0.0107888, 0.0530502,
                  -0.3195563, -0.6921629, 0.0905346, -0.3674188, -0.6787567});
  require_values(
      nn::LayerNorm({2, 3}, {.elementwise_affine = false})(x.reshape({2, 2, 3})).select(0, 0),
      {2, 3}, {1.7787019, 0.7676503, -0.0187232, -0.5804185, -0.9174357, -1.0297748});
}

BOOST_AUTO_TEST_CASE(embedding) {
  auto table = filled(nn::Embedding(4, 2, {.tensor = in_f64}));
  require_values(table(ints({0, 3, 1, 1}, {2, 2})), {2, 2, 2},
                 {-0.5, -0.4, 0.1, 0.2, -0.3, -0.2, -0.3, -0.2});
  nn::Embedding padded(3, 2, {.padding_idx = -1});
  require_values(padded.weight.detach().select(0, 2), {2}, {0, 0});
  padded(ints({2, 0}, {2})).sum().backward();
  require_values(padded.weight.grad(), {3, 2}, {1, 1, 0, 0, 0, 0});
  require_error<ValueError>([] { nn::Embedding(3, 2, {.padding_idx = 3}); },
                            "Embedding: padding_idx is 3");
}

BOOST_AUTO_TEST_CASE(activations) {
  Tensor x = doubles({-2, -0.5, 0, 1, 3}, {5});
  require_values(nn::ReLU()(x), {5}, {0, 0, 0, 1, 3});
  require_values(nn::Sigmoid()(x), {5}, {0.1192029, 0.3775407, 0.5, 0.7310586, 0.9525741});
  require_values(nn::Tanh()(x), {5}, {-0.9640276, -0.4621172, 0, 0.7615942, 0.9950548});
  require_values(nn::GELU()(x), {5}, {-0.0455003, -0.1542688, 0, 0.8413447, 2.9959503});
  require_values(nn::GELU("tanh")(x), {5}, {-0.0454023, -0.154286, 0, 0.841192, 2.9963626});
  require_values(nn::SiLU()(x), {5}, {-0.2384058, -0.1887703, 0, 0.7310586, 2.8577224});
  require_values(nn::Softmax(0)(x), {5}, {0.0055136, 0.0247103, 0.0407404, 0.1107438, 0.818292});
  require_values(nn::LogSoftmax(-1)(x), {5},
                 {-5.2005361, -3.7005361, -3.2005361, -2.2005361, -0.2005361});
  require_error<ValueError>([] { nn::GELU("exact"); }, "GELU: approximate is \"exact\"");
}

BOOST_AUTO_TEST_CASE(more_activations) {
  const Tensor x = doubles({-2, -0.5, 0, 1, 3}, {5}), pairs = doubles({1, 2, 0, 0}, {1, 4});
  require_values(nn::ELU(2)(x), {5}, {-1.7293294, -0.7869387, 0, 1, 3});
  require_values(nn::SELU()(x), {5}, {-1.5201665, -0.6917582, 0, 1.050701, 3.152103});
  require_values(nn::CELU(2)(x), {5}, {-1.2642411, -0.4423984, 0, 1, 3});
  require_values(nn::LeakyReLU(0.5)(x), {5}, {-1, -0.25, 0, 1, 3});
  require_values(nn::Softplus(2, 4)(x), {5}, {0.0090750, 0.1566308, 0.3465736, 1.0634640, 3});
  require_values(nn::LogSigmoid()(x), {5},
                 {-2.1269280, -0.9740770, -0.6931472, -0.3132617, -0.0485874});
  require_values(nn::Mish()(x), {5}, {-0.2525015, -0.2207438, 0, 0.8650984, 2.9865350});
  require_values(nn::Hardsigmoid()(x), {5}, {0.1666667, 0.4166667, 0.5, 0.6666667, 1});
  require_values(nn::Hardswish()(x), {5}, {-0.3333333, -0.2083333, 0, 0.6666667, 3});
  require_values(nn::Hardtanh(-1, 2)(x), {5}, {-1, -0.5, 0, 1, 2});
  require_values(nn::ReLU6()(x * 4), {5}, {0, 0, 0, 4, 6});
  require_values(nn::Hardshrink(0.5)(x), {5}, {-2, 0, 0, 1, 3});
  require_values(nn::Softshrink(0.5)(x), {5}, {-1.5, 0, 0, 0.5, 2.5});
  require_values(nn::Threshold(0, 7)(x), {5}, {7, 7, 7, 1, 3});
  require_values(nn::Tanhshrink()(x), {5}, {-1.0359724, -0.0378828, 0, 0.2384058, 2.0049452});
  require_values(nn::Softsign()(x), {5}, {-0.6666667, -0.3333333, 0, 0.5, 0.75});
  require_values(nn::GLU()(pairs), {1, 2}, {0.5, 1});
  require_values(nn::Softmin(0)(x * -1), {5},
                 {0.0055136, 0.0247103, 0.0407404, 0.1107438, 0.818292});
  nn::PReLU slope(1, 0.25, {.dtype = f64});
  require_values(slope(x), {5}, {-0.5, -0.125, 0, 1, 3});
  slope(x).sum().backward();
  require_values(slope.weight.grad(), {1}, {-2.5});
  BOOST_TEST(slope.state_dict().contains("weight"));
  BOOST_TEST(nn::str(nn::PReLU(3)) == "PReLU(num_parameters=3)");
  BOOST_TEST(nn::str(nn::Softplus()) == "Softplus(beta=1.0, threshold=20.0)");
  BOOST_TEST(nn::str(nn::GLU()) == "GLU(dim=-1)");
  require_error<ValueError>([] { nn::PReLU(0); }, "PReLU: num_parameters is 0");
}

BOOST_AUTO_TEST_CASE(losses) {
  Tensor logits = square(ramp({3, 4}));
  Tensor target = ints({0, 3, -100}, {3});
  require_values(nn::CrossEntropyLoss()(logits, target), {}, {1.3179183});
  const CrossEntropyOptions options = {.reduction = Reduction::sum, .label_smoothing = 0.1};
  require_values(nn::CrossEntropyLoss(options)(logits, target), {},
                 {cross_entropy(logits, target, options).item()});
  nn::CrossEntropyLoss weighted(
      {.weight = doubles({1, 2, 3, 4}, {4}), .reduction = Reduction::sum, .label_smoothing = 0.1});
  require_values(weighted(logits, target), {}, {6.7495119});
  BOOST_TEST(weighted.state_dict().contains("weight"));
  nn::CrossEntropyLoss each({.reduction = Reduction::none, .ignore_index = 0});
  require_values(each(logits, ints({0, 3, 2}, {3})), {3}, {0, 1.3614074, 1.3564414});
  Tensor x = square(ramp({4, 3}));
  require_values(nn::MSELoss()(x, x * 0.5), {}, {0.0067792});
  require_values(nn::MSELoss(Reduction::sum)(x, x * 0.5), {}, {0.08135});
}

BOOST_AUTO_TEST_CASE(losses_as_layers_are_the_functions) {
  const Tensor x = square(ramp({4, 3})) + 0.1, y = x * 0.5, signs = doubles({1, -1, 1, -1}, {4});
  const Tensor labels = ints({0, 2, 1, 0}, {4}), weight = doubles({1, 2, 3}, {3});
  auto same = [](const Tensor& a, const Tensor& b) { require_values(a, {}, {b.item<double>()}); };
  same(nn::L1Loss()(x, y), l1_loss(x, y));
  same(nn::NLLLoss({.weight = weight})(x, labels), nll_loss(x, labels, {.weight = weight}));
  same(nn::BCELoss()(y, y), binary_cross_entropy(y, y));
  same(nn::BCEWithLogitsLoss({.pos_weight = weight})(x, y),
       binary_cross_entropy_with_logits(x, y, {.pos_weight = weight}));
  same(nn::KLDivLoss(Reduction::batchmean)(x, y), kl_div(x, y, Reduction::batchmean));
  same(nn::HuberLoss(Reduction::sum, 0.1)(x, y), huber_loss(x, y, Reduction::sum, 0.1));
  same(nn::SmoothL1Loss(Reduction::sum, 0.1)(x, y), smooth_l1_loss(x, y, Reduction::sum, 0.1));
  same(nn::PoissonNLLLoss()(x, y), poisson_nll_loss(x, y));
  same(nn::GaussianNLLLoss()(x, y, x), gaussian_nll_loss(x, y, x));
  same(nn::HingeEmbeddingLoss()(x.select(1, 0), signs),
       hinge_embedding_loss(x.select(1, 0), signs));
  same(nn::MarginRankingLoss(0.3)(x.select(1, 0), y.select(1, 1), signs),
       margin_ranking_loss(x.select(1, 0), y.select(1, 1), signs, 0.3));
  same(nn::TripletMarginLoss({.swap = true})(x, y, x * 0.7),
       triplet_margin_loss(x, y, x * 0.7, {.swap = true}));
  same(nn::CosineEmbeddingLoss()(x, y - 0.2, signs), cosine_embedding_loss(x, y - 0.2, signs));
  same(nn::MultiMarginLoss({.p = 2})(x, labels), multi_margin_loss(x, labels, {.p = 2}));
  same(nn::SoftMarginLoss()(x.select(1, 0), signs), soft_margin_loss(x.select(1, 0), signs));
  same(nn::MultiLabelMarginLoss()(x, ints({0, 1, -1, 2, -1, 0, -1, 0, 0, 0, 1, 2}, {4, 3})),
       multilabel_margin_loss(x, ints({0, 1, -1, 2, -1, 0, -1, 0, 0, 0, 1, 2}, {4, 3})));
  same(nn::MultiLabelSoftMarginLoss(weight)(x, y), multilabel_soft_margin_loss(x, y, weight));
  const Tensor steps = ints({4}, {1}), one = ints({1}, {1}), row = ints({2}, {1, 1});
  same(nn::CTCLoss({.blank = 1})(x.unsqueeze(1), row, steps, one),
       ctc_loss(x.unsqueeze(1), row, steps, one, {.blank = 1}));
  nn::BCEWithLogitsLoss weighted({.weight = weight, .pos_weight = weight});
  BOOST_TEST(weighted.state_dict().contains("pos_weight"));
  require_error<ValueError>([] { nn::HuberLoss(Reduction::mean, 0); }, "HuberLoss: delta is 0");
  require_error<ValueError>([] { nn::SmoothL1Loss(Reduction::mean, -1); },
                            "SmoothL1Loss: beta is -1");
  require_error<ValueError>([] { nn::MultiMarginLoss({.p = 3}); }, "MultiMarginLoss: p is 3");
}

BOOST_AUTO_TEST_CASE(a_loss_that_broadcasts_is_warned_of_once) {
  const Tensor column = ones({4, 1}), row = ones({4});
  const std::string text = logged([&] {
    for (int i = 0; i < 3; ++i) mse_loss(column, row), nn::MSELoss()(column, row);
    mse_loss(row, row);
  });
  BOOST_TEST(text.starts_with("[tenon] warning: mse_loss: the target has shape (4,), but the input "
                              "(4, 1); they are broadcast to (4, 4)"),
             text);
  BOOST_TEST(text.find('\n') == text.size() - 1, text);
  BOOST_TEST(logged([&] { mse_loss(row, column); }).find("shape (4, 1), but the input (4,)") !=
             std::string::npos);
  BOOST_TEST(logged([&] { l1_loss(column, row); }).find("l1_loss: ") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(dropout_and_reshaping) {
  nn::Dropout drop(0.5);
  Tensor x = ones({1000});
  double kept = 0;
  for (float v : drop(x).to_vector<float>()) {
    BOOST_TEST_REQUIRE((v == 0 || v == 2));
    kept += v != 0;
  }
  BOOST_TEST((kept > 400 && kept < 600));
  drop.eval();
  require_equal(drop(x), x);
  require_error<ValueError>([] { nn::Dropout(1.5); },
                            "Dropout: p is 1.5; it has to be a probability, from 0 to 1");
  BOOST_TEST(nn::Flatten()(ones({2, 3, 4})).shape() == (Shape{2, 12}));
  BOOST_TEST(nn::Flatten(0, 1)(ones({2, 3, 4})).shape() == (Shape{6, 4}));
  BOOST_TEST(nn::Identity()(x).is_same(x));
}

BOOST_AUTO_TEST_CASE(sequential) {
  nn::Sequential net(filled(nn::Linear(3, 2, {.tensor = in_f64})), nn::ReLU());
  Tensor x = ramp({2, 3});
  require_values(net(x), {2, 2}, {0, 0, 0, 0});
  net[1] = nn::Identity();
  require_values(net(x), {2, 2}, {0, -0.26, -0.36, -0.35});
  net.add("last", nn::Tanh());
  BOOST_TEST(net.size() == 3u);
  BOOST_TEST(net[-1].as<nn::Tanh>() != nullptr);
  BOOST_TEST(nn::Sequential()(x).is_same(x));
  nn::Sequential named({{"hidden", nn::Linear(3, 2)}, {"act", nn::ReLU()}});
  BOOST_TEST(named.named_parameters()[0].name == "hidden.weight");
  require_error<IndexError>([&] { net[3]; }, "Sequential: index 3 is out of range for 3 modules");
  require_error<ValueError>([&] { net.add("last", nn::Tanh()); },
                            "there is a module \"last\" already");
  require_error<ValueError>([&] { net.add("a.b", nn::Tanh()); }, "\"a.b\" cannot name a module");
  nn::Sequential loss{nn::MSELoss()};
  require_error<ValueError>([&] { loss(x); }, "the forward of MSELoss does not take one tensor");
}

BOOST_AUTO_TEST_CASE(module_list) {
  nn::ModuleList layers;
  for (int i = 0; i < 3; ++i) layers.append(filled(nn::Linear(2, 2, {.tensor = in_f64})));
  Tensor x = ramp({1, 2}), y = x;
  for (auto& layer : layers) y = layer(y);
  Tensor z = x;
  for (int i = 0; i < 3; ++i) z = filled(nn::Linear(2, 2, {.tensor = in_f64}))(z);
  require_equal(y, z);
  BOOST_TEST(layers.named_parameters()[5].name == "2.bias");
}

BOOST_AUTO_TEST_CASE(parameters_start_as_pytorch_starts_them) {
  manual_seed(1);
  auto range = [](const Tensor& t, double bound) {
    auto values = t.to_vector<double>();
    double largest = 0, square = 0;
    for (double v : values) largest = std::max(largest, std::abs(v)), square += v * v;
    BOOST_TEST(largest <= bound);
    BOOST_TEST(largest > 0.95 * bound);
    BOOST_TEST(std::abs(std::sqrt(square / static_cast<double>(values.size())) -
                        bound / std::sqrt(3.0)) < 0.05 * bound);
  };
  nn::Linear fc(100, 200);
  range(fc.weight, 0.1);
  range(fc.bias, 0.1);
  nn::Conv2d conv(8, 64, 5, {.groups = 2});
  range(conv.weight, 0.1);
  BOOST_TEST(fc.weight.requires_grad());
  BOOST_TEST(fc.weight.is_leaf());
  nn::Linear none(0, 3);
  require_values(none.bias.detach(), {3}, {0, 0, 0});
}

BOOST_AUTO_TEST_CASE(initialisers) {
  manual_seed(2);
  Tensor w = zeros({300, 200, 1, 2}, {.requires_grad = true});
  auto std_of = [&] {
    double square = 0;
    for (double v : w.to_vector<double>()) square += v * v;
    return std::sqrt(square / static_cast<double>(w.numel()));
  };
  auto largest = [&] {
    double most = 0;
    for (double v : w.to_vector<double>()) most = std::max(most, std::abs(v));
    return most;
  };
  auto near = [](double a, double b) { return std::abs(a - b) < 0.02 * b; };
  auto fans = nn::init::calculate_fans(w);
  BOOST_TEST(fans.in == 400);
  BOOST_TEST(fans.out == 600);
  nn::init::xavier_uniform_(w);
  BOOST_TEST(near(largest(), std::sqrt(6.0 / 1000)));
  nn::init::xavier_normal_(w, 2);
  BOOST_TEST(near(std_of(), 2 * std::sqrt(2.0 / 1000)));
  nn::init::kaiming_uniform_(w, {.a = std::sqrt(5.0)});
  BOOST_TEST(near(largest(), 1 / std::sqrt(400.0)));
  nn::init::kaiming_normal_(
      w, {.mode = nn::init::Fan::out, .nonlinearity = nn::init::Nonlinearity::relu});
  BOOST_TEST(near(std_of(), std::sqrt(2.0 / 600)));
  nn::init::constant_(w, 3);
  BOOST_TEST(largest() == 3);
  nn::init::ones_(w);
  BOOST_TEST(largest() == 1);
  nn::init::zeros_(w);
  BOOST_TEST(largest() == 0);
  BOOST_TEST(w.is_leaf());
  BOOST_TEST(nn::init::calculate_gain(nn::init::Nonlinearity::leaky_relu, 0) == std::sqrt(2.0));
  BOOST_TEST(nn::init::calculate_gain(nn::init::Nonlinearity::tanh) == 5.0 / 3);
  require_error<ShapeError>([] { nn::init::xavier_normal_(ones({3})); },
                            "a weight of shape (3,) has no fan-in and fan-out");
}

BOOST_AUTO_TEST_SUITE_END()
