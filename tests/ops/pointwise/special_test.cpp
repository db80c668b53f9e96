// Elementary and special functions, division with a remainder and bits: values at the edges,
// precision, errors.
#include <cmath>
#include <limits>

#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/special.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(pointwise)

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();
const double kUndefined = std::nan("");

// Both signs, from the smallest numbers to the largest.
std::vector<double> magnitudes(int low, int high) {
  std::vector<double> x;
  for (int e = low; e < high; ++e)
    for (double m : {1.0, 1.3, 1.7}) x.insert(x.end(), {std::ldexp(m, e), -std::ldexp(m, e)});
  return x;
}

// The largest error of f in units of the last place of a T.
template <class T>
double worst_error(Tensor (*f)(const Tensor&), long double (*exact)(long double),
                   const std::vector<double>& at) {
  const std::vector<T> x(at.begin(), at.end());
  const Tensor result = f(tensor(x, {static_cast<int64_t>(x.size())}));
  const std::vector<T> y = result.template to_vector<T>();
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double e = exact(x[i]);
    const T nearest = static_cast<T>(e);
    if (std::isnan(nearest) || std::isinf(nearest)) {
      BOOST_TEST((std::isnan(nearest) ? std::isnan(y[i]) : y[i] == nearest),
                 "of " << x[i] << ": " << y[i] << ", expected " << nearest);
      continue;
    }
    const T size = std::fabs(nearest), unit = std::nextafter(size, T(INFINITY)) - size;
    worst = std::max(worst, static_cast<double>(std::fabs(y[i] - e) / unit));
  }
  return worst;
}

}  // namespace

BOOST_AUTO_TEST_CASE(expm1_and_log1p_are_precise_everywhere) {
  auto expm1_of = [](long double x) { return std::expm1(x); };
  auto log1p_of = [](long double x) { return std::log1p(x); };
  BOOST_TEST(worst_error<float>(expm1, expm1_of, magnitudes(-126, 8)) < 8);
  BOOST_TEST(worst_error<double>(expm1, expm1_of, magnitudes(-1022, 11)) < 8);
  BOOST_TEST(worst_error<float>(log1p, log1p_of, magnitudes(-126, 128)) < 8);
  BOOST_TEST(worst_error<double>(log1p, log1p_of, magnitudes(-1022, 1024)) < 8);
  const Tensor edges = doubles({kUndefined, kEndless, -kEndless, -1, 0}, {5});
  require_values(expm1(edges), {5}, {kUndefined, kEndless, -1, std::expm1(-1.0), 0});
  require_values(log1p(edges), {5}, {kUndefined, kEndless, kUndefined, -kEndless, 0});
}

// Relative to what mpmath gives for these arguments.
BOOST_AUTO_TEST_CASE(digits_beside_poles_and_ends_are_kept) {
  const auto worst = [](const Tensor& found, const std::vector<double>& exact) {
    const auto values = found.to(f64).to_vector<double>();
    double error = 0;
    for (size_t i = 0; i < exact.size(); ++i)
      error = std::max(error, std::abs(values[i] / exact[i] - 1));
    return error;
  };
  const Tensor x = doubles({-1e-10, -1e-17, -1 - 0x1p-30, -2 + 0x1p-40}, {4});
  BOOST_TEST(worst(digamma(x), {9999999999.4227839706, 99999999999999992.269, 1073741824.4227843326,
                                -1099511627775.0772157}) < 1e-14);
  BOOST_TEST(worst(polygamma(1, x), {99999999999999992715.0, 9.9999999999999985692e33,
                                     1152921504606846978.6, 1.2089258196146291747e24}) < 1e-14);
  BOOST_TEST(worst(polygamma(2, x), {1.9999999999999997814e30, 1.9999999999999995707e51,
                                     2.4758800785707605498e27, -2.6584559915698317458e36}) < 1e-14);
  BOOST_TEST(worst(digamma(floats({-1e-20f, 1e-20f}, {2})), {1e20, -1e20}) < 1e-6);
  const Tensor y = doubles({0.999, 0.999999, 1 - 0x1p-30, 1 - 0x1p-52}, {4});
  const std::vector<double> inverse = {2.3267537655135244939, 3.4589107372754987775,
                                       4.3280282758009464554, 5.8050186831934533002};
  BOOST_TEST(worst(erfinv(y), inverse) < 2e-15);
  BOOST_TEST(worst(-erfinv(-y), inverse) < 2e-15);
}

BOOST_AUTO_TEST_CASE(special_functions_at_the_edges) {
  require_values(digamma(doubles({0, -0.0, -1, 1, -1.5}, {5})), {5},
                 {-kEndless, kEndless, kUndefined, -0.57721566490153286, 0.70315664064524318},
                 1e-14);
  require_values(polygamma(1, doubles({1, 0, kEndless, -0.5}, {4})), {4},
                 {1.6449340668482264, kEndless, 0, 8.934802200544679}, 1e-13);
  require_values(polygamma(2, doubles({1, 30.5, -1.5}, {3})), {3},
                 {-2.4041138063191886, -0.0011108026689359417, -0.23620405164172739}, 1e-13);
  require_values(lgamma(doubles({-2, 0, 3, kEndless}, {4})), {4},
                 {kEndless, kEndless, std::log(2.0), kEndless});
  require_values(erfinv(doubles({1, -1, 1.5, 0, 0.5}, {5})), {5},
                 {kEndless, -kEndless, kUndefined, 0, 0.47693627620446987}, 1e-15);
  require_values(erf(erfinv(doubles({0.999999, -0.9, 1e-20}, {3}))), {3}, {0.999999, -0.9, 1e-20});
  require_values(logit(doubles({0, 1, 0.5, -1}, {4})), {4}, {-kEndless, kEndless, 0, kUndefined});
  require_values(sinc(doubles({0, 0.5, 1}, {3})), {3}, {1, 2 / M_PI, 0}, 1e-15);
  require_values(logaddexp(doubles({kEndless, -kEndless, 1000}, {3}),
                           doubles({kEndless, -kEndless, 1000}, {3})),
                 {3}, {kEndless, -kEndless, 1000 + std::log(2)});
  require_values(xlogy(doubles({0, 0, 0, 2}, {4}), doubles({0, kEndless, kUndefined, 0}, {4})), {4},
                 {0, 0, kUndefined, -kEndless});
}

// Where both operands are infinite, or nothing, PyTorch's formula is NaN or 0.
// It is the function with the next number, which users may not ask for.
BOOST_AUTO_TEST_CASE(the_last_polygamma_has_a_gradient) {
  const Tensor x = doubles({50}, {1}).requires_grad_();
  polygamma(100, x).backward();
  const double h = 1e-4, above = polygamma(100, x.detach() + h).item<double>(),
               below = polygamma(100, x.detach() - h).item<double>();
  BOOST_TEST(x.grad().item<double>() == (above - below) / (2 * h),
             boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(gradients_of_two_operands_at_the_edges) {
  auto slopes = [](auto&& f, const std::vector<double>& a, const std::vector<double>& b) {
    Tensor x = doubles(a, {static_cast<int64_t>(a.size())}).requires_grad_();
    sum(f(x, doubles(b, {static_cast<int64_t>(b.size())}))).backward();
    return x.grad().to_vector<double>();
  };
  auto same = [](const std::vector<double>& found, const std::vector<double>& expected) {
    require_close(found, expected, 1e-12, 1e-12, "slopes");
  };
  using Two = Tensor (*)(const Tensor&, const Tensor&);
  same(slopes(Two(logaddexp), {-kEndless, 2, kEndless}, {-kEndless, 2, 1}), {0.5, 0.5, 1});
  same(slopes(Two(atan2), {0, 1}, {0, 0}), {0, 0});
  same(slopes(Two(xlogy), {0, 0, 2}, {0, 3, 3}), {0, std::log(3), std::log(3)});
  same(slopes(Two(copysign), {0, 2, -2}, {-1, -1, -1}), {0, -1, 1});
}

BOOST_AUTO_TEST_CASE(division_with_a_remainder) {
  const Tensor a = doubles({7, -7, 7, -7, 5.5, kEndless, 3, -3}, {8});
  const Tensor b = doubles({3, 3, -3, -3, 0, 2, kEndless, kEndless}, {8});
  require_values(fmod(a, b), {8}, {1, -1, 1, -1, kUndefined, kUndefined, 3, -3});
  require_values(remainder(a, b), {8}, {1, 2, -2, -1, kUndefined, kUndefined, 3, kEndless});
  require_values(floor_divide(a, b), {8}, {2, -3, -3, 2, kEndless, kUndefined, 0, -1});
  const Tensor m = ints({7, -7, 7, -7, 5, std::numeric_limits<int64_t>::min()}, {6});
  const Tensor n = ints({3, 3, -3, -3, 0, -1}, {6});
  require_values(fmod(m, n).to(f64), {6}, {1, -1, 1, -1, 0, 0});
  require_values(remainder(m, n).to(f64), {6}, {1, 2, -2, -1, 0, 0});
  require_values(floor_divide(m, n).to(f64), {6}, {2, -3, -3, 2, 0, -0x1p63});
  require_values(div(m, n, "trunc").to(f64), {6}, {2, -2, -2, 2, 0, -0x1p63});
  require_values(div(m, 2, "trunc").to(f64), {6}, {3, -3, 3, -3, 2, -0x1p62});
  require_values(div(a, 2.0, "trunc"), {8}, {3, -3, 3, -3, 2, kEndless, 1, -1});
  require_values(remainder(7, n).to(f64), {6}, {1, 1, -2, -2, 0, 0});
  BOOST_TEST((remainder(m, 2.5).dtype() == f32));
  require_error<ValueError>([&] { remainder(m, 0); }, "remainder: an integer tensor", "by 0");
  require_error<ValueError>([&] { floor_divide(m, 0); }, "floor_divide: an integer tensor");
  require_error<ValueError>([&] { div(a, b, "up"); }, "div: rounding_mode \"up\"", "floor",
                            "trunc");
  require_error<DTypeError>([&] { fmod(bools({1}, {1}), bools({1}, {1})); }, "fmod", "bool");
}

BOOST_AUTO_TEST_CASE(bits_and_shifts) {
  const Tensor a = ints({12, -12, 1}, {3}), b = ints({10, 3, 1}, {3});
  require_values(bitwise_and(a, b).to(f64), {3}, {8, 0, 1});
  require_values(bitwise_or(a, b).to(f64), {3}, {14, -9, 1});
  require_values(bitwise_xor(a, b).to(f64), {3}, {6, -9, 0});
  require_values(bitwise_not(a).to(f64), {3}, {-13, 11, -2});
  require_values(bitwise_not(a.abs().to(u8)).to(f64), {3}, {243, 243, 254});
  require_values(bitwise_not(bools({1, 0}, {2})).to(f64), {2}, {0, 1});
  require_values(bitwise_and(a, 6).to(f64), {3}, {4, 4, 0});
  const Tensor by = ints({1, 64, -1}, {3});
  require_values(bitwise_left_shift(a, by).to(f64), {3}, {24, 0, 0});
  require_values(bitwise_right_shift(a, by).to(f64), {3}, {6, -1, 0});
  require_values(bitwise_right_shift(ints({-5}, {1}), 1).to(f64), {1}, {-3});
  require_error<DTypeError>([&] { bitwise_and(sample({2}), sample({2})); }, "bitwise_and", "f64");
  require_error<DTypeError>([&] { bitwise_not(sample({2})); }, "bitwise_not", "f64");
  require_error<DTypeError>([&] { bitwise_left_shift(bools({1}, {1}), bools({1}, {1})); },
                            "bitwise_left_shift", "bool");
  require_error<ValueError>([&] { bitwise_or(a.abs().to(u8), 256); }, "bitwise_or", "256", "u8");
}

BOOST_AUTO_TEST_CASE(what_kind_of_number) {
  const Tensor x = doubles({0, kEndless, -kEndless, kUndefined}, {4});
  require_values(isnan(x).to(f64), {4}, {0, 0, 0, 1});
  require_values(isinf(x).to(f64), {4}, {0, 1, 1, 0});
  require_values(isfinite(x).to(f64), {4}, {1, 0, 0, 0});
  require_values(isfinite(bools({1, 0}, {2})).to(f64), {2}, {1, 1});
  require_values(nan_to_num(x), {4},
                 {0, std::numeric_limits<double>::max(), -std::numeric_limits<double>::max(), 0});
  require_values(nan_to_num(x.to(f16)).to(f64), {4}, {0, 65504, -65504, 0});
  require_values(heaviside(x, doubles({0.5, 7, 7, 7}, {4})), {4}, {0.5, 1, 0, 0});
  require_error<DTypeError>([&] { heaviside(x, ints({1}, {1})); },
                            "heaviside: x is f64, values i64");
}

BOOST_AUTO_TEST_CASE(whether_tensors_are_the_same) {
  const Tensor x = doubles({1, kEndless, kUndefined}, {3}), y = x.slice(0, 0, 2);
  BOOST_TEST(equal(y, y.clone()));
  BOOST_TEST(!equal(x, x));
  BOOST_TEST(!equal(y, x));
  BOOST_TEST(!equal(y, doubles({1, 2}, {2})));
  BOOST_TEST(allclose(y, doubles({1 + 1e-6, kEndless}, {2})));
  BOOST_TEST(!allclose(y, doubles({1 + 1e-4, kEndless}, {2})));
  BOOST_TEST(!allclose(y, doubles({1, -kEndless}, {2})));
  BOOST_TEST(!allclose(x, x));
  BOOST_TEST(allclose(x, x, 1e-5, 1e-8, true));
  require_values(isclose(ints({1, 10}, {2}), ints({2, 11}, {2}), 0.1).to(f64), {2}, {0, 1});
  require_error<DTypeError>([&] { equal(x, ints({1}, {1})); }, "equal: a is f64");
  require_error<ValueError>([&] { isclose(x, x, -1); }, "isclose: rtol", "-1");
  require_error<ValueError>([&] { allclose(x, x, 0, -1); }, "allclose: atol", "-1");
}

BOOST_AUTO_TEST_CASE(operators_on_three_tensors) {
  const Tensor a = doubles({1, 2}, {2}), b = doubles({1e20, -4}, {2});
  require_values(lerp(a, b, 1.0), {2}, {1e20, -4});
  require_values(lerp(a, b, 0.0), {2}, {1, 2});
  require_values(lerp(a, b, doubles({0, 0.5}, {2})), {2}, {1, -1});
  require_values(addcmul(a, a, a, 2), {2}, {3, 10});
  require_values(addcmul(ints({1}, {1}), ints({3}, {1}), ints({4}, {1}), 2).to(f64), {1}, {25});
  require_values(addcdiv(a, a, doubles({4}, {1}), -1), {2}, {0.75, 1.5});
  require_error<DTypeError>([&] { lerp(a, b.to(f32), 0.5); }, "lerp", "f32");
  require_error<DTypeError>([&] { lerp(ints({1}, {1}), ints({1}, {1}), 0.5); }, "lerp", "i64");
  require_error<ShapeError>([&] { addcmul(a, sample({3}), a); }, "addcmul", "(2,)", "(3,)");
  require_error<ValueError>([&] { polygamma(-1, a); }, "polygamma: n", "-1");
}

// A gradient of 0, as that of what a mask hides, stays 0 where a slope is infinite.
BOOST_AUTO_TEST_CASE(hidden_elements_have_no_gradient) {
  const double inf = std::numeric_limits<double>::infinity();
  Tensor x = doubles({1, 1}, {2}).requires_grad_();
  (xlogy(x, doubles({0, 2}, {2})) * doubles({0, 1}, {2})).sum().backward();
  require_values(x.grad(), {2}, {0, std::log(2.0)});
  Tensor slope = doubles({0.25}, {1}).requires_grad_();
  prelu(doubles({inf, -2}, {1, 2}), slope).select(1, 1).sum().backward();
  require_values(slope.grad(), {1}, {-2});
  for (const char* mode : {"trunc", "floor"}) {
    Tensor a = doubles({1, 7}, {2}).requires_grad_(), b = doubles({0, 2}, {2}).requires_grad_();
    const Tensor y = div(a, b, mode);
    require_values(y, {2}, {inf, 3});
    y.sum().backward();
    require_values(a.grad(), {2}, {0, 0});
    require_values(b.grad(), {2}, {0, 0});
  }
  // In f32, also where the first operand is a number: the quotient is 999.8.
  const Tensor number = doubles({300}, {}).to(f16), many = doubles({0.3}, {1}).to(f16);
  require_values(div(number, many, "trunc").to(f64), {1}, {999});
  Tensor nan = doubles({std::nan("")}, {1}).requires_grad_();
  elu(nan).sum().backward();
  BOOST_TEST(std::isnan(nan.grad().item<double>()));
}

BOOST_AUTO_TEST_SUITE_END()
