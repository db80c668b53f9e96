// What users who come from PyTorch type first.
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(first_steps_test)

using namespace tenon;
using test::require_error;

namespace {
using Floats = std::vector<float>;
Tensor counted() { return arange(0, 6).reshape({2, 3}); }
}  // namespace

BOOST_AUTO_TEST_CASE(one_dimension_is_a_number) {
  Tensor x = counted();
  BOOST_TEST(x.mean(1).to_vector<float>() == (Floats{1, 4}));
  BOOST_TEST(x.sum(1).to_vector<float>() == (Floats{3, 12}));
  BOOST_TEST(x.amax(-1, true).to_vector<float>() == (Floats{2, 5}));
  BOOST_CHECK((x.permute({1, 0}).shape() == Shape{3, 2}));
  const Shape turned{1, 0};
  BOOST_CHECK((x.permute(turned).shape() == Shape{3, 2}));
}

BOOST_AUTO_TEST_CASE(a_dtype_alone) {
  BOOST_CHECK(zeros({2}, f64).dtype() == f64);
  BOOST_CHECK(full({2}, 3, i64).dtype() == i64);
}

BOOST_AUTO_TEST_CASE(a_device_and_a_dtype_with_a_device) {
  BOOST_CHECK(zeros({2}, f64, "cpu:1").device() == Device("cpu:1"));
  BOOST_CHECK(ones({2}, i64, Device("cpu:1")).dtype() == i64);
  BOOST_CHECK(randn({2}, "cpu:1").device() == Device("cpu:1"));
  BOOST_TEST(arange(0, 4, 2, f64, "cpu").to_vector<double>() == (std::vector<double>{0, 2}));
  BOOST_TEST(arange(2, f64, "cpu").to_vector<double>() == (std::vector<double>{0, 1}));
  BOOST_CHECK(eye(3, 2, f64).dtype() == f64 && linspace(0, 1, 2, f64).dtype() == f64);
  BOOST_CHECK(zeros_like(ones({2}), i64).dtype() == i64);
  BOOST_CHECK(randint(5, {3}, i32, "cpu").dtype() == i32 && randint(0, 5, {3}, u8).dtype() == u8);
  BOOST_TEST(randint(1, {3}).sum().item<int>() == 0);
  BOOST_CHECK((zeros({2, 3}, {}).shape() == Shape{2, 3}));
}

BOOST_AUTO_TEST_CASE(nested_braces) {
  const Tensor matrix = tensor({{1, 2}, {3, 4}});
  BOOST_CHECK((matrix.shape() == Shape{2, 2}) && matrix.dtype() == f32);
  BOOST_TEST(matrix.to_vector<float>() == (Floats{1, 2, 3, 4}));
  const Tensor deep = tensor({{{1.5, 2}, {3, 4}}, {{5, 6}, {7, 8}}});
  BOOST_CHECK((deep.shape() == Shape{2, 2, 2}));
  BOOST_TEST(deep.sum().item<float>() == 36.5f);
  BOOST_CHECK((tensor({{1}, {2}}).shape() == Shape{2, 1}));
  BOOST_CHECK((tensor({{}, {}}).shape() == Shape{2, 0}));
  BOOST_CHECK((tensor({{1, 2}, {3, 4}}, {4}).shape() == Shape{4}));
  BOOST_CHECK(tensor({{1, 2}}, i64).dtype() == i64);
  BOOST_CHECK(tensor({{true, false}}).dtype() == boolean);
  BOOST_CHECK(tensor({true, false}).dtype() == boolean && tensor({1, 0}).dtype() == f32);
}

BOOST_AUTO_TEST_CASE(lists_of_variables_and_single_numbers) {
  const int64_t big = (int64_t{1} << 53) + 1;
  const double number = 2.5;
  const size_t count = 3;
  BOOST_TEST(tensor({big, 1L}, i64)[0].item<int64_t>() == big);
  BOOST_TEST(tensor({{big}}, i64).item<int64_t>() == big);
  BOOST_TEST(tensor({number, 0.5}, f64)[0].item() == 2.5);
  BOOST_TEST(tensor({count, count}).to_vector<float>() == (Floats{3, 3}));
  BOOST_TEST(tensor({1, 2.5}).to_vector<float>() == (Floats{1, 2.5f}));
  BOOST_CHECK(tensor(3.5).shape().empty() && tensor(3.5).item() == 3.5);
  BOOST_TEST(tensor({1, 2.5}, {.dtype = f64, .requires_grad = true}).requires_grad());
  BOOST_CHECK(tensor(std::vector<double>{1, 2}, f32).dtype() == f32);
  BOOST_TEST(tensor(std::vector<float>{1}, {.requires_grad = true}).requires_grad());
  BOOST_CHECK((tensor({1.5}, {}).shape() == Shape{}));
  BOOST_CHECK((tensor(std::vector<float>{1}, {}).shape() == Shape{}));
}

BOOST_AUTO_TEST_CASE(rows_of_different_lengths) {
  require_error<ShapeError>(
      [] {
        tensor({{1, 2}, {3}});
      },
      "tensor: row [1] has 1 element, but row [0] has 2 elements");
  require_error<ShapeError>(
      [] {
        tensor({{{1, 2}, {3, 4}}, {{1, 2}, {3, 4, 5}}});
      },
      "row [1][1] has 3 elements, but row [0][0] has 2 elements");
  require_error<ShapeError>(
      [] {
        tensor({{1, 2}, 3});
      },
      "row [1] is a number", "row [0] has 2 elements");
  require_error<ShapeError>([] { tensor({{1, 2}, {3, 4}}, {3}); }, "4 values", "(3,)");
  require_error<ValueError>([] { tensor({300, 1}, {.dtype = u8}); }, "300", "u8");
}

BOOST_AUTO_TEST_CASE(comparisons_and_masks) {
  const Tensor x = tensor({1, 2, 3}), mask = x > 1;
  using Bools = std::vector<bool>;
  BOOST_TEST((x == tensor({1, 0, 3})).to_vector<bool>() == (Bools{true, false, true}));
  BOOST_TEST((x != 2).to_vector<bool>() == (Bools{true, false, true}));
  BOOST_TEST((2 == x).to_vector<bool>() == (Bools{false, true, false}));
  BOOST_TEST((x(mask) == 3).to_vector<bool>() == (Bools{false, true}));
  BOOST_TEST((!mask).to_vector<bool>() == (Bools{true, false, false}));
  BOOST_TEST((~mask).to_vector<bool>() == (Bools{true, false, false}));
  BOOST_TEST((mask & (x < 3)).to_vector<bool>() == (Bools{false, true, false}));
  BOOST_TEST((~mask | (x == 3)).to_vector<bool>() == (Bools{true, false, true}));
  BOOST_TEST((mask ^ (x < 3)).to_vector<bool>() == (Bools{true, false, true}));
  BOOST_TEST(((x > 1) && (x < 3)).to_vector<bool>() == (Bools{false, true, false}));
  BOOST_TEST(((x < 2) || (x > 2)).to_vector<bool>() == (Bools{true, false, true}));
  const Tensor bits = tensor({5, 6}, i64);
  BOOST_TEST((~(bits & 3)).to_vector<int64_t>() == (std::vector<int64_t>{-2, -3}));
  BOOST_TEST(((bits | 8) ^ 1).to_vector<int64_t>() == (std::vector<int64_t>{12, 15}));
  BOOST_TEST((bits % 4).to_vector<int64_t>() == (std::vector<int64_t>{1, 2}));
  Tensor changed = mask.clone();
  changed &= x < 3;
  changed |= x == 1;
  changed ^= mask;
  BOOST_TEST(changed.to_vector<bool>() == (Bools{true, false, true}));
  BOOST_CHECK(where(mask, 1, 0).dtype() == i64 && where(mask, 1.0, 0).dtype() == f32);
  BOOST_TEST(where(mask, 1.5, 0).to_vector<float>() == (Floats{0, 1.5f, 1.5f}));
}

BOOST_AUTO_TEST_CASE(moving) {
  const Tensor x = ones({2}).to("cpu:1", f64);
  BOOST_CHECK(x.device() == Device("cpu:1") && x.dtype() == f64);
  BOOST_CHECK(x.cpu().device() == Device("cpu") && x.sizes() == Shape{2});
  nn::Linear layer(2, 2, false);
  layer.to("cpu:1", f64);
  BOOST_CHECK(layer.weight.device() == Device("cpu:1") && layer.weight.dtype() == f64);
  BOOST_TEST(!layer.bias.defined());
}

BOOST_AUTO_TEST_CASE(stride_and_padding_behind_the_kernel) {
  const Tensor x = arange(0, 32).reshape({1, 2, 4, 4});
  BOOST_CHECK((nn::Conv2d(2, 3, 3, 2, 1)(x).shape() == Shape{1, 3, 2, 2}));
  BOOST_CHECK((nn::Conv2d(2, 3, 3, 1, "same", {.bias = false})(x).shape() == Shape{1, 3, 4, 4}));
  BOOST_CHECK((nn::Conv1d(2, 3, 3, 2)(x[0].flatten(1)).shape() == Shape{3, 7}));
  BOOST_CHECK((nn::ConvTranspose2d(2, 3, 4, 2, 1)(x).shape() == Shape{1, 3, 8, 8}));
  BOOST_CHECK((nn::MaxPool2d(3, 2, 1)(x).shape() == Shape{1, 2, 2, 2}));
  BOOST_CHECK((nn::MaxPool2d({4, 2})(x).shape() == Shape{1, 2, 1, 2}));  // a size in braces
  BOOST_CHECK((nn::MaxPool2d{3, 1}(x).shape() == Shape{1, 2, 2, 2}));
  BOOST_CHECK((nn::AvgPool2d(2, 1)(x).shape() == Shape{1, 2, 3, 3}));
  BOOST_TEST(max_pool2d(x, 2, 2).equal(nn::MaxPool2d(2)(x)));
  BOOST_CHECK((avg_pool2d(x, 3, 2, 1).shape() == Shape{1, 2, 2, 2}));
  BOOST_CHECK((conv2d(x, ones({1, 2, 3, 3}), {}, 1, 1).shape() == Shape{1, 1, 4, 4}));
}

BOOST_AUTO_TEST_CASE(layers_of_a_recurrent_network_behind_the_sizes) {
  nn::LSTM lstm(4, 8, 2, {.batch_first = true});
  const auto [y, h, c] = lstm(ones({3, 5, 4}));
  BOOST_CHECK((y.shape() == Shape{3, 5, 8}) && (h.shape() == Shape{2, 3, 8}));
  BOOST_TEST(nn::GRU(4, 8).options.num_layers == 1);
  BOOST_TEST(nn::GRU(4, 8, 3).options.num_layers == 3);
  BOOST_TEST(nn::RNN(4, 8, 2, {}, "relu").weights.size() == 8u);
  BOOST_TEST(nn::LSTM(4, 8, {}).options.num_layers == 1);
}

BOOST_AUTO_TEST_CASE(subscripts) {
  Tensor x = counted();
  BOOST_TEST(x(Slice(0, 2), 0).to_vector<float>() == (Floats{0, 3}));
  const Tensor mask = x > 2;
  const Tensor chosen = x(mask);
  BOOST_TEST(chosen.to_vector<float>() == (Floats{3, 4, 5}));
  x(Slice(), 1) = 9;
  x(mask) = -1.0;
  x(0) = tensor({7, 8, 9});
  BOOST_TEST(x.to_vector<float>() == (Floats{7, 8, 9, -1, -1, -1}));
  x(mask) *= 2;
  BOOST_TEST(x[1].to_vector<float>() == (Floats{-2, -2, -2}));
}

BOOST_AUTO_TEST_CASE(a_learning_rate_alone) {
  auto step = [](auto make) {
    Tensor w = ones({1}, {.requires_grad = true});
    auto optimizer = make(std::vector<Tensor>{w});
    w.sum().backward();
    optimizer.step();
    return w.item<float>();
  };
  using Params = std::vector<Tensor>;
  BOOST_TEST(step([](Params p) { return optim::SGD(p, 0.5); }) == 0.5f);
  BOOST_TEST(step([](Params p) { return optim::SGD(p, 1); }) == 0.0f);
  BOOST_TEST(step([](Params p) { return optim::Adam(p, 1e-3); }) ==
             step([](Params p) { return optim::Adam(p, {.lr = 1e-3}); }));
  BOOST_TEST(step([](Params p) { return optim::AdamW(p, 0.25); }) ==
             step([](Params p) { return optim::AdamW(p, {.lr = 0.25}); }));
  BOOST_TEST(step([](Params p) { return optim::SGD(p, {}); }) ==
             step([](Params p) { return optim::SGD(p); }));
}

BOOST_AUTO_TEST_CASE(functions_are_methods) {
  Tensor x = tensor({-1.5, 0.25, 4});
  BOOST_TEST(x.trunc().to_vector<float>() == trunc(x).to_vector<float>());
  BOOST_TEST(x.isfinite().all().item<bool>());
  BOOST_TEST(x.log1p()[2].item<float>() == log1p(x)[2].item<float>());
  BOOST_TEST(x.where(x > 0, 7).to_vector<float>() == (Floats{7, 0.25f, 4}));
  BOOST_TEST(x.median().item<float>() == 0.25f);
  BOOST_TEST(x.median(0).indices.item<int>() == 1);
  BOOST_TEST(x.diff().to_vector<float>() == (Floats{1.75f, 3.75f}));
  BOOST_TEST(x.allclose(x + 1e-7));
  BOOST_TEST(x.lerp(x + 2, 0.5).equal(x + 1));
  BOOST_TEST(x.aminmax().second.item<float>() == 4.0f);
  BOOST_TEST((tensor({1, 1, 2}).unique().values.to_vector<float>() == Floats{1, 2}));
}

BOOST_AUTO_TEST_CASE(more_mutators) {
  Tensor x = tensor({-1, 2, 3}), same = x;
  x.clamp_(0).masked_fill_(x > 2, 10).pow_(2).neg_().abs_().sqrt_();
  BOOST_TEST(same.to_vector<float>() == (Floats{0, 2, 10}));
  x.addcmul_(ones({3}), ones({3}), 0.5);
  BOOST_TEST(same.to_vector<float>() == (Floats{0.5f, 2.5f, 10.5f}));
  x.index_fill_(0, tensor({1}).to(i64), 8);
  BOOST_TEST(same.to_vector<float>() == (Floats{0.5f, 8, 10.5f}));
  require_error<DTypeError>([] { ones({2}, i64).exp_(); },
                            "exp_: the result is f32, but the tensor that it changes is i64");
  require_error<AutogradError>([] { ones({2}, {.requires_grad = true}).exp_(); }, "exp_", "NoGrad");
  require_error<ShapeError>([] { ones({2}).addcmul_(ones({3, 2}), ones({2})); }, "(3, 2)");
}

BOOST_AUTO_TEST_CASE(mutators_that_write_values) {
  Tensor x = tensor({-1.5, 2.25, 4}), same = x;
  x.floor_().square_().add_(ones({3}), 2).sub_(ones({3}), -1);
  BOOST_TEST(same.to_vector<float>() == (Floats{7, 7, 19}));
  x.index_put_({tensor({2, 0}, i64)}, tensor({5, 6}));
  x.index_put_({x == 7}, 1);
  BOOST_TEST(same.to_vector<float>() == (Floats{6, 1, 5}));
  x.clamp_min_(2).clamp_max_(5.5).masked_fill_(x == 2, tensor(-1)).remainder_(4);
  BOOST_TEST(same.to_vector<float>() == (Floats{1.5f, 3, 1}));
  Tensor m = ones({2, 3});
  m.tril_().fill_diagonal_(4);
  BOOST_TEST(m.to_vector<float>() == (Floats{4, 0, 0, 1, 4, 0}));
  const Tensor coins = zeros({64}, i64).bernoulli_(0.5), dice = zeros({64}).random_(1, 7);
  BOOST_TEST(((coins == 0) | (coins == 1)).all().item<bool>());
  BOOST_TEST(((dice >= 1) & (dice <= 6) & (dice == dice.floor())).all().item<bool>());
  require_error<ShapeError>([] { ones({2}).fill_diagonal_(1); }, "fill_diagonal_", "(2,)");
  require_error<ValueError>([] { ones({2}).bernoulli_(2); }, "bernoulli_", "2");
  require_error<AutogradError>([] { ones({2}, {.requires_grad = true}).random_(3); }, "random_");
  require_error<DTypeError>([] { ones({2}, boolean).bitwise_and_(ones({2}, i64)); },
                            "bitwise_and_: the result is i64", "bool");
}

BOOST_AUTO_TEST_CASE(mutators_are_recorded) {
  auto gradient = [](auto change) {
    Tensor x = tensor({-1, 2, 3}, {.requires_grad = true});
    Tensor y = x * 2;
    change(y, x);
    y.sum().backward();
    return x.grad().to_vector<float>();
  };
  const Tensor first = tensor({true, false, false});
  BOOST_TEST(gradient([&](Tensor& y, auto&) { y.masked_fill_(first, 7); }) == (Floats{0, 2, 2}));
  BOOST_TEST(gradient([](Tensor& y, auto&) { y.square_(); }) == (Floats{-8, 16, 24}));
  BOOST_TEST(gradient([](Tensor& y, auto&) { y.relu_().neg_(); }) == (Floats{0, -2, -2}));
  BOOST_TEST(gradient([](Tensor& y, auto&) { y.clamp_(0, 5); }) == (Floats{0, 2, 0}));
  BOOST_TEST(gradient([](Tensor& y, auto& x) { y.addcmul_(x, x, 0.5); }) == (Floats{1, 4, 5}));
  BOOST_TEST(gradient([](Tensor& y, auto& x) {
               y.index_put_({tensor({0}, i64)}, x.narrow(0, 1, 1));
             }) == (Floats{0, 3, 2}));
  BOOST_TEST(gradient([](Tensor& y, auto& x) { y.add_(x, 3); }) == (Floats{5, 5, 5}));
}

BOOST_AUTO_TEST_CASE(gradients_of_lists_in_braces) {
  const Tensor w = tensor({1, 2}, {.requires_grad = true}), b = scalar(3, {.requires_grad = true});
  const auto loss = [&] { return (w * w).sum() * b; };
  const std::vector<Tensor> one = autograd::grad({loss()}, {w});
  BOOST_TEST((one.at(0).to_vector<float>() == Floats{6, 12}));
  const std::vector<Tensor> both = grad({loss(), b * 2}, {w, b}, {scalar(2), scalar(1)});
  BOOST_TEST((both.at(0).to_vector<float>() == Floats{12, 24}));
  BOOST_TEST(both.at(1).item() == 12);
  const std::vector<Tensor> parameters = {w, b};
  BOOST_TEST(grad({loss()}, parameters).at(1).item() == 5);
  BOOST_TEST((grad(loss(), w).to_vector<float>() == Floats{6, 12}));
}

BOOST_AUTO_TEST_SUITE_END()
