// Transformers against values and gradients that PyTorch gives for the same parameters and masks.
#include <tenon/tenon.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(transformer_test)

using namespace tenon;
using namespace tenon::test;

namespace {

const TensorOptions in_f64{.dtype = f64};

// sin(0.7 i + phase) / 2
Tensor wave(const Shape& shape, double phase) {
  return (sin(arange(0, static_cast<double>(shape.numel()), 1, in_f64) * 0.7 + phase) * 0.5)
      .reshape(shape);
}

template <class M>
M filled(M module) {
  double phase = 0;
  for (Tensor& p : module.parameters())
    no_grad([&] { p.copy_(wave(p.shape(), phase)); }), phase += 1;
  return module;
}

// The result, and of each input and parameter the sum of its gradient, weighted.
template <class M, class Call>
void require_as_in_pytorch(M& model, std::vector<Tensor> leaves, Call call,
                           const std::vector<double>& result,
                           const std::vector<double>& gradients) {
  for (Tensor& x : leaves) x.requires_grad_(true);
  const Tensor y = call();
  require_values(y, y.shape(), result);
  (y * wave(y.shape(), 3)).sum().backward();
  for (Tensor& p : model.parameters()) leaves.push_back(p);
  std::vector<double> found;
  for (Tensor& leaf : leaves) found.push_back((leaf.grad() * wave(leaf.shape(), 3)).sum().item());
  require_close(found, gradients, 1e-6, 1e-8, "gradients");
}

const Tensor padding = bools({0, 0, 1, 0, 0, 0}, {2, 3});

}  // namespace

BOOST_AUTO_TEST_CASE(an_encoder_layer_with_masks_of_both_kinds) {
  auto layer = filled(
      nn::TransformerEncoderLayer(4, 2, {.dim_feedforward = 6, .dropout = 0, .tensor = in_f64}));
  const Tensor x = wave({3, 2, 4}, 1);
  const Tensor causal = nn::Transformer::generate_square_subsequent_mask(3, in_f64);
  require_as_in_pytorch(
      layer, {x},
      [&] {
        return layer(
            x, nn::TransformerEncoderMasks{.src_mask = causal, .src_key_padding_mask = padding});
      },
      {-0.844362611, -0.479200246, 0.622018603,  0.240389524,  -0.923981284, -0.191389201,
       0.463509716,  0.248443857,  -0.765601846, -0.619824603, 0.681179716,  0.212453485,
       -0.917403282, -0.254085186, 0.493989721,  0.257568084,  -0.674985684, -0.759952103,
       0.698428597,  0.194984566,  -0.907917185, -0.298338939, 0.52019546,   0.257710848},
      {-0.0203829303, 0.0590915552, 0.0178956882, -0.080400194, 0.0284121494, -0.104678654,
       -0.0250780854, -0.0658721366, -0.0557583127, 0.239331167, -0.103664488, -0.441668073,
       0.373166293});
}

BOOST_AUTO_TEST_CASE(a_causal_encoder_layer_that_normalizes_first) {
  auto layer = filled(nn::TransformerEncoderLayer(4, 2,
                                                  {.dim_feedforward = 6,
                                                   .dropout = 0,
                                                   .activation = "gelu",
                                                   .layer_norm_eps = 1e-3,
                                                   .batch_first = true,
                                                   .norm_first = true,
                                                   .bias = false,
                                                   .tensor = in_f64}));
  const Tensor x = wave({2, 3, 4}, 1);
  const nn::TransformerEncoderMasks causal{.is_causal = true};
  require_as_in_pytorch(
      layer, {x}, [&] { return layer(x, causal); },
      {0.465893078,   0.403264635,  0.412942655,  0.0201136362,  -0.350989651, -0.475126597,
       -0.409709663,  -0.24053388,  0.137939851,  0.492775922,   0.444514532,  0.319923813,
       -0.0640047527, -0.338564093, -0.380976325, -0.556589475,  -0.253588245, 0.22348327,
       0.440209417,   0.426492746,  0.277536516,  -0.0407718109, -0.222834593, -0.55606257},
      {2.87967577, 0.0105401037, 0.0773348801, 0.0282818735, 0.0441095119, 0.0160039471,
       -0.021719972});
  const Tensor mask = triu(ones({3, 3}, {.dtype = boolean}), 1);
  require_equal(layer(x, nn::TransformerEncoderMasks{.src_mask = mask, .is_causal = true}),
                layer(x, causal), 1e-12);
  require_equal(layer(x, nn::TransformerEncoderMasks{.src_mask = mask}), layer(x, causal), 1e-12);
}

BOOST_AUTO_TEST_CASE(an_encoder_of_one_sequence) {
  const nn::TransformerEncoderLayer layer(4, 1,
                                          {.dim_feedforward = 6,
                                           .dropout = 0,
                                           .activation = [](const Tensor& x) { return tanh(x); },
                                           .tensor = in_f64});
  auto encoder = filled(nn::TransformerEncoder(layer, 2, nn::LayerNorm(4, {.tensor = in_f64})));
  const Tensor x = wave({3, 4}, 1);
  require_as_in_pytorch(
      encoder, {x}, [&] { return encoder(x); },
      {0.210733168, 0.518445574, 0.667373642, 0.610307128, 0.1573242, 0.538592828, 0.661600328,
       0.61930311, 0.221644718, 0.514842649, 0.667712956, 0.612096186},
      {-0.00430759909,  0.00746680016,   -0.0236201662,  0.0265913869,   -0.0191347454,
       0.00303912659,   0.0330485499,    0.00131622969,  -0.00434726616, -0.0261521067,
       -0.00368213392,  -0.000813755968, -0.00082354674, 0.00640713704,  0.0168999204,
       -9.17722135e-05, -0.00571283909,  -0.0173261372,  -0.2331704,     0.123459357,
       -0.0969061819,   0.152517181,     -0.145931005,   0.0933582444,   -0.0116482005,
       0.280150052,     0.411185751});
}

BOOST_AUTO_TEST_CASE(decoder_layers) {
  for (const bool norm_first : {false, true}) {
    const Tensor x = wave({3, 2, 4}, 1), memory = wave({2, 2, 4}, 2);
    auto layer = filled(nn::TransformerDecoderLayer(
        4, 2, {.dim_feedforward = 6, .dropout = 0, .norm_first = norm_first, .tensor = in_f64}));
    const nn::TransformerDecoderMasks masks{.tgt_mask = wave({3, 3}, 5),
                                            .memory_mask = bools({0, 1, 1, 0, 0, 0}, {3, 2}),
                                            .tgt_key_padding_mask = padding};
    const std::vector<double> y_last = {-0.320617411, -1.05632645,  0.146742747,   -0.016416886,
                                        -0.272662802, -0.870509704, -0.0111949553, -0.172727312,
                                        -0.315766951, -1.05798555,  0.121866704,   -0.0094713518,
                                        -0.296475062, -0.879583796, 0.116488108,   -0.196626893,
                                        -0.303574631, -0.941566878, 0.139444466,   -0.145136769,
                                        -0.300457505, -0.941876063, 0.124735717,   -0.142166333},
                              y_first = {-0.325939479, 0.477873965,  0.70980381,  -0.958316041,
                                         -0.832740985, -0.752089037, 0.153894399, -1.37658356,
                                         -0.661056157, 0.451763674,  0.788894876, -0.505795305,
                                         -0.469734695, -0.609175166, 0.162470568, -1.72157566,
                                         -0.853514128, 0.028118725,  0.819723136, -0.35442818,
                                         -0.247179175, -0.207197376, 0.276261509, -1.74628873},
                              g_last = {-0.226263768, 0.0231851042,   0.162776408,    0.138758533,
                                        -0.300662441, -0.00479400914, -0.0220444201,  0.26559628,
                                        0.146451169,  -0.0617384023,  0.201752423,    -0.0300737114,
                                        0.0307610535, -0.033763623,   -0.00956082463, -0.0618764966,
                                        -0.30564286,  -0.342583368,   -0.168781976,   0.373166293},
                              g_first = {
                                  3.20292724,     0.107080172,   0.0161391217,  -0.0309333708,
                                  0.0217700762,   0.382420387,   0.0268595412,  -0.00583071971,
                                  0.241691527,    0.383084196,   -0.0112796048, -0.00753484638,
                                  -0.0610884177,  0.373166293,   0.0982949207,  -0.0139190025,
                                  0.000878613254, 6.3543251e-05, -0.0713903948, 0.00296886367};
    require_as_in_pytorch(
        layer, {x, memory}, [&] { return layer(x, memory, masks); }, norm_first ? y_first : y_last,
        norm_first ? g_first : g_last);
  }
}

BOOST_AUTO_TEST_CASE(a_whole_transformer) {
  auto model = filled(nn::Transformer(
      4, 2, 1, 2, {.dim_feedforward = 6, .dropout = 0, .batch_first = true, .tensor = in_f64}));
  const Tensor src = wave({2, 5, 4}, 1), tgt = wave({2, 3, 4}, 2);
  const Tensor late = bools({0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, {2, 5});
  require_as_in_pytorch(
      model, {src, tgt},
      [&] {
        return model(
            src, tgt, nn::TransformerEncoderMasks{.src_key_padding_mask = late},
            nn::TransformerDecoderMasks{.memory_key_padding_mask = late, .tgt_is_causal = true});
      },
      {0.520792775, 0.408556443, 0.963206183, 0.457612924, 0.522764761, 0.41437493,
       0.961257212, 0.453601364, 0.522125155, 0.412476219, 0.961939629, 0.454875334,
       0.524228163, 0.418777787, 0.959570737, 0.450685322, 0.523120866, 0.415443731,
       0.960882316, 0.452859915, 0.524019375, 0.418144075, 0.959820518, 0.451104312},
      {-0.000169481248, -0.00574796205,  -3.68591533e-05, -0.000360827551, 0.000671971695,
       -0.000139897279, 8.3453346e-05,   -0.00105083771,  -0.000563284368, -0.000804236591,
       0.00139954225,   -0.000373316812, 0.00199439257,   0.000212602053,  -0.0107231461,
       -0.0148278721,   -0.000315553944, 0.00391788266,   -5.39164697e-06, -0.00272172665,
       -0.000997013419, 0.000222173725,  0.00416856627,   0.00481754683,   0.000736523618,
       -0.00659414907,  0.0143243027,    -0.00678889059,  0.0114247545,    0.00481755848,
       -0.00367145154,  -0.0107297374,   -0.0460629077,   -0.0101255106,   -0.0326506763,
       -0.0433124324,   0.0226326444,    0.0098433633,    0.030633657,     0.0804434325,
       0.00530451101,   -0.0455869181,   0.00291187127,   -0.000721888801, -0.0236139081,
       -0.0160939889,   -0.0239019891,   -0.0455922663,   -0.0562974168,   -0.0145037942,
       -0.133055023,    -0.00367662678,  0.270091883,     0.373166293});
  const auto named = model.named_parameters();
  BOOST_TEST(named.size() == 52);
  BOOST_TEST(named[0].name == "encoder.layers.0.self_attn.in_proj_weight");
  BOOST_TEST(named[12].name == "encoder.norm.weight");
  BOOST_TEST(named[18].name == "decoder.layers.0.multihead_attn.in_proj_weight");
  BOOST_TEST(named[51].name == "decoder.norm.bias");
}

// Dropout acts in training alone, so with all of it nothing is left but what the layers add to.
BOOST_AUTO_TEST_CASE(dropout_acts_in_training) {
  nn::TransformerEncoderLayer layer(4, 2, {.dim_feedforward = 6, .dropout = 1, .norm_first = true});
  const Tensor x = randn({3, 2, 4});
  require_equal(layer(x), x);
  layer.eval();
  BOOST_TEST(abs(layer(x) - x).max().item() > 1e-3);
  require_equal(layer(x), layer(x));
}

BOOST_AUTO_TEST_CASE(layers_of_a_stack_share_nothing_and_an_activation_is_learned) {
  const nn::TransformerEncoderLayer layer(4, 2, {.dim_feedforward = 6, .activation = nn::PReLU()});
  nn::TransformerEncoder encoder(layer, 2);
  const auto names = encoder.named_parameters();
  BOOST_TEST(names.size() == 26);
  BOOST_TEST(names[12].name == "layers.0.activation.weight");
  encoder(randn({3, 2, 4})).sum().backward();
  for (auto& [name, p] : names) BOOST_TEST(p.grad().defined(), name);
  nn::init::constant_(encoder.layers[0].activation.module.as<nn::PReLU>()->weight, 7);
  BOOST_TEST(names[12].tensor.item() == 7);
  BOOST_TEST(names[25].tensor.item() == 0.25);
}

BOOST_AUTO_TEST_CASE(refused) {
  require_error<ValueError>([] { nn::TransformerEncoderLayer(4, 3); },
                            "a multiple of num_heads, 3");
  require_error<ValueError>([] { nn::TransformerEncoderLayer(4, 2, {.activation = "tanh"}); },
                            "activation is \"tanh\"; it has to be \"relu\", \"gelu\"");
  require_error<ValueError>([] { nn::TransformerDecoderLayer(4, 2, {.dropout = 2}); }, "dropout");
  require_error<ValueError>([] { nn::TransformerEncoder(nn::TransformerEncoderLayer(4, 2), -1); },
                            "TransformerEncoder: num_layers is -1; it has to be at least 0");
  nn::TransformerDecoderLayer layer(4, 2);
  require_error<ShapeError>(
      [&] {
        layer(zeros({3, 2, 4}), zeros({3, 1, 4}));
      },
      "found (3, 2, 4), (3, 1, 4)", "multihead_attn");
}

BOOST_AUTO_TEST_SUITE_END()
