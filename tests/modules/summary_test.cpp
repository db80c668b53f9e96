// Summaries of models.
#include <tenon/tenon.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(summary_test)

using namespace tenon;
using namespace tenon::test;

namespace {

struct Net : nn::Module<Net> {
  nn::Conv2d conv{1, 4, 3, {.padding = 1}};
  nn::BatchNorm2d norm{4};
  nn::Linear fc{4, 4};
  nn::Dropout dropout{0.5};
  nn::Linear unused{2, 3};
  Tensor forward(const Tensor& x) {
    const Tensor y = norm(conv(x)).mean({2, 3});
    return dropout(fc(fc(y)));
  }
};

const nn::LayerSummary& layer(const nn::Summary& summary, const std::string& name) {
  for (auto& l : summary.layers)
    if (l.name == name) return l;
  throw std::out_of_range(name);
}

}  // namespace

BOOST_AUTO_TEST_CASE(shapes_parameters_and_costs) {
  Net net;
  net.fc.requires_grad_(false);
  const auto s = nn::summary(net, ones({2, 1, 5, 6}));
  BOOST_TEST(s.layers.size() == 6u);
  const auto &conv = layer(s, "conv"), &fc = layer(s, "fc"), &unused = layer(s, "unused");
  BOOST_TEST((conv.type == "Conv2d" && *conv.output == Shape{2, 4, 5, 6}));
  BOOST_TEST(conv.parameters == 4 * 9 + 4);
  BOOST_TEST(conv.flops == 2 * 9 * 2 * 4 * 5 * 6);
  BOOST_TEST(conv.output_bytes == 2 * 4 * 5 * 6 * 4);
  BOOST_TEST(fc.calls == 2);
  BOOST_TEST(fc.flops == 2 * (2 * 4 * 4 * 2));
  BOOST_TEST((fc.parameters == 20 && fc.trainable == 0));
  BOOST_TEST((unused.calls == 0 && !unused.output));
  BOOST_TEST(s.parameters == net.num_parameters());
  BOOST_TEST(s.trainable == s.parameters - 20);
  BOOST_TEST(s.parameter_bytes == 4 * s.parameters);
  BOOST_TEST(s.flops == conv.flops + fc.flops);
  BOOST_TEST((*layer(s, "").output == Shape{2, 4} && !layer(s, "").is_leaf));
}

// It runs in eval mode, and leaves the model as it was.
BOOST_AUTO_TEST_CASE(the_model_stays_as_it_was) {
  Net net;
  net.norm.eval();
  nn::summary(net, ones({2, 1, 5, 6}));
  BOOST_TEST((net.dropout.training && !net.norm.training));
  BOOST_TEST(net.norm.num_batches_tracked.item<int>() == 0);
  require_error<ShapeError>([&] { nn::summary(net, ones({2, 3, 5, 6})); }, "conv");
  BOOST_TEST(net.dropout.training);
  net(ones({2, 1, 5, 6})).sum().backward();  // nobody watches any more
}

BOOST_AUTO_TEST_CASE(layers_that_return_several_tensors) {
  struct Reader : nn::Module<Reader> {
    nn::LSTM lstm{3, 4};
    nn::GRU gru{4, 2};
    Tensor forward(const Tensor& x) { return gru(std::get<0>(lstm(x))).first; }
  };
  Reader reader;
  const auto summary = nn::summary(reader, ones({5, 2, 3}));
  BOOST_CHECK((layer(summary, "lstm").output == Shape{5, 2, 4}));
  BOOST_CHECK((layer(summary, "gru").output == Shape{5, 2, 2}));
  BOOST_TEST(layer(summary, "lstm").calls == 1);
}

// A multiplication and an addition for each weight and each step, and for attention two products
// more.
BOOST_AUTO_TEST_CASE(products_of_recurrent_layers_attention_and_bilinear) {
  nn::LSTM lstm(3, 4, 2, {.bidirectional = true});
  const int64_t weights = 2 * (16 * 3 + 16 * 4) + 2 * (16 * 8 + 16 * 4);
  BOOST_TEST(nn::summary(lstm, ones({5, 2, 3})).flops == 2 * weights * 5 * 2);
  nn::GRU gru(3, 4, {.batch_first = true});
  BOOST_TEST(nn::summary(gru, ones({5, 2, 3})).flops == 2 * (12 * 3 + 12 * 4) * 5 * 2);
  nn::RNN rnn(3, 4);
  BOOST_TEST(nn::summary(rnn, ones({5, 3})).flops == 2 * (4 * 3 + 4 * 4) * 5);
  nn::LSTMCell cell(3, 4);
  BOOST_TEST(nn::summary(cell, ones({6, 3})).flops == 2 * (16 * 3 + 16 * 4) * 6);
  nn::MultiheadAttention attention(8, 2);
  const Tensor x = ones({5, 3, 8});
  const int64_t projections = 5 * 3 * 4 * 8 * 8, products = 2 * 3 * 5 * 5 * 8;
  BOOST_TEST(nn::summary(attention, x, x, x).flops == 2 * (projections + products));
  nn::MultiheadAttention first(8, 2, {.batch_first = true});
  BOOST_TEST(nn::summary(first, x.transpose(0, 1), x.transpose(0, 1), x.transpose(0, 1)).flops ==
             2 * (projections + products));
  nn::Bilinear bilinear(3, 4, 5);
  BOOST_TEST(nn::summary(bilinear, ones({7, 3}), ones({7, 4})).flops == 2 * 7 * 5 * (3 * 4 + 3));
}

BOOST_AUTO_TEST_CASE(a_table) {
  nn::Sequential net(nn::Linear(1000, 2), nn::ReLU());
  BOOST_TEST(nn::summary(net, ones({3, 1000})).str() ==
             "Layer (type)  Output  Parameters   FLOPs\n"
             "Sequential    (3, 2)           0       0\n"
             "0 (Linear)    (3, 2)       2,002  12,000\n"
             "1 (ReLU)      (3, 2)           0       0\n"
             "Parameters: 2,002 (7.8 KiB), trainable: 2,002\n"
             "FLOPs: 12,000\n"
             "Outputs of the layers: 48 B\n");
}

BOOST_AUTO_TEST_SUITE_END()
