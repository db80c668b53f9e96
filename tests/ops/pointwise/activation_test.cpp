// Activations: what the table does not say, values at the edges and errors.
#include <limits>

#include <tenon/core/ops/activation.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(pointwise)

using namespace tenon;
using namespace tenon::test;

namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNotANumber = std::nan("");
}  // namespace

BOOST_AUTO_TEST_CASE(activations_at_the_edges) {
  const Tensor x = doubles({kNotANumber, kInf, -kInf, -0.0, 1000, -1000}, {6});
  require_values(elu(x), {6}, {kNotANumber, kInf, -1, 0, 1000, -1});
  require_values(celu(x, 2), {6}, {kNotANumber, kInf, -2, 0, 1000, -2});
  require_values(leaky_relu(x, 0.5), {6}, {kNotANumber, kInf, -kInf, 0, 1000, -500});
  require_values(softplus(x), {6}, {kNotANumber, kInf, 0, std::log(2), 1000, 0});
  require_values(softplus(x, 1, kInf), {6}, {kNotANumber, kInf, 0, std::log(2), 1000, 0});
  require_values(logsigmoid(x), {6}, {kNotANumber, 0, -kInf, -std::log(2), 0, -1000});
  require_values(hardsigmoid(x), {6}, {kNotANumber, 1, 0, 0.5, 1, 0});
  require_values(hardtanh(x), {6}, {kNotANumber, 1, -1, 0, 1, -1});
  require_values(hardshrink(x), {6}, {kNotANumber, kInf, -kInf, 0, 1000, -1000});
  require_values(softshrink(x, 1), {6}, {kNotANumber, kInf, -kInf, 0, 999, -999});
  require_values(threshold(x, 5, 7), {6}, {kNotANumber, kInf, 7, 7, 1000, 7});
  require_values(mish(doubles({1000, -1000, 0}, {3})), {3}, {1000, 0, 0});
}

// What 1 - 1 would lose is there, as in PyTorch.
BOOST_AUTO_TEST_CASE(activations_are_precise_near_zero_and_far_from_it) {
  require_close(elu(doubles({-1e-12}, {1})).to_vector<double>(), {-1e-12}, 1e-11, 0, "elu");
  require_close(softplus(doubles({-40}, {1})).to_vector<double>(), {std::exp(-40.0)}, 1e-13, 0,
                "softplus");
  require_close(logsigmoid(doubles({40}, {1})).to_vector<double>(), {-std::exp(-40.0)}, 1e-13, 0,
                "logsigmoid");
  require_close(mish(doubles({-40}, {1})).to_vector<double>(), {-40 * std::exp(-40.0)}, 1e-13, 0,
                "mish");
}

BOOST_AUTO_TEST_CASE(activations_have_the_slopes_of_pytorch_at_their_corners) {
  auto slopes = [](auto&& f) {
    Tensor x = doubles({-3, 0, 3, 6}, {4}).requires_grad_();
    sum(f(x)).backward();
    return x.grad();
  };
  require_values(slopes([](const Tensor& x) { return leaky_relu(x, 0.2); }), {4}, {0.2, 0.2, 1, 1});
  require_values(slopes(hardswish), {4}, {0, 0.5, 1, 1});
  require_values(slopes(relu6), {4}, {0, 0, 1, 0});
  require_values(slopes([](const Tensor& x) { return hardtanh(x, -3, 3); }), {4}, {0, 1, 0, 0});
  require_values(slopes([](const Tensor& x) { return softshrink(x, 3); }), {4}, {0, 0, 0, 1});
  require_values(slopes([](const Tensor& x) { return threshold(x, 3, 9); }), {4}, {0, 0, 0, 1});
}

BOOST_AUTO_TEST_CASE(activations_of_whole_numbers) {
  BOOST_TEST((elu(ints({-1, 2}, {2})).dtype() == f32));
  require_values(leaky_relu(ints({-100, 2}, {2})).to(f64), {2}, {-1, 2}, 1e-6);
  BOOST_TEST((hardtanh(ints({-5, 5}, {2})).dtype() == i64));
  BOOST_TEST((hardtanh(ints({-5, 5}, {2}), -0.5, 0.5).dtype() == f32));
  require_values(relu6(ints({-5, 9}, {2})).to(f64), {2}, {0, 6});
}

BOOST_AUTO_TEST_CASE(activations_refuse) {
  const Tensor x = sample({2, 3});
  require_error<ValueError>([&] { elu(Tensor()); }, "elu: x is an undefined tensor");
  require_error<ValueError>([&] { selu(Tensor()); }, "selu: x is");
  require_error<ValueError>([&] { celu(x, 0); }, "celu: alpha must not be 0");
  require_error<ValueError>([&] { hardtanh(x, 2, 1); }, "hardtanh: min_val 2", "max_val 1");
  require_error<ValueError>([&] { softshrink(x, -1); }, "softshrink: lambd", "-1");
  require_error<ShapeError>([&] { glu(x); }, "glu: dimension 1 of shape (2, 3)", "even");
  require_error<IndexError>([&] { glu(x, 2); }, "glu: dim 2 is out of range");
  require_error<ShapeError>([&] { prelu(x, sample({2})); },
                            "prelu: x of shape (2, 3) has 3 channels", "found 2");
  require_error<ShapeError>([&] { prelu(x, sample({1, 1})); }, "prelu: the weight", "(1, 1)");
  require_error<DTypeError>([&] { prelu(x, sample({3}).to(f32)); },
                            "prelu: x is f64, the weight f32");
}

BOOST_AUTO_TEST_SUITE_END()
