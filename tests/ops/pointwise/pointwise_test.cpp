#include <limits>

#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(pointwise)

using namespace tenon;
using namespace tenon::test;

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double nan_value = std::nan("");
}  // namespace

BOOST_AUTO_TEST_CASE(gradients_of_one_operand) {
  Tensor x = sample({2, 5}), p = positive({2, 5});
  using Unary = Tensor (*)(const Tensor&);
  struct Case {
    const char* name;
    Unary f;
    bool positive_only;
  };
  for (auto& c : std::initializer_list<Case>{{"neg", neg, false},
                                             {"abs", abs, false},
                                             {"sign", sign, false},
                                             {"square", square, false},
                                             {"reciprocal", reciprocal, true},
                                             {"exp", exp, false},
                                             {"log", log, true},
                                             {"sqrt", sqrt, true},
                                             {"rsqrt", rsqrt, true},
                                             {"sin", sin, false},
                                             {"cos", cos, false},
                                             {"erf", erf, false},
                                             {"tanh", tanh, false},
                                             {"sigmoid", sigmoid, false},
                                             {"relu", relu, false},
                                             {"silu", silu, false},
                                             {"floor", floor, false},
                                             {"ceil", ceil, false},
                                             {"round", round, false}})
    check_gradients([&](auto& v) { return c.f(v[0]); }, {c.positive_only ? p : x}, c.name);
  check_gradients([](auto& v) { return gelu(v[0]); }, {x}, "gelu");
  check_gradients([](auto& v) { return gelu(v[0], "tanh"); }, {x}, "gelu tanh");
  check_gradients([](auto& v) { return clamp(v[0], -0.5, 0.7); }, {x}, "clamp");
}

// The values and slopes are those of the formula, from mpmath.
BOOST_AUTO_TEST_CASE(gelu_by_tanh_keeps_its_digits) {
  const std::vector<double> at = {-5, -4.5, -3.5, -3, -2.75, -2, -1.5, 2},
                            values = {-2.2917961966295060456e-7,  -5.1367374119586497607e-6,
                                      -0.00061619765537366330893, -0.0036373920817730188378,
                                      -0.0077231440736179685207,  -0.045402305912224981219,
                                      -0.10042842301976707755,    1.9545976940877750188},
                            slopes = {-1.5463619875325945956e-6, -2.9322270442755095981e-5,
                                      -0.0024226437601164310328, -0.011584166630969726204,
                                      -0.021948921593498213924,  -0.086099256623618381565,
                                      -0.12771079315143308158,   1.0860992566236183816};
  const auto compare = [&](const Tensor& found, const std::vector<double>& exact, double error) {
    const auto list = found.to(f64).to_vector<double>();
    for (size_t i = 0; i < exact.size(); ++i) {
      BOOST_TEST_CONTEXT(found.dtype() << " at " << at[i])
      BOOST_TEST(std::abs(list[i] - exact[i]) <=
                 error * std::abs(exact[i]) + (found.dtype() == f16 ? 0x1.02p-25 : 0));
    }
  };
  // Half a unit in the last place of the half types.
  const std::vector<std::pair<DType, double>> errors = {
      {f64, 1e-14}, {f32, 1e-5}, {bf16, 0x1.02p-8}, {f16, 0x1.02p-11}};
  for (const auto& [dtype, error] : errors) {
    Tensor x = doubles(at, {8}).to(dtype).detach().requires_grad_(), y = gelu(x, "tanh");
    compare(y, values, error);
    y.sum().backward();
    compare(x.grad(), slopes, error);
  }
  Tensor far = doubles({-60000, -200, 200, 60000}, {4}).to(f16).detach().requires_grad_();
  Tensor y = gelu(far, "tanh");
  require_values(y.detach().to(f64), {4}, {0, 0, 200, 60000}, 32);
  y.backward(ones({4}).to(f16));
  require_values(far.grad().to(f64), {4}, {0, 0, 1, 1});
  const Tensor ends = doubles({kInfinity, nan_value, 1e20}, {3});
  require_values(gelu(ends.to(f32), "tanh"), {3}, {kInfinity, nan_value, 1e20}, 1e-6);
  Tensor wide = ends.detach().requires_grad_();
  require_values(grad(sum(gelu(wide, "tanh")), wide), {3}, {1, nan_value, 1});
  require_values(gelu(ints({0, 2}, {2}), "tanh").to(f64), {2}, {0, 1.9545976940877750}, 1e-6);
}

BOOST_AUTO_TEST_CASE(gradients_of_two_operands_sum_over_what_was_broadcast) {
  Tensor a = sample({2, 1, 3}), b = sample({4, 1}, 1.9);
  check_gradients([](auto& v) { return v[0] + v[1]; }, {a, b}, "add");
  check_gradients([](auto& v) { return v[0] - v[1]; }, {a, b}, "sub");
  check_gradients([](auto& v) { return v[0] * v[1]; }, {a, b}, "mul");
  check_gradients([](auto& v) { return v[0] / v[1]; }, {a, b}, "div");
  check_gradients([](auto& v) { return maximum(v[0], v[1]); }, {a, b}, "maximum");
  check_gradients([](auto& v) { return minimum(v[0], v[1]); }, {a, b}, "minimum");
  check_gradients([](auto& v) { return pow(v[0], v[1]); }, {positive({2, 1, 3}), b}, "pow");
  Tensor condition = bools({1, 0, 1, 0, 0, 1}, {2, 1, 3});
  check_gradients([&](auto& v) { return where(condition, v[0], v[1]); }, {a, b}, "where");
}

BOOST_AUTO_TEST_CASE(gradients_with_a_number_as_operand) {
  Tensor x = sample({6}), p = positive({6});
  check_gradients([](auto& v) { return 2.5 - v[0]; }, {x}, "rsub");
  check_gradients([](auto& v) { return v[0] * 2.5 + 1; }, {x}, "mul, add");
  check_gradients([](auto& v) { return v[0] / 2.5; }, {x}, "div");
  check_gradients([](auto& v) { return 2.5 / v[0]; }, {p}, "rdiv");
  for (double e : {0.0, 1.0, 2.0, 3.0, -1.5})
    check_gradients([&](auto& v) { return pow(v[0], e); }, {p}, "pow");
  check_gradients([](auto& v) { return pow(1.7, v[0]); }, {x}, "rpow");
  check_gradients([](auto& v) { return maximum(v[0], 0.25) + minimum(v[0], -0.25); }, {x},
                  "maximum, minimum");
  check_gradients(
      [](auto& v) { return where(gt(v[0], 0), v[0], 3.0) + where(gt(v[0], 0), 3.0, v[0]); }, {x},
      "where");
}

BOOST_AUTO_TEST_CASE(values_at_the_edges) {
  Tensor x = doubles({nan_value, kInfinity, -kInfinity, -0.0, 2.5, 3.5}, {6});
  require_values(relu(x), {6}, {nan_value, kInfinity, 0, 0, 2.5, 3.5});
  require_values(round(x), {6}, {nan_value, kInfinity, -kInfinity, 0, 2, 4});
  require_values(clamp(x, -1, 1), {6}, {nan_value, 1, -1, 0, 1, 1});
  require_values(clamp(x, std::nullopt, 1), {6}, {nan_value, 1, -kInfinity, 0, 1, 1});
  require_values(maximum(x, 1.0), {6}, {nan_value, kInfinity, 1, 1, 2.5, 3.5});
  require_values(minimum(x, x), {6}, {nan_value, kInfinity, -kInfinity, 0, 2.5, 3.5});
  require_values(eq(x, x).to(i64), {6}, {0, 1, 1, 1, 1, 1});
  require_values(sigmoid(doubles({-1000, 1000, 0}, {3})), {3}, {0, 1, 0.5});
  require_values(sqrt(doubles({-1}, {1})), {1}, {nan_value});
  require_values(pow(doubles({0, 0}, {2}), doubles({0, -1}, {2})), {2}, {1, kInfinity});
}

namespace {

using Unary = Tensor (*)(const Tensor&);
struct Elementary {
  const char* name;
  Unary of;
  long double (*exact)(long double);
  double least;  // results below it need not be right in all bits
};
const Elementary elementary[] = {
    {"exp", exp, [](long double x) { return std::exp(x); }, 0},
    {"log", log, [](long double x) { return std::log(x); }, 0},
    {"sin", sin, [](long double x) { return std::sin(x); }, 0},
    {"cos", cos, [](long double x) { return std::cos(x); }, 0},
    {"tanh", tanh, [](long double x) { return std::tanh(x); }, 0},
    {"erf", erf, [](long double x) { return std::erf(x); }, 1e-36},
    {"sigmoid", sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, 1e-36},
};

// All orders of magnitude of both signs, and what lies evenly between -120 and 120.
template <class T>
std::vector<T> arguments() {
  std::vector<T> x;
  const int low = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
  for (int e = low; e < std::numeric_limits<T>::max_exponent; ++e)
    for (double m : {1.0, 1.1, 1.37, 1.58, 1.9})
      for (int sign : {1, -1}) x.push_back(static_cast<T>(std::ldexp(sign * m, e)));
  for (int i = -12000; i <= 12000; ++i) x.push_back(static_cast<T>(i * 0.01));
  for (double v : {709.7, 709.78, 709.79, -708.3, -745.1, -745.2, -746.0, 88.72, 88.73, -103.9})
    x.push_back(static_cast<T>(v));
  return x;
}

// The distance in units of the last place that `exact` has as a T.
template <class T>
long double units_off(T found, long double exact) {
  const T nearest = static_cast<T>(exact);
  if (!std::isfinite(nearest) || !std::isfinite(found))
    return found == nearest || (std::isnan(found) && std::isnan(nearest)) ? 0 : 1e30L;
  const T size = std::fabs(nearest);
  return std::fabs(found - exact) /
         (std::nextafter(size, std::numeric_limits<T>::infinity()) - size);
}

template <class T>
void require_accuracy() {
  const auto x = arguments<T>();
  const Tensor all = tensor(x, {static_cast<int64_t>(x.size())});
  for (auto& f : elementary) {
    const Tensor results = f.of(all);
    const std::vector<T> y = results.template to_vector<T>();
    long double worst = 0;
    T at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const long double exact = f.exact(x[i]);
      if (exact != 0 && std::fabs(exact) < f.least) continue;
      const long double off = units_off(y[i], exact);
      if (off > worst) worst = off, at = x[i];
    }
    BOOST_TEST(worst <= 8,
               f.name << " of " << double(at) << " is " << double(worst) << " units off");
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(elementary_functions_are_accurate_from_end_to_end) {
  require_accuracy<float>();
  require_accuracy<double>();
}

BOOST_AUTO_TEST_CASE(elementary_functions_of_infinities_nan_and_zeros) {
  for (DType dtype : {f32, f64}) {
    const Tensor x = doubles({kInfinity, -kInfinity, nan_value}, {3}).to(dtype);
    require_values(exp(x), {3}, {kInfinity, 0, nan_value}, 0);
    require_values(log(x), {3}, {kInfinity, nan_value, nan_value}, 0);
    require_values(sin(x), {3}, {nan_value, nan_value, nan_value}, 0);
    require_values(cos(x), {3}, {nan_value, nan_value, nan_value}, 0);
    require_values(tanh(x), {3}, {1, -1, nan_value}, 0);
    require_values(erf(x), {3}, {1, -1, nan_value}, 0);
    require_values(sigmoid(x), {3}, {1, 0, nan_value}, 0);
    const Tensor zeros = doubles({0.0, -0.0}, {2}).to(dtype);
    require_values(log(zeros), {2}, {-kInfinity, -kInfinity}, 0);
    for (Unary odd : std::initializer_list<Unary>{sin, tanh, erf})
      require_values(reciprocal(odd(zeros)), {2}, {kInfinity, -kInfinity}, 0);  // signs stay
  }
}

// Rows are cut into vectors and for threads; the last vector of a row is not a full one.
BOOST_AUTO_TEST_CASE(an_element_is_the_same_wherever_it_lies_in_its_row) {
  for (DType dtype : {f32, f64}) {
    const Tensor x = sample({70}).to(dtype) * 3.0;
    const auto check = [&](const char* name, auto f) {
      const auto whole = f(x).template to_vector<double>();
      for (int64_t start : {0, 1, 3, 31})
        for (int64_t n : {1, 2, 5, 17, 33}) {
          const auto part = f(x.narrow(0, start, n)).template to_vector<double>();
          for (int64_t i = 0; i < n; ++i) {
            const double a = part[static_cast<size_t>(i)],
                         b = whole[static_cast<size_t>(start + i)];
            BOOST_REQUIRE_MESSAGE(a == b || (std::isnan(a) && std::isnan(b)),
                                  name << ": element " << i << " of " << n << " from " << start);
          }
        }
    };
    for (auto& f : elementary) check(f.name, f.of);
    check("silu", silu);
    check("gelu", [](const Tensor& v) { return gelu(v); });
    check("pow", [](const Tensor& v) { return pow(abs(v), 1.3); });
  }
}

BOOST_AUTO_TEST_CASE(ties_share_the_gradient) {
  Tensor a = doubles({1, 2}, {2}), b = doubles({1, 1}, {2});
  a.requires_grad_();
  b.requires_grad_();
  sum(maximum(a, b)).backward();
  require_values(a.grad(), {2}, {0.5, 1});
  require_values(b.grad(), {2}, {0.5, 0});
}

// Values of these four are PyTorch 2.15's.
BOOST_AUTO_TEST_CASE(where_one_operand_is_nan_both_get_the_gradient) {
  for (DType dtype : {f32, f64})
    for (bool largest : {true, false}) {
      Tensor a = doubles({nan_value, 1, 2, 3, nan_value, 4}, {6}).to(dtype).requires_grad_();
      Tensor b = doubles({1, nan_value, 2, 4, nan_value, 3}, {6}).to(dtype).requires_grad_();
      sum(largest ? maximum(a, b) : minimum(a, b)).backward();
      const double wins = largest ? 0 : 1;
      require_values(a.grad(), {6}, {1, 1, 0.5, wins, 1, 1 - wins});
      require_values(b.grad(), {6}, {1, 1, 0.5, 1 - wins, 1, wins});
      a.set_grad({});
      sum(largest ? maximum(a, 2) : minimum(a, 2)).backward();
      require_values(a.grad(), {6}, {1, wins, 0.5, 1 - wins, 1, 1 - wins});
    }
  Tensor x = doubles({nan_value, 1, -1, 0}, {4}).requires_grad_();
  sum(relu(x)).backward();
  require_values(x.grad(), {4}, {1, 1, 0, 0});
}

BOOST_AUTO_TEST_CASE(clamp_passes_a_gradient_on_between_its_bounds_alone) {
  const auto gradient = [](std::optional<Number> low, std::optional<Number> high) {
    Tensor x = doubles({-kInfinity, -1, 0, 0.5, 1, 2, kInfinity, nan_value}, {8}).requires_grad_();
    return grad(sum(clamp(x, low, high)), x);
  };
  require_values(gradient(0, 1), {8}, {0, 0, 0, 1, 0, 0, 0, 0});
  require_values(gradient(0, std::nullopt), {8}, {0, 0, 0, 1, 1, 1, 1, 0});
  require_values(gradient(std::nullopt, 1), {8}, {1, 1, 1, 1, 0, 0, 0, 0});
  require_values(gradient(1, 0), {8}, {0, 0, 0, 0, 0, 0, 0, 0});
}

BOOST_AUTO_TEST_CASE(bounds_of_clamp_are_numbers) {
  const int64_t high = (int64_t{1} << 60) + 1;
  Tensor whole = full({2}, int64_t{1} << 62, {.dtype = i64});
  BOOST_CHECK_EQUAL(clamp(whole, 0, high)[0].item<int64_t>(), high);
  BOOST_CHECK(clamp(ints({1, 5}, {2}), 2.0).dtype() == f32);
  require_values(clamp(ints({1, 5}, {2}), 2.5), {2}, {2.5, 5});
  require_values(clamp(ints({1, 5}, {2}), std::nullopt, 3), {2}, {1, 3});
}

BOOST_AUTO_TEST_CASE(a_bound_that_is_nan_makes_all_nan) {
  Tensor x = doubles({0, 2, kInfinity, nan_value}, {4}).requires_grad_();
  for (auto [low, high] :
       {std::pair(nan_value, 1.0), std::pair(0.0, nan_value), std::pair(nan_value, nan_value)}) {
    Tensor y = clamp(x, low, high);
    require_values(y.detach(), {4}, {nan_value, nan_value, nan_value, nan_value});
    require_values(grad(sum(y), x), {4}, {0, 0, 0, 0});
    Tensor whole = clamp(ints({1, 2}, {2}), low, high);
    BOOST_CHECK(whole.dtype() == f32);
    require_values(whole, {2}, {nan_value, nan_value});
  }
  require_values(clamp(x.detach(), nan_value), {4}, {nan_value, nan_value, nan_value, nan_value});
  require_values(clamp(x.detach(), std::nullopt, nan_value), {4},
                 {nan_value, nan_value, nan_value, nan_value});
}

// 1e-25 squared is no f32 but 0, and would make the gradient infinite.
BOOST_AUTO_TEST_CASE(the_gradient_of_a_quotient_squares_no_divisor) {
  Tensor x = floats({1e-25f, -1e-25f, 2}, {3}).requires_grad_();
  const Tensor first = grad(sum(1e-20 / x), x, {.create_graph = true});
  require_values(first.detach() / doubles({-1e30, -1e30, -2.5e-21}, {3}), {3}, {1, 1, 1}, 1e-5);
  // As PyTorch, an infinite second derivative at 0 rather than NaN.
  Tensor zero = doubles({0}, {1}).requires_grad_();
  require_values(grad(sum(grad(sum(2.0 / zero), zero, {.create_graph = true})), zero), {1},
                 {kInfinity});
}

BOOST_AUTO_TEST_CASE(where_keeps_all_bits_of_a_whole_number) {
  const int64_t large = (int64_t{1} << 62) + 1;
  const Tensor condition = bools({1, 0}, {2}), x = ints({large - 2, -large}, {2});
  BOOST_TEST(where(condition, x, large).to_vector<int64_t>() == std::vector({large - 2, large}),
             boost::test_tools::per_element());
  BOOST_TEST(where(condition, -large, x).to_vector<int64_t>() == std::vector({-large, -large}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(empty_and_scalar_tensors) {
  require_values(zeros({0, 3}) + ones({1, 3}), {0, 3}, {});
  require_values(scalar(2) * scalar(3), {}, {6});
  require_values(exp(zeros({3, 0})), {3, 0}, {});
}

BOOST_AUTO_TEST_CASE(strided_operands) {
  Tensor x = doubles({1, 2, 3, 4, 5, 6}, {2, 3});
  require_values(x.t() + x.t(), {3, 2}, {2, 8, 4, 10, 6, 12});
  require_values(x.t() * doubles({10, 100}, {2}), {3, 2}, {10, 400, 20, 500, 30, 600});
  require_values(exp(x.slice(1, 0, 3, 2) * 0), {2, 2}, {1, 1, 1, 1});
  require_values(x.select(1, 1) - x.narrow(0, 0, 1).expand({2, 3}).select(1, 2), {2}, {-1, 2});
}

BOOST_AUTO_TEST_CASE(bad_input) {
  Tensor a = zeros({2, 3}), b = zeros({4, 5});
  require_error<ShapeError>([&] { a + b; }, "(2, 3)");
  require_error<ShapeError>([&] { a + b; }, "(4, 5)");
  require_error<ShapeError>([&] { a + b; }, "add");
  require_error<ValueError>([&] { a + Tensor(); }, "add: b is an undefined tensor");
  require_error<ValueError>([&] { exp(Tensor()); }, "exp: x is an undefined tensor");
  require_error<DTypeError>([&] { neg(eq(a, a)); }, "neg: x has dtype bool");
  require_error<DTypeError>([&] { eq(a, a) - eq(a, a); }, "sub: a has dtype bool");
  require_error<DTypeError>([&] { where(a, a, a); },
                            "where: condition has dtype f32, but must be bool; convert it with "
                            ".to(tenon::boolean)");
  require_error<ValueError>([&] { gelu(a, "fast"); }, "gelu: approximate \"fast\" is not known");
  require_error<ValueError>([&] { clamp(a, std::nullopt); }, "clamp: at least one of min and max");
}

BOOST_AUTO_TEST_SUITE_END()
