// Functions of half types that are made of several operators compute in f32 and round once: what is
// small in between does not become 0, nor infinite what is large.
#include <cmath>
#include <functional>

#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(loss)

using namespace tenon;
using namespace tenon::test;

namespace {

using Numbers = std::vector<double>;

// What f gives for x in a half type, and the gradient of its sum, against f64. Both are within one
// unit of the half type.
void require_rounded_once(const char* what, const Function& f, const Numbers& x,
                          const std::vector<Tensor>& others) {
  for (DType type : {f16, bf16}) {
    const auto with = [&](DType dtype, const Tensor& first) {
      std::vector<Tensor> in = {first};
      for (auto& other : others) in.push_back(other.to(type).to(dtype));
      return f(in);
    };
    const Tensor half = tensor(x, x.size(), {.dtype = type}).requires_grad_(),
                 exact = half.detach().to(f64).requires_grad_();
    const Tensor found = with(type, half), expected = with(f64, exact);
    BOOST_TEST((found.dtype() == type));
    sum(found).backward();
    sum(expected).backward();
    const double unit = type == f16 ? 0x1p-10 : 0x1p-7;
    require_close(found.to_vector<double>(), expected.to_vector<double>(), unit, 1e-7, what);
    require_close(half.grad().to_vector<double>(), exact.grad().to(type).to_vector<double>(), unit,
                  1e-7, what);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(halves_are_rounded_once) {
  const Tensor flags = doubles({0, 1, 1, 0}, {4}), some = doubles({0.3, -1.2, 2.5, 0.7}, {4});
  const Reduction none = Reduction::none;
  // 1e-12, which is 0 in f16, keeps these gradients finite.
  require_rounded_once(
      "binary_cross_entropy",
      [&](auto& in) { return binary_cross_entropy(in[0], in[1], {.reduction = none}); },
      {0, 1, 0.25, 0.5}, {flags});
  require_rounded_once("poisson_nll_loss",
                       [&](auto& in) {
                         return poisson_nll_loss(
                             in[0], in[1], {.log_input = false, .eps = 1e-4, .reduction = none});
                       },
                       {0.5, 1, 0.25, 3}, {flags});
  require_rounded_once("kl_div", [&](auto& in) { return kl_div(in[0], in[1], none); },
                       {-0.5, -1, -2, -3}, {doubles({0, 0.3, 0.2, 0.5}, {4})});
  require_rounded_once("mse_loss", [&](auto& in) { return mse_loss(in[0], in[1]); },
                       {300, -200, 10, 1}, {some});  // squares beyond 65 504
  require_rounded_once("huber_loss", [&](auto& in) { return huber_loss(in[0], in[1], none, 0.7); },
                       {1, -2, 0.5, 4}, {some});
  require_rounded_once("huber_loss", [&](auto& in) { return huber_loss(in[0], in[1]); },
                       {300, -200, 0.5, 1}, {some});
  require_rounded_once("smooth_l1_loss",
                       [&](auto& in) { return smooth_l1_loss(in[0], in[1], Reduction::mean, 0.7); },
                       {300, -200, 0.5, 1}, {some});
  require_rounded_once("soft_margin_loss",
                       [&](auto& in) { return soft_margin_loss(in[0], in[1], none); },
                       {1, -2, 0.5, 4}, {some});
  require_rounded_once(
      "gaussian_nll_loss",
      [&](auto& in) { return gaussian_nll_loss(in[0], in[1], in[2], {.reduction = none}); },
      {1, -2, 0.5, 4}, {some, doubles({0.01, 0.5, 1, 2}, {4})});
}

BOOST_AUTO_TEST_CASE(zero_vectors_of_halves) {
  for (DType type : {f16, bf16}) {
    const Tensor x = zeros({2, 3}, {.dtype = type}).requires_grad_();
    const Tensor unit = normalize(x), cosine = cosine_similarity(x, x);
    require_values(unit, {2, 3}, {0, 0, 0, 0, 0, 0});
    require_values(cosine, {2}, {0, 0});
    (sum(cosine) + sum(square(unit))).backward();
    for (double g : x.grad().to_vector<double>()) BOOST_TEST(std::isfinite(g));
    const Tensor p = zeros({2}, {.dtype = type}).requires_grad_(), t = ones({2}).to(type);
    poisson_nll_loss(p, t, {.log_input = false}).backward();  // 1 / 1e-8 has no value in f16
    BOOST_TEST(!std::isnan(p.grad().to_vector<double>()[0]));
  }
}

BOOST_AUTO_TEST_CASE(distances_and_norms_of_halves) {
  const Tensor row = doubles({200, -300, 100, 0.5}, {4});
  require_rounded_once("cosine_similarity",
                       [](auto& in) { return cosine_similarity(in[0], in[1], 0); },
                       {300, -200, 10, 1}, {row});
  require_rounded_once("normalize", [](auto& in) { return normalize(in[0], 2, 0); },
                       {300, -200, 10, 1}, {});
  require_rounded_once("pairwise_distance",
                       [](auto& in) { return pairwise_distance(in[0], in[1]); }, {300, -200, 10, 1},
                       {row});
  require_rounded_once("lerp", [](auto& in) { return lerp(in[0], in[1], in[2]); }, {1, 2, 3, 4},
                       {row, doubles({0.1, 0.2, 0.3, 0.9}, {4})});
  require_rounded_once(
      "local_response_norm",
      [](auto& in) {
        return local_response_norm(in[0].reshape({1, 4, 1}), 3, 1.0, 0.75, 1).flatten();
      },
      {300, -200, 10, 1}, {});
}

BOOST_AUTO_TEST_SUITE_END()
