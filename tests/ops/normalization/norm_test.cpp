#include <cmath>

#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(normalization)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(batch_norm_gradients) {
  for (Shape shape : {Shape{4, 2}, Shape{3, 2, 3}, Shape{2, 2, 2, 2}})
    for (bool training : {true, false}) {
      std::string name = "batch_norm " + shape.str();
      Tensor x = sample(shape), w = sample({2}, 1), b = sample({2}, 2), mean = sample({2}, 3),
             var = positive({2}, 4);
      auto normalize = [&](const Tensor& input, const Tensor& weight, const Tensor& bias) {
        return batch_norm(input, mean.clone(), var.clone(), weight, bias, training);
      };
      check_gradients([&](auto& v) { return normalize(v[0], v[1], v[2]); }, {x, w, b}, name, 1e-5);
      check_gradients([&](auto& v) { return normalize(v[0], Tensor(), Tensor()); }, {x},
                      name + " without weight", 1e-5);
      check_gradients([&](auto& v) { return normalize(x, v[0], v[1]); }, {w, b},
                      name + " without input", 1e-5);
    }
}

// Older plugins write nothing for an empty batch, and what lies in memory must not be read as
// statistics.
BOOST_AUTO_TEST_CASE(gradients_of_an_empty_batch_are_zero) {
  {
    std::vector<Tensor> spoilt;
    for (int i = 0; i < 64; ++i) spoilt.push_back(full({3}, NAN));
    synchronize();
  }
  Tensor x = zeros({0, 3}).requires_grad_(), w = ones({3}).requires_grad_(),
         b = zeros({3}).requires_grad_();
  batch_norm(x, zeros({3}), ones({3}), w, b, false).sum().backward();
  require_values(w.grad(), {3}, {0, 0, 0});
  require_values(b.grad(), {3}, {0, 0, 0});
  BOOST_CHECK(x.grad().shape() == (Shape{0, 3}));
}

BOOST_AUTO_TEST_CASE(fused_and_composed_gradients_agree) {
  Tensor x = sample({4, 3, 2, 2}).requires_grad_(), w = sample({3}, 1).requires_grad_(),
         b = sample({3}, 2).requires_grad_();
  for (bool training : {true, false}) {
    Tensor loss = weighted_sum(
        batch_norm(x, zeros({3}, {.dtype = f64}), ones({3}, {.dtype = f64}), w, b, training), 0.3);
    std::vector<Tensor> inputs = {x, w, b};
    auto fused = grad(std::span(&loss, 1), inputs, {}, {.retain_graph = true});
    auto composed = grad(std::span(&loss, 1), inputs, {}, {.create_graph = true});
    for (size_t i = 0; i < 3; ++i) require_equal(fused[i], composed[i], 1e-11);
  }
  Tensor w2 = sample({2, 2}, 1).requires_grad_(), b2 = sample({2, 2}, 2).requires_grad_();
  Tensor loss = weighted_sum(layer_norm(x, {2, 2}, w2, b2), 0.3);
  std::vector<Tensor> inputs = {x, w2, b2};
  auto fused = grad(std::span(&loss, 1), inputs, {}, {.retain_graph = true});
  auto composed = grad(std::span(&loss, 1), inputs, {}, {.create_graph = true});
  for (size_t i = 0; i < 3; ++i) require_equal(fused[i], composed[i], 1e-11);
}

BOOST_AUTO_TEST_CASE(batch_norm_keeps_running_statistics) {
  Tensor x = sample({6, 2, 3}), mean = doubles({1, 2}, {2}), var = doubles({3, 4}, {2});
  Tensor batch_mean = tenon::mean(x, {0, 2}), batch_var = tenon::var(x, {0, 2});
  Tensor new_mean = mean * 0.8 + batch_mean * 0.2, new_var = var * 0.8 + batch_var * 0.2;
  uint64_t version = mean.version();
  batch_norm(x, mean, var, Tensor(), Tensor(), true, 0.2);
  require_equal(mean, new_mean, 1e-12);
  require_equal(var, new_var, 1e-12);
  BOOST_CHECK_GT(mean.version(), version);

  Tensor y = batch_norm(x, mean, var, Tensor(), Tensor(), false, 0.2, 0.01);
  require_equal(mean, new_mean, 1e-12);
  require_equal(y, (x - mean.reshape({2, 1})) / sqrt(var + 0.01).reshape({2, 1}), 1e-12);
}

BOOST_AUTO_TEST_CASE(layer_norm_values_and_gradients) {
  Tensor x = sample({2, 3, 4});
  for (Shape normalized : {Shape{4}, Shape{3, 4}, Shape{2, 3, 4}}) {
    Tensor w = sample(normalized, 1), b = sample(normalized, 2);
    Shape dims;
    for (int64_t d = 3 - static_cast<int64_t>(normalized.size()); d < 3; ++d) dims.push_back(d);
    Tensor expected = (x - mean(x, dims, true)) / sqrt(var(x, dims, 0, true) + 1e-5);
    require_equal(layer_norm(x, normalized), expected, 1e-12);
    require_equal(layer_norm(x, normalized, w, b), expected * w + b, 1e-12);
    check_gradients([&](auto& v) { return layer_norm(v[0], normalized, v[1], v[2]); }, {x, w, b},
                    "layer_norm", 1e-5);
    check_gradients([&](auto& v) { return layer_norm(v[0], normalized); }, {x},
                    "layer_norm without weight", 1e-5);
  }
}

BOOST_AUTO_TEST_CASE(large_means_do_not_cancel) {
  Tensor x = (sample({8, 2, 3}) + 1e4).to(f32);
  Tensor y = batch_norm(x, Tensor(), Tensor(), Tensor(), Tensor(), true);
  Tensor expected = batch_norm(x.to(f64), Tensor(), Tensor(), Tensor(), Tensor(), true);
  require_equal(y.to(f64), expected, 5e-3);
  require_equal(layer_norm(x, {3}).to(f64), layer_norm(x.to(f64), {3}), 5e-3);
}

// Statistics that do not come from x leave its values out of its gradient.
BOOST_AUTO_TEST_CASE(running_statistics_pass_gradients_on_whatever_x_holds) {
  for (const Shape& shape : {Shape{3, 2}, Shape{1, 2, 3}}) {
    std::vector<float> values = {1, NAN, INFINITY, 2, -INFINITY, 3};
    Tensor x = tensor(values, shape).requires_grad_(), mean = floats({0, 1}, {2}),
           var = floats({1, 4}, {2}), weight = floats({2, 3}, {2});
    sum(batch_norm(x, mean, var, weight, Tensor(), false, 0.1, 0)).backward();
    const std::vector<double> by_column = {2, 1.5, 2, 1.5, 2, 1.5},
                              by_plane = {2, 2, 2, 1.5, 1.5, 1.5};
    require_values(x.grad(), shape, shape.size() == 2 ? by_column : by_plane);
  }
}

// 0 and nothing near it: what rounding leaves of equal elements would be divided by almost nothing.
BOOST_AUTO_TEST_CASE(equal_elements_become_zero) {
  for (const float value : {1e4f, 12345.678f, 1e6f + 0.3f, -7.7e8f})
    for (const int64_t n : {5, 7, 16, 100, 1000}) {
      const Tensor x = full({4, n}, value);
      require_values(layer_norm(x, {n}), {4, n}, std::vector<double>(static_cast<size_t>(4 * n)),
                     0);
      for (const Shape& shape : {Shape{n, 4}, Shape{4, n}, Shape{2, 2, n}, Shape{1, 4, n}}) {
        if (shape.numel() / shape[1] < 2) continue;
        const Tensor y = batch_norm(x.reshape(shape), {}, {}, {}, {}, true);
        require_equal(y, zeros(shape));
      }
    }
}

// The mean of infinite elements is infinite, and their variance is no number.
BOOST_AUTO_TEST_CASE(running_statistics_of_infinities) {
  const float inf = INFINITY;
  for (const Shape& shape : {Shape{6, 1}, Shape{2, 1, 3}, Shape{3, 1, 2}})
    for (const size_t at : {size_t{0}, size_t{4}}) {
      std::vector<float> values = {1, 2, 3, 4, 5, 6};
      values[at] = inf;
      Tensor mean = zeros({1}), var = ones({1});
      batch_norm(tensor(values, shape), mean, var, {}, {}, true);
      BOOST_TEST(mean.item() == inf, shape.str() << ", element " << at);
      BOOST_TEST(std::isnan(var.item()));
      values[at == 0 ? 5 : 0] = -inf;
      mean = zeros({1});
      batch_norm(tensor(values, shape), mean, var, {}, {}, true);
      BOOST_TEST(std::isnan(mean.item()), shape.str() << ", element " << at);
    }
}

// One running sum of a million elements in f32 would be off by 1e-3.
BOOST_AUTO_TEST_CASE(long_columns_and_rows_are_summed_exactly) {
  const int64_t n = kSanitized ? 100000 : 2000000;
  const double exact = 1.0 / static_cast<double>(n), near = 1e-5;
  const auto require_near = [&](const Tensor& y, double expected, const char* what) {
    const auto [low, high] = std::pair(amin(y).item(), amax(y).item());
    BOOST_TEST(std::abs(low / expected - 1) < near, what << ": " << low / expected);
    BOOST_TEST(std::abs(high / expected - 1) < near, what << ": " << high / expected);
  };
  const Tensor rows = full({1, n}, 0.3f), columns = full({n, 3}, 0.3f);
  require_near(softmax(rows, 1), exact, "softmax of a row");
  require_near(softmax(columns, 0), exact, "softmax of columns");
  Tensor x = columns.clone().requires_grad_();
  sum(softmax(x, 0) * columns).backward();
  BOOST_TEST(amax(abs(x.grad())).item() < 0.3 * exact * near);
  const Tensor weight = ones({3}).requires_grad_(), bias = zeros({3}).requires_grad_();
  batch_norm(columns, zeros({3}), ones({3}), weight, bias, false, 0.1, 0)
      .backward(full({n, 3}, 0.1f));
  require_near(bias.grad(), 0.1f * static_cast<double>(n), "bias of batch_norm");
  require_near(weight.grad(), 0.1f * 0.3f * static_cast<double>(n), "weight of batch_norm");
  const Tensor scale = ones({3}).requires_grad_(), shift = zeros({3}).requires_grad_();
  layer_norm(columns, {3}, scale, shift).backward(full({n, 3}, 0.1f));
  require_near(shift.grad(), 0.1f * static_cast<double>(n), "bias of layer_norm");
}

BOOST_AUTO_TEST_CASE(empty_and_strided) {
  Tensor stats = zeros({2});
  require_values(batch_norm(zeros({0, 2}), stats, ones({2}), Tensor(), Tensor(), false), {0, 2},
                 {});
  require_values(layer_norm(zeros({0, 3}), {3}), {0, 3}, {});
  Tensor x = sample({3, 4, 2});
  require_equal(
      batch_norm(x.transpose(1, 2), Tensor(), Tensor(), Tensor(), Tensor(), true),
      batch_norm(x.transpose(1, 2).contiguous(), Tensor(), Tensor(), Tensor(), Tensor(), true),
      1e-12);
  require_equal(layer_norm(x.transpose(1, 2), {4}), layer_norm(x.transpose(1, 2).contiguous(), {4}),
                1e-12);
}

BOOST_AUTO_TEST_CASE(running_statistics_have_no_gradient) {
  const Tensor x = sample({4, 2}).requires_grad_(), still = ones({2}, {.dtype = f64}),
               wanted = ones({2}, {.dtype = f64}).requires_grad_();
  for (bool training : {true, false}) {
    require_error<AutogradError>([&] { batch_norm(x, wanted, still, {}, {}, training); },
                                 "batch_norm: running_mean requires a gradient");
    require_error<AutogradError>([&] { batch_norm(x, still, wanted, {}, {}, training); },
                                 "batch_norm: running_var requires a gradient");
    NoGrad guard;
    batch_norm(x, still, wanted, {}, {}, training);
  }
}

BOOST_AUTO_TEST_CASE(bad_input) {
  Tensor x = zeros({4, 2}), none;
  require_error<ValueError>(
      [&] {
        batch_norm(zeros({1, 2}), none, none, none, none, true);
      },
      "expected more than 1 value per channel when training");
  require_error<ValueError>([&] { batch_norm(x, none, none, none, none, false); },
                            "needs running_mean and running_var");
  require_error<ValueError>([&] { batch_norm(x, zeros({2}), none, none, none, true); },
                            "both be given");
  require_error<ShapeError>([&] { batch_norm(x, none, none, zeros({3}), none, true); },
                            "weight has shape (3,), but must be (2,)");
  require_error<ShapeError>([&] { batch_norm(zeros({4}), none, none, none, none, true); },
                            "needs an input (n, c)");
  require_error<DTypeError>(
      [&] { batch_norm(x, none, none, zeros({2}, {.dtype = f64}), none, true); },
      "weight has dtype f64");
  require_error<ShapeError>(
      [&] { layer_norm(x, {3}); },
      "normalized_shape (3,) must be the last dimensions of the input, which has shape (4, 2)");
  require_error<ShapeError>([&] { layer_norm(x, {2}, zeros({3})); },
                            "weight has shape (3,), but normalized_shape is (2,)");
  require_error<ValueError>([&] { layer_norm(x, {}); }, "at least one dimension");
  require_error<ShapeError>([&] { weight_norm(zeros({4}), zeros({1})); },
                            "weight_norm: g has shape (1,), but must be (4,)");
}

BOOST_AUTO_TEST_SUITE_END()
