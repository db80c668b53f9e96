// Options of layers, losses, optimizers, initialisers and data that make no sense: NaN, infinite,
// negative or huge. Each is refused where it is given, with a text that names the option, its value
// and what is allowed.
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(options_test)

using namespace tenon;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max(),
                  kMin = std::numeric_limits<int64_t>::min();

struct Case {
  std::function<void()> make;
  std::string part;
};

void require_refused(const std::vector<Case>& cases) {
  for (auto& [make, part] : cases) test::require_error<Error>(make, part);
}

std::vector<Tensor> parameters() { return {ones({2}).requires_grad_()}; }

}  // namespace

// Tables with one case on each line.
// clang-format off
BOOST_AUTO_TEST_CASE(sizes_of_layers) {
  require_refused({
      {[] { nn::Linear(-1, 3); }, "Linear: in_features is -1; it has to be at least 0"},
      {[] { nn::Linear(3, kMin); }, "Linear: out_features is"},
      {[] { nn::Linear(kMax, kMax); }, "more elements than can be addressed"},
      {[] { nn::Linear(1LL << 40, 1LL << 10); }, "cannot allocate"},
      {[] { nn::Conv2d(3, 4, 0); }, "Conv2d: kernel_size is 0; both numbers have to be at least 1"},
      {[] { nn::Conv2d(3, 4, {3, kMax}); }, "Conv2d: kernel_size is (3, 9223372036854775807); both numbers have to be at most 2147483647"},
      {[] { nn::Conv2d(3, 4, {1LL << 31, 1}); }, "kernel_size"},
      {[] { nn::Conv2d(1, 1, {1LL << 30, 1LL << 30}); }, "more elements"},
      {[] { nn::Conv2d(1, 1, {1LL << 30, 1LL << 28}); }, "cannot allocate"},
      {[] { nn::Conv2d(-3, 4, 1); }, "in_channels is -3"},
      {[] { nn::Conv2d(3, 4, 1, {.groups = 0}); }, "groups is 0; it has to be at least 1"},
      {[] { nn::Conv2d(3, 4, 1, {.groups = kMax}); }, "multiple of groups"},
      {[] { nn::Conv2d(3, 4, 1, {.stride = kMax}); }, "stride is 9223372036854775807; both numbers have to be at most"},
      {[] { nn::Conv2d(3, 4, 1, {.padding = {0, kMax}}); }, "padding is (0, 9223372036854775807)"},
      {[] { nn::Conv2d(3, 4, 1, {.padding = -1}); }, "padding is -1; both numbers have to be at least 0"},
      {[] { nn::Conv2d(3, 4, 1, {.dilation = kMax}); }, "dilation is"},
      {[] { nn::MaxPool2d{kMin}; }, "MaxPool2d: kernel_size is"},
      {[] { nn::MaxPool2d(2, {.dilation = kMax}); }, "MaxPool2d: dilation is"},
      {[] { nn::AvgPool2d(2, {.padding = kMax}); }, "AvgPool2d: padding is"},
      {[] { nn::AdaptiveAvgPool2d{kMax}; }, "AdaptiveAvgPool2d: output_size is"},
      {[] { nn::MaxPool1d(0); }, "MaxPool1d: kernel_size is 0; it has to be at least 1"},
      {[] { nn::MaxPool3d({1, kMax, 1}); }, "MaxPool3d: kernel_size is (1, 9223372036854775807, 1); all numbers have to be at most"},
      {[] { nn::AvgPool3d(2, {.padding = -1}); }, "AvgPool3d: padding is -1"},
      {[] { nn::AdaptiveMaxPool3d(0); }, "AdaptiveMaxPool3d: output_size is 0"},
      {[] { nn::LPPool2d(0, 2); }, "LPPool2d: norm_type is 0"},
      {[] { nn::LPPool2d(2, 2, {0, 1}); }, "LPPool2d: stride is (0, 1)"},
      {[] { nn::MaxUnpool2d(2, 0); }, "MaxUnpool2d: stride is 0"},
      {[] { nn::Upsample({}); }, "Upsample: needs either size or scale_factor, found neither"},
      {[] { nn::Upsample({.size = {2, 0}}); }, "Upsample: size is 0; it has to be positive"},
      {[] { nn::Upsample({.scale_factor = {-0.5}}); }, "Upsample: scale_factor is -0.5"},
      {[] { nn::PixelShuffle(0); }, "PixelShuffle: upscale_factor is 0; it has to be positive"},
      {[] { nn::PixelUnshuffle(-2); }, "PixelUnshuffle: downscale_factor is -2"},
      {[] { nn::ChannelShuffle(0); }, "ChannelShuffle: groups is 0"},
      {[] { nn::Embedding(-1, 3); }, "Embedding: num_embeddings is -1"},
      {[] { nn::Embedding(kMax, kMax); }, "more elements"},
      {[] { nn::Embedding(3, 2, {.padding_idx = kMin}); }, "Embedding: padding_idx is"},
      {[] { nn::BatchNorm2d(-1); }, "BatchNorm: num_features is -1"},
      {[] { nn::BatchNorm2d{kMax}; }, "more elements"},
      {[] { nn::LayerNorm(Shape{3, kMin}); }, "LayerNorm: a size in normalized_shape"},
      {[] { nn::Flatten{kMax}(ones({2, 2})); }, "flatten: dim"},
      {[] { nn::Softmax{kMin}(ones({2, 2})); }, "softmax: dim"},
  });
}

BOOST_AUTO_TEST_CASE(numbers_of_layers_and_losses) {
  for (double bad : {kNan, kInfinity, -kInfinity, -1.0}) {
    const std::string shown = std::isnan(bad) ? "nan" : bad == kInfinity ? "inf" : bad == -1 ? "-1" : "-inf";
    require_refused({
        {[&] { nn::Dropout{bad}; }, "Dropout: p is " + shown + "; it has to be a probability, from 0 to 1"},
        {[&] { dropout(ones({2}), bad); }, "dropout: p must lie in [0, 1], found " + shown},
        {[&] { nn::BatchNorm1d(2, {.eps = bad}); }, "BatchNorm: eps is " + shown + "; it has to be finite and at least 0"},
        {[&] { nn::BatchNorm1d(2, {.momentum = bad}); }, "BatchNorm: momentum is " + shown + "; it has to be from 0 to 1"},
        {[&] { nn::LayerNorm(2, {.eps = bad}); }, "LayerNorm: eps is " + shown},
        {[&] { batch_norm(ones({4, 2}), {}, {}, {}, {}, true, bad); }, "batch_norm: momentum must lie in [0, 1], found " + shown},
        {[&] { batch_norm(ones({4, 2}), {}, {}, {}, {}, true, 0.1, bad); }, "batch_norm: eps must be finite and at least 0, found " + shown},
        {[&] { layer_norm(ones({4, 2}), {2}, {}, {}, bad); }, "layer_norm: eps must be finite and at least 0, found " + shown},
        {[&] { nn::CrossEntropyLoss({.label_smoothing = bad}); }, "CrossEntropyLoss: label_smoothing is " + shown},
        {[&] { cross_entropy(ones({1, 2}), zeros({1}, {.dtype = i64}), {.label_smoothing = bad}); }, "label_smoothing must lie in [0, 1]"},
        {[&] { nn::init::xavier_uniform_(ones({2, 2}), bad); }, "xavier_uniform_: gain is " + shown},
        {[&] { nn::init::xavier_normal_(ones({2, 2}), bad); }, "xavier_normal_: gain is " + shown},
        {[&] { nn::init::normal_(ones({2}), 0, bad); }, "normal_"},
        {[&] { nn::init::uniform_(ones({2}), 0, bad); }, "uniform_"},
        {[&] { data::synthetic(1, {.noise = bad}); }, "synthetic: noise has to be finite and at least 0, but is " + shown},
        {[&] { data::to_float(zeros({1, 1}, {.dtype = u8}), {.std = {bad}}); }, "ToFloat: std has to be finite and positive, but is " + shown},
    });
    if (bad == -1) continue;
    require_refused({
        {[&] { nn::init::kaiming_uniform_(ones({2, 2}), {.a = bad}); }, "kaiming_uniform_: a is " + shown},
        {[&] { nn::init::kaiming_normal_(ones({2, 2}), {.a = bad}); }, "kaiming_normal_: a is " + shown},
        {[&] { data::to_float(zeros({1, 1}, {.dtype = u8}), {.mean = {bad}}); }, "ToFloat: mean has to be finite, but is " + shown},
    });
  }
  require_refused({
      {[] { nn::Dropout{1.5}; }, "Dropout: p is 1.5"},
      {[] { nn::GELU("fast"); }, "GELU: approximate is \"fast\""},
  });
}

BOOST_AUTO_TEST_CASE(numbers_of_optimizers) {
  for (double bad : {kNan, kInfinity, -kInfinity, -1.0}) {
    const std::string shown = std::isnan(bad) ? "nan" : bad == kInfinity ? "inf" : bad == -1 ? "-1" : "-inf";
    const std::string rest = " is " + shown + "; it has to be finite and at least 0", decay = " is " + shown + "; it has to be at least 0";
    require_refused({
        {[&] { optim::SGD(parameters(), {.lr = bad}); }, "SGD: lr" + rest},
        {[&] { optim::SGD(parameters(), {.momentum = bad}); }, "SGD: momentum" + rest},
        {[&] { optim::SGD(parameters(), {.weight_decay = bad}); }, "SGD: weight_decay" + rest},
        {[&] { optim::SGD(parameters()).set_lr(bad); }, "SGD: lr" + rest},
        {[&] { optim::Adam(parameters(), {.lr = bad}); }, "Adam: lr" + rest},
        {[&] { optim::Adam(parameters(), {.betas = {bad, 0.9}}); }, "Adam: betas[0]" + decay},
        {[&] { optim::Adam(parameters(), {.betas = {0.9, bad}}); }, "Adam: betas[1]" + decay},
        {[&] { optim::Adam(parameters(), {.eps = bad}); }, "Adam: eps" + rest},
        {[&] { optim::AdamW(parameters(), {.weight_decay = bad}); }, "AdamW: weight_decay" + rest},
    });
    if (bad == -1) continue;
    require_refused({{[&] { optim::SGD(parameters(), {.momentum = 0.9, .dampening = bad}); }, "SGD: dampening is " + shown}});
    for (auto* key : {"state.0.step", "param_groups.0.lr", "param_groups.0.eps"}) {
      optim::Adam adam(parameters());
      auto state = adam.state_dict();
      std::erase_if(state.numbers, [&](auto& n) { return n.first == key; });
      state.numbers.emplace_back(key, bad);
      require_refused({{[&] { adam.load_state_dict(state); }, '"' + std::string(key) + "\" is " + shown + ", which is not a finite number"}});
    }
  }
  for (double bad : {-1.0, 1.5, 1e300}) {
    optim::Adam adam(parameters());
    auto state = adam.state_dict();
    state.numbers.emplace_back("state.0.step", bad);
    require_refused({{[&] { adam.load_state_dict(state); }, "which is not a number of steps"}});
  }
  require_refused({
      {[] { optim::Adam(parameters(), {.betas = {0.9, 1.0}}); }, "betas[1] is 1; it has to be at least 0 and below 1"},
      {[] { optim::SGD(parameters(), {.nesterov = true}); }, "momentum is 0; it has to be above 0 for nesterov"},
  });
}

// clang-format on
BOOST_AUTO_TEST_CASE(options_of_data) {
  data::TensorDataset rows(ones({5, 2}), zeros({5}, {.dtype = i64}));
  auto loader = [&](const data::LoaderOptions& options) {
    return [&rows, options] { data::DataLoader(rows, options); };
  };
  require_refused({
      {loader({.batch_size = 0}), "batch_size has to be at least 1, but is 0"},
      {loader({.batch_size = kMin}), "batch_size has to be at least 1"},
      {loader({.workers = -1}), "workers has to be at least 0, but is -1"},
      {loader({.workers = std::numeric_limits<int>::max()}),
       "workers has to be at most 1024, but is 2147483647"},
      {loader({.prefetch = -1}), "prefetch has to be at least 0"},
      {loader({.prefetch = std::numeric_limits<int>::max()}), "prefetch has to be at most 1024"},
      {[] { data::synthetic(-1); }, "synthetic: count has to be at least 0, but is -1"},
      {[] { data::synthetic(kMax); }, ""},
      {[&] { rows.slice(kMin, kMax); }, "TensorDataset"},
  });
  int64_t batches = 0;
  for (auto& batch : data::DataLoader(rows, {.batch_size = kMax})) batches += batch.size() == 5;
  BOOST_TEST(batches == 1);
}

BOOST_AUTO_TEST_SUITE_END()
