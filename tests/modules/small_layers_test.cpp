// Small layers, and weights of losses, against values that PyTorch gives.
#include <tenon/tenon.h>

#include "modules/ramp.h"
#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(small_layers_test)

using namespace tenon;
using namespace tenon::test;

namespace {

const TensorOptions in_f64{.dtype = f64};

Tensor longs(const std::vector<int64_t>& values) { return tensor(values); }
void require_close(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  test::require_close(found.to_vector<double>(), expected, tolerance, tolerance);
}

// A table of sines whose row 1 is padding.
nn::EmbeddingBag bag_of(const std::string& mode, bool include_last_offset = false) {
  nn::EmbeddingBag bag(6, 2,
                       {.mode = mode,
                        .include_last_offset = include_last_offset,
                        .padding_idx = -5,
                        .tensor = in_f64});
  no_grad([&] { bag.weight.copy_(sin(arange(12, f64)).reshape({6, 2})); });
  return bag;
}

}  // namespace

// The numbers are PyTorch 2.15's.
BOOST_AUTO_TEST_CASE(bags_of_embeddings) {
  struct Case {
    const char* mode;
    std::vector<double> in_a_row, gradient, in_rows, gradient_of_rows;
  };
  const Case cases[] = {
      {"sum",
       {0.2325557513, -0.5468057894, 0, 0, 0, 0.8414709848, -0.5440211109, -0.9999902066},
       {-0.1, 0, 0, 0, -0.5, -0.4, 0, 0, -0.5, -0.4, 0.1, 0.2},
       {-0.7568024953, -0.1174532899, -1.36745772, -1.3429938144},
       {-0.5, -0.4, 0, 0, -0.5, -0.4, -0.3, -0.2, 0, 0, -0.6, -0.4}},
      {"mean",
       {0.1162778757, -0.2734028947, 0, 0, 0, 0.8414709848, -0.5440211109, -0.9999902066},
       {-0.1, 0, 0, 0, -0.25, -0.2, 0, 0, -0.25, -0.2, 0.1, 0.2},
       {-0.3784012477, -0.0587266449, -0.45581924, -0.4476646048},
       {-0.25, -0.2, 0, 0, -0.25, -0.2, -0.1, -0.2 / 3, 0, 0, -0.2, -0.4 / 3}},
      {"max",
       {0.9893582466, 0.4121184852, 0, 0, 0, 0.8414709848, -0.5440211109, -0.9999902066},
       {-0.1, 0, 0, 0, 0, 0, 0, 0, -0.5, -0.4, 0.1, 0.2},
       {0, 0.8414709848, -0.2794154982, 0.6569865987},
       {-0.5, -0.4, 0, 0, 0, 0, -0.3, -0.2, 0, 0, 0, 0}},
  };
  for (auto& c : cases) {
    auto bag = bag_of(c.mode);
    const Tensor y = bag(longs({4, 2, 1, 0, 1, 5}), longs({0, 2, 2, 5}));
    require_close(y, c.in_a_row, 1e-9);
    (y * ramp({4, 2})).sum().backward();
    require_close(bag.weight.grad(), c.gradient, 1e-9);
    bag.zero_grad();
    const Tensor z = bag(longs({0, 2, 1, 5, 5, 3}).reshape({2, 3}));
    require_close(z, c.in_rows, 1e-9);
    (z * ramp({2, 2})).sum().backward();
    require_close(bag.weight.grad(), c.gradient_of_rows, 1e-9);
  }
}

BOOST_AUTO_TEST_CASE(bags_with_weights_of_their_own) {
  auto bag = bag_of("sum", true);
  Tensor weights = tensor({0.5, -1, 2, 3, 4, 5}, f64).requires_grad_();
  const Tensor y = bag(longs({4, 2, 1, 0, 1, 5}), longs({0, 2, 5, 6}), weights);
  require_close(y, {1.2514816186, 1.1649835173, 0, 2.5244129544, -2.7201055544, -4.9999510328},
                1e-9);
  (y * ramp({3, 2})).sum().backward();
  require_close(bag.weight.grad(), {-0.9, -0.6, 0, 0, 0.5, 0.4, 0, 0, -0.25, -0.2, -0.5, 0}, 1e-9);
  require_close(weights.grad(), {-0.6595265174, 0.7619709575, 0, -0.168294197, 0, 0.0544021111},
                1e-9);
}

BOOST_AUTO_TEST_CASE(indices_behind_the_last_offset_are_in_no_bag) {
  for (const char* mode : {"sum", "mean", "max"}) {
    auto bag = bag_of(mode, true);
    const Tensor y = bag(longs({4, 2, 3, 0, 5}), longs({0, 2, 3})),
                 same = bag(longs({4, 2, 3}), longs({0, 2, 3}));
    BOOST_TEST(y.to_vector<double>() == same.to_vector<double>());
    y.sum().backward();
    BOOST_TEST(bag.weight.grad()[5].to_vector<double>() == std::vector<double>(2, 0.0));
  }
}

BOOST_AUTO_TEST_CASE(bags_that_are_refused_or_empty) {
  BOOST_TEST(nn::str(bag_of("sum")) == "EmbeddingBag(6, 2, mode='sum', padding_idx=1)");
  BOOST_TEST(nn::str(nn::EmbeddingBag(6, 2)) == "EmbeddingBag(6, 2, mode='mean')");
  BOOST_TEST(bag_of("max").named_parameters()[0].name == "weight");
  const Tensor none = longs({}), start = longs({0, 0});
  for (const char* mode : {"sum", "mean", "max"})
    BOOST_TEST((bag_of(mode)(none, start).to_vector<double>() == std::vector<double>(4, 0.0)));
  require_error<ValueError>([] { bag_of("min"); }, "EmbeddingBag: mode is \"min\"");
  require_error<ValueError>([] { nn::EmbeddingBag(4, 2, {.padding_idx = 4}); }, "padding_idx is 4");
  const nn::EmbeddingBag bag = bag_of("mean");
  require_error<ValueError>([&] { bag(longs({1, 2})); }, "(2,) need offsets");
  require_error<ValueError>([&] { bag(longs({1}).reshape({1, 1}), start); }, "no offsets");
  require_error<ValueError>(
      [&] {
        bag(longs({1, 2}), start, ones({2}, f64));
      },
      "need the mode \"sum\"");
  require_error<ShapeError>([&] { bag_of("sum")(longs({1, 2}), start, ones({3}, f64)); }, "(3,)");
  require_error<DTypeError>(
      [&] {
        bag_of("sum")(longs({1, 2}), start, ones({2}, i64));
      },
      "EmbeddingBag: per_sample_weights are i64, but the weight is f64");
  require_error<DTypeError>(
      [&] {
        bag(longs({1, 2}), zeros({1}));
      },
      "EmbeddingBag: offsets are i64 or i32, found f32");
  require_error<ShapeError>([&] { bag(zeros({1, 1, 1}, i64)); }, "(1, 1, 1)");
  require_error<IndexError>([&] { bag(longs({7}), longs({0})).wait(); }, "7");
  for (const char* mode : {"sum", "mean", "max"}) {
    require_error<IndexError>([&] { bag_of(mode)(longs({1, 2}), longs({1})).wait(); }, "-1");
    BOOST_CHECK_NO_THROW(synchronize());  // the error is told once
  }
}

BOOST_AUTO_TEST_CASE(bags_without_any_index_have_a_gradient) {
  for (const char* mode : {"sum", "mean", "max"}) {
    nn::EmbeddingBag bag = bag_of(mode);
    bag(zeros({0}, i64), zeros({3}, i64)).sum().backward();
    require_equal(bag.weight.grad(), zeros_like(bag.weight));
  }
}

// The numbers are those of torch.nn.Embedding and torch.nn.EmbeddingBag.
BOOST_AUTO_TEST_CASE(rows_that_are_looked_up_are_shortened) {
  const Tensor table = tensor({{3, 4}, {0.3, 0.4}, {-6, 8}, {1, 1}}, f64);
  nn::Embedding layer(4, 2, {.max_norm = 2, .tensor = {.dtype = f64}});
  no_grad([&] { layer.weight.copy_(table); });
  const Tensor y = layer(tensor({{0, 1}, {0, 3}}, i64));
  require_values(y, {2, 2, 2}, {1.199999976, 1.599999968, 0.3, 0.4, 1.199999976, 1.599999968, 1, 1},
                 1e-12);
  require_values(layer.weight, {4, 2}, {1.199999976, 1.599999968, 0.3, 0.4, -6, 8, 1, 1}, 1e-12);
  square(y).sum().backward();
  require_values(layer.weight.grad(), {4, 2}, {4.799999904, 6.399999872, 0.6, 0.8, 0, 0, 2, 2},
                 1e-12);
  nn::EmbeddingBag bag(4, 2,
                       {.mode = "sum", .max_norm = 1.5, .norm_type = 1, .tensor = {.dtype = f64}});
  no_grad([&] { bag.weight.copy_(table); });
  const Tensor sums = bag(tensor({0, 2, 2}, i64), tensor({0, 1}, i64));
  require_values(sums, {2, 2}, {0.64285713367, 0.8571428449, -1.28571427653, 1.71428570204}, 1e-10);
  require_values(bag.weight, {4, 2},
                 {0.64285713367, 0.8571428449, 0.3, 0.4, -0.64285713827, 0.85714285102, 1, 1},
                 1e-10);
  for (DType dtype : {f16, bf16}) {
    nn::Embedding half(4, 2, {.max_norm = 2, .tensor = {.dtype = dtype}});
    no_grad([&] { half.weight.copy_(table.to(dtype)); });
    BOOST_TEST(std::abs(norm(half(tensor({0}, i64)).to(f64)).item() - 2) < 0.02);
  }
  BOOST_TEST(nn::str(nn::Embedding(5, 3, {.padding_idx = 1, .max_norm = 1, .norm_type = 1})) ==
             "Embedding(5, 3, padding_idx=1, max_norm=1.0, norm_type=1.0)");
  BOOST_TEST(nn::str(nn::EmbeddingBag(5, 3, {.padding_idx = 2, .max_norm = 1})) ==
             "EmbeddingBag(5, 3, max_norm=1.0, mode='mean', padding_idx=2)");
  require_error<ValueError>([] { nn::Embedding(2, 2, {.max_norm = -1}); },
                            "Embedding: max_norm is -1; it has to be at least 0");
  require_error<ValueError>([] { nn::EmbeddingBag(2, 2, {.norm_type = 0}); },
                            "EmbeddingBag: norm_type is 0; it has to be above 0");
}

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

BOOST_AUTO_TEST_CASE(distances_and_normalizations) {
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
    // A channel is kept as a whole, scaled by two, or dropped as a whole; both occur.
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
