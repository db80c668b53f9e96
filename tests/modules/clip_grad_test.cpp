// Limits of gradients. The expected values are PyTorch 2.15's.
#include <cmath>
#include <limits>

#include <tenon/tenon.h>

#include "modules/stepped.h"
#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(clip_grad_test)

using namespace tenon;
using namespace tenon::test;

namespace {

std::vector<Tensor> with_gradients(DType dtype, Device second = Device("cpu:0")) {
  std::vector<Tensor> params = {leaf(zeros({2}, {.dtype = dtype})),
                                leaf(zeros({1, 1}, {.dtype = dtype, .device = second})),
                                leaf(zeros({5})), leaf(zeros({0}))};
  params[0].set_grad(doubles({3, -4}, {2}).to(dtype));
  params[1].set_grad(doubles({12}, {1, 1}).to(dtype).to(second));
  params[3].set_grad(zeros({0}));
  return params;
}

}  // namespace

BOOST_AUTO_TEST_CASE(norms_of_every_order) {
  struct Case {
    double order, norm;
    std::vector<double> first, second;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const Case cases[] = {
      {1, 19, {0.31578945706371275, -0.4210526094182837}, {1.263157828254851}},
      {2, 13, {0.46153842603550577, -0.615384568047341}, {1.846153704142023}},
      {3, 12.207054953820636, {0.4915190052948094, -0.6553586737264125}, {1.9660760211792376}},
      {infinity, 12, {0.4999999583333369, -0.6666666111111158}, {1.9999998333333475}}};
  for (auto& c : cases)
    for (Device second : {Device("cpu:0"), Device("cpu:1")}) {
      const auto params = with_gradients(f64, second);
      const Tensor before = nn::utils::clip_grad_norm_(params, 2, c.order);
      require_close({before.item()}, {c.norm}, 1e-12, 0);
      require_close(params[0].grad().to_vector<double>(), c.first, 1e-12, 0);
      require_close(params[1].grad().to_vector<double>(), c.second, 1e-12, 0);
      BOOST_TEST(!params[2].grad().defined());
    }
}

BOOST_AUTO_TEST_CASE(small_gradients_stay) {
  const auto params = with_gradients(f32);
  BOOST_TEST(nn::utils::clip_grad_norm_(params, 100).item() == 13);
  BOOST_TEST(params[0].grad().to_vector<float>() == (std::vector<float>{3, -4}),
             boost::test_tools::per_element());
}

// The sum of squares of a half type would be infinite.
BOOST_AUTO_TEST_CASE(gradients_of_half_types) {
  for (DType dtype : {f16, bf16}) {
    const Tensor p = leaf(zeros({2}, {.dtype = dtype}));
    Tensor(p).set_grad(doubles({3072, 4096}, {2}).to(dtype));
    const Tensor norm = nn::utils::clip_grad_norm_({p}, 1);
    BOOST_TEST(norm.item() == 5120);
    BOOST_TEST(norm.dtype() == f32);
    require_close(p.grad().to_vector<double>(), {0.6, 0.8}, 4e-3, 0);
  }
}

BOOST_AUTO_TEST_CASE(norms_that_are_not_finite) {
  auto params = with_gradients(f32);
  params[0].set_grad(doubles({NAN, 1}, {2}).to(f32));
  require_error<ValueError>([&] { nn::utils::clip_grad_norm_(params, 1, 2, true); },
                            "the total norm of order 2.0 of the gradients is nan");
  BOOST_TEST(params[1].grad().item() == 12);
  BOOST_TEST(std::isnan(nn::utils::clip_grad_norm_(params, 1).item()));
  BOOST_TEST(nn::utils::clip_grad_norm_({}, 1).item() == 0);
  require_error<ValueError>([&] { nn::utils::clip_grad_norm_(params, -1); },
                            "clip_grad_norm_: max_norm is -1; it has to be at least 0");
}

BOOST_AUTO_TEST_CASE(values_are_limited) {
  const auto params = with_gradients(f32);
  nn::utils::clip_grad_value_(params, 3.5);
  require_equal(params[0].grad(), doubles({3, -3.5}, {2}).to(f32));
  BOOST_TEST(params[1].grad().item() == 3.5);
  require_error<ValueError>([&] { nn::utils::clip_grad_value_(params, -1); },
                            "clip_grad_value_: clip_value is -1");
}

BOOST_AUTO_TEST_SUITE_END()
