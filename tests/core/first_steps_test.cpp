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

BOOST_AUTO_TEST_SUITE_END()
