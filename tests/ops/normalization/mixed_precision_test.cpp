// Half types with weights and running statistics in f32: what is computed is what f32 gives,
// rounded to the type of the input at the end.
#include <functional>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(normalization)

using namespace tenon;
using namespace tenon::test;

namespace {

// A layer of four channels, with all that it learns and keeps.
struct MixedLayer {
  Tensor weight = tensor({1.5, -0.5, 2.0, 0.25}, {4}).to(f32).requires_grad_(),
         bias = tensor({0.5, 0.0, -1.0, 3.0}, {4}).to(f32).requires_grad_();
  Tensor mean = tensor({0.1, 0.2, 0.3, 0.4}, {4}).to(f32),
         var = tensor({1.1, 1.2, 1.3, 1.4}, {4}).to(f32);
};
using Apply = std::function<Tensor(MixedLayer&, const Tensor&)>;

struct Outcome {
  Tensor y, x;
  MixedLayer layer;
};
Outcome run_mixed(const Apply& apply, DType dtype, const Shape& shape) {
  Outcome o;
  // Values that the half type holds, whatever the type they are computed in.
  o.x = sample(shape).to(bf16).to(dtype).requires_grad_();
  o.y = apply(o.layer, o.x);
  (o.y.to(f32) * sample(shape, 0.8).to(bf16).to(f32)).sum().backward();
  return o;
}

void check_mixed(const char* name, const Apply& apply, const Shape& shape) {
  BOOST_TEST_CONTEXT(name) {
    const Outcome half = run_mixed(apply, bf16, shape), whole = run_mixed(apply, f32, shape);
    BOOST_TEST(half.y.dtype() == bf16);
    require_equal(half.y.detach(), whole.y.detach().to(bf16));
    require_equal(half.x.grad(), whole.x.grad().to(bf16));
    for (auto part : {&MixedLayer::weight, &MixedLayer::bias}) {
      const Tensor found = (half.layer.*part).grad(), expected = (whole.layer.*part).grad();
      BOOST_REQUIRE(found.defined() == expected.defined());
      if (!found.defined()) continue;
      BOOST_TEST(found.dtype() == f32);
      require_equal(found, expected);
    }
    require_equal(half.layer.mean, whole.layer.mean);
    require_equal(half.layer.var, whole.layer.var);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(weights_and_statistics_in_f32) {
  for (bool training : {true, false}) {
    check_mixed("batch_norm",
                [=](MixedLayer& l, const Tensor& x) {
                  return batch_norm(x, l.mean, l.var, l.weight, l.bias, training);
                },
                {5, 4, 3});
    check_mixed("instance_norm",
                [=](MixedLayer& l, const Tensor& x) {
                  return instance_norm(x, l.mean, l.var, l.weight, l.bias, training);
                },
                {3, 4, 5});
  }
  check_mixed("batch_norm with a bias alone",
              [](MixedLayer& l, const Tensor& x) {
                return batch_norm(x, Tensor(), Tensor(), Tensor(), l.bias, true);
              },
              {6, 4});
  check_mixed("layer_norm",
              [](MixedLayer& l, const Tensor& x) { return layer_norm(x, {4}, l.weight, l.bias); },
              {6, 4});
  check_mixed("group_norm",
              [](MixedLayer& l, const Tensor& x) { return group_norm(x, 2, l.weight, l.bias); },
              {3, 4, 5});
  check_mixed("rms_norm",
              [](MixedLayer& l, const Tensor& x) { return rms_norm(x, {4}, l.weight, 1e-5); },
              {6, 4});
  // The default eps is that of f32 as well, which matters for small inputs.
  check_mixed("rms_norm of small numbers",
              [](MixedLayer& l, const Tensor& x) { return rms_norm(x * 0x1p-10, {4}, l.weight); },
              {6, 4});
}

BOOST_AUTO_TEST_CASE(second_order_with_weights_in_f32) {
  MixedLayer l;
  const Tensor x = sample({6, 4}).to(bf16).requires_grad_();
  const Tensor loss = square(layer_norm(x, {4}, l.weight, l.bias).to(f32)).sum();
  const Tensor first =
      grad(std::span(&loss, 1), std::vector{l.weight}, {}, {.create_graph = true})[0];
  BOOST_TEST(first.dtype() == f32);
  square(first).sum().backward();
  BOOST_TEST(x.grad().dtype() == bf16);
  BOOST_TEST(l.weight.grad().dtype() == f32);
}

BOOST_AUTO_TEST_CASE(weights_and_statistics_have_one_dtype) {
  const MixedLayer l;
  const Tensor x = sample({6, 4}).to(bf16);
  require_error<DTypeError>([&] { layer_norm(x, {4}, l.weight, l.bias.to(bf16)); }, "layer_norm",
                            "bias has dtype bf16", "f32");
  require_error<DTypeError>([&] { layer_norm(x, {4}, l.weight.to(f64)); }, "layer_norm",
                            "weight has dtype f64");
  require_error<DTypeError>([&] { layer_norm(x.to(f32), {4}, l.weight.to(bf16)); }, "layer_norm",
                            "weight has dtype bf16", "of the input's type");
  require_error<DTypeError>([&] { batch_norm(x, l.mean, l.var, l.weight.to(bf16), l.bias, true); },
                            "batch_norm", "weight has dtype bf16", "f32");
}

BOOST_AUTO_TEST_SUITE_END()
