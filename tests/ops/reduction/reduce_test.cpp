#include <limits>

#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(reduction)

using namespace tenon;
using namespace tenon::test;

namespace {
const double nan_value = std::nan("");
constexpr double kInfinity = std::numeric_limits<double>::infinity();
}  // namespace

BOOST_AUTO_TEST_CASE(gradients) {
  Tensor x = sample({2, 3, 4});
  for (Shape dims : {Shape{}, Shape{1}, Shape{0, -1}})
    for (bool keep : {false, true}) {
      std::string at = dims.str();
      check_gradients([&](auto& v) { return square(sum(v[0], dims, keep)); }, {x}, "sum" + at);
      check_gradients([&](auto& v) { return square(mean(v[0], dims, keep)); }, {x}, "mean" + at);
      check_gradients([&](auto& v) { return square(amax(v[0], dims, keep)); }, {x}, "amax" + at);
      check_gradients([&](auto& v) { return square(amin(v[0], dims, keep)); }, {x}, "amin" + at);
      check_gradients([&](auto& v) { return square(var(v[0], dims, 1, keep)); }, {x}, "var" + at,
                      1e-5);
      check_gradients([&](auto& v) { return tenon::std(v[0], dims, 0, keep); }, {x}, "std" + at,
                      1e-5);
      check_gradients([&](auto& v) { return logsumexp(v[0], dims, keep); }, {x}, "logsumexp" + at);
      for (double p : {1.0, 2.0, 3.0, kInfinity, -kInfinity})
        check_gradients([&](auto& v) { return norm(v[0], p, dims, keep); }, {x}, "norm" + at, 1e-5);
    }
}

BOOST_AUTO_TEST_CASE(product_gradient_is_exact_at_zeros) {
  for (auto& values : std::initializer_list<std::vector<double>>{
           {1, 2, 3, 4}, {1, 0, 3, 4}, {0, 0, 3, 4}, {0, 0, 0, 4}, {0, 0, 0, 0}}) {
    Tensor x = doubles(values, {2, 2});
    check_gradients([](auto& v) { return prod(v[0]); }, {x}, "prod", 1e-5);
    check_gradients([](auto& v) { return prod(v[0], {0}); }, {x}, "prod over 0", 1e-5);
    check_gradients([](auto& v) { return prod(v[0], {-1}, true); }, {x}, "prod over 1", 1e-5);
  }
  check_gradients(
      [](auto& v) {
        return prod(v[0], {0, 2});
      },
      {sample({2, 2, 3})}, "prod over 0 and 2");
}

BOOST_AUTO_TEST_CASE(gradients_at_points_without_one) {
  Tensor x = zeros({2, 3}, {.dtype = f64});
  x.requires_grad_();
  (norm(x) + sum(tenon::std(x, {1}))).backward();
  require_values(x.grad(), {2, 3}, {0, 0, 0, 0, 0, 0});
  Tensor y = doubles({2, 5, 5}, {3});
  y.requires_grad_();
  amax(y).backward();
  require_values(y.grad(), {3}, {0, 0.5, 0.5});
}

// Values are PyTorch 2.15's.
BOOST_AUTO_TEST_CASE(gradients_of_norms_at_zero) {
  struct Case {
    double p;
    std::vector<double> values, expected;
  };
  const Case cases[] = {
      {3, {0, 2, -3}, {0, 0.37383614973583884, -0.8411313369056374}},
      {0.5, {0, 2, -3}, {0, 2.224744871391589, -1.8164965809277265}},
      {1.5, {0, 2, -3}, {0, 0.7063840791276677, -0.8651402781442813}},
      {2.5, {0, 2, -3}, {0, 0.4520506847213884, -0.8304701365823648}},
      {2, {0, 2, -3}, {0, 0.5547001962252291, -0.8320502943378437}},
      {1, {0, 2, -3}, {0, 1, -1}},
      {-1, {0, 2, -3}, {0, 0, 0}},
      {-2, {0, 2, -3}, {0, 0, 0}},
      {-1, {1, -2}, {0.4444444444444444, -0.1111111111111111}},
      {0, {0, 2, -3}, {0, 0, 0}},
      {kInfinity, {0, 2, -3}, {0, 0, -1}},
      {-kInfinity, {0, 2, -3}, {0, 0, 0}},
  };
  auto gradient = [](const std::vector<double>& values, double p, DType dtype) {
    Tensor x = doubles(values, {static_cast<int64_t>(values.size())}).to(dtype).requires_grad_();
    Tensor y = norm(x, p);
    BOOST_TEST(y.item() == norm(x.detach(), p).item(), boost::test_tools::tolerance(1e-5));
    return grad(y, x);
  };
  for (auto& c : cases) BOOST_TEST_CONTEXT("p = " << c.p) {
      const auto n = static_cast<int64_t>(c.values.size());
      require_values(gradient(c.values, c.p, f64), {n}, c.expected, 1e-9);
      require_values(gradient(c.values, c.p, f32), {n}, c.expected, 1e-5);
      require_values(gradient({0, 0}, c.p, f64), {2}, {0, 0});
      Tensor rows = doubles({0, 0, 1, 2}, {2, 2}).requires_grad_();
      const auto found = grad(sum(norm(rows, c.p, {1})), rows).to_vector<double>();
      for (double v : found) BOOST_TEST(std::isfinite(v));
      BOOST_TEST((found[0] == 0 && found[1] == 0));
    }
  require_values(norm(doubles({nan_value, 0, 2}, {3}), 0), {}, {2});
  // The second order at zeros is finite as well.
  Tensor x = doubles({0, 1, -2}, {3}).requires_grad_();
  Tensor first = grad(norm(x, 3), x, {.create_graph = true});
  for (double v : grad(sum(square(first)), x).to_vector<double>()) BOOST_TEST(std::isfinite(v));
}

BOOST_AUTO_TEST_CASE(values) {
  Tensor x = doubles({1, 5, 3, 4, 2, 6}, {2, 3});
  require_values(sum(x), {}, {21});
  require_values(sum(x, {0}), {3}, {5, 7, 9});
  require_values(x.sum({1}, true), {2, 1}, {9, 12});
  require_values(var(x, {1}), {2}, {4, 4});
  require_values(var(x, {1}, 0), {2}, {8.0 / 3, 8.0 / 3});
  require_values(var(x, {1}, 3), {2}, {kInfinity, kInfinity});
  require_values(argmax(x), {}, {5});
  require_values(argmax(x, 1), {2}, {1, 2});
  require_values(argmin(x, -2, true), {1, 3}, {0, 1, 0});
  require_values(argmax(scalar(3), 0), {}, {0});
  require_values(sum(x.t(), {1}), {3}, {5, 7, 9});
  require_values(any(gt(x, 5), {1}).to(i64), {2}, {0, 1});
  require_values(all(x).to(i64), {}, {1});
  require_values(norm(doubles({3, -4}, {2})), {}, {5});
  require_values(norm(doubles({3, 0, -4}, {3}), 0), {}, {2});
  require_values(logsumexp(doubles({1000, 1000}, {2}), {0}), {}, {1000 + std::log(2)});
  require_values(logsumexp(doubles({-kInfinity, -kInfinity, kInfinity, 0}, {2, 2}), {1}), {2},
                 {-kInfinity, kInfinity});
}

BOOST_AUTO_TEST_CASE(nan_is_passed_on) {
  Tensor x = doubles({1, nan_value, 3}, {3});
  for (auto& y : {sum(x), mean(x), prod(x), amax(x), amin(x), logsumexp(x, {}), norm(x)})
    require_values(y, {}, {nan_value});
  require_values(argmax(x), {}, {1});
  require_values(argmin(x), {}, {1});
}

BOOST_AUTO_TEST_CASE(nan_wins_wherever_it_lies_in_a_row) {
  for (DType dtype : {f32, f64})
    for (int64_t n : {5, 33, 70, 200})
      for (int64_t at = 0; at < n; ++at) {
        Tensor x = arange(0, static_cast<double>(n), 1, {.dtype = dtype});
        x.narrow(0, at, 1).fill_(nan_value);
        BOOST_REQUIRE(std::isnan(amax(x).item()) && std::isnan(amin(x).item()));
        BOOST_REQUIRE(std::isnan(sum(x).item()) && std::isnan(prod(x).item()));
        const Tensor rest = sum(x.narrow(0, 0, at)) + sum(x.narrow(0, at + 1, n - at - 1));
        BOOST_REQUIRE_EQUAL(rest.item(), static_cast<double>(n * (n - 1) / 2 - at));
      }
}

// In rows, short and long, and in columns.
BOOST_AUTO_TEST_CASE(logsumexp_of_awkward_values) {
  const std::vector<std::vector<double>> beginnings = {{-kInfinity, -kInfinity, -kInfinity},
                                                       {kInfinity, 0, -kInfinity},
                                                       {kInfinity, 1, kInfinity},
                                                       {nan_value, kInfinity, 0},
                                                       {-kInfinity, 2, -kInfinity},
                                                       {3e38, 3e38, -kInfinity},
                                                       {-3e38, -3e38, -3e38},
                                                       {-200, 1, -1000}};
  const std::vector<double> expected = {-kInfinity, kInfinity, kInfinity, nan_value,
                                        2,          3e38,      -3e38,     1};
  for (DType dtype : {f32, f64})
    for (int64_t width : {3, 40, 1100}) {
      std::vector<double> values, results;
      for (int64_t row = 0; row < 37; ++row) {
        auto begin = beginnings[static_cast<size_t>(row % 8)];
        begin.resize(static_cast<size_t>(width), -kInfinity);
        values.insert(values.end(), begin.begin(), begin.end());
        results.push_back(expected[static_cast<size_t>(row % 8)]);
      }
      const Tensor x = doubles(values, {37, width}).to(dtype), columns = x.t().contiguous();
      for (const Tensor& y :
           {logsumexp(x, {1}), logsumexp(columns, {0}), logsumexp(columns.t(), {1})})
        require_values(y, {37}, results);
    }
}

// What several threads fold is put together, whichever part the infinite and the large ones are in.
BOOST_AUTO_TEST_CASE(logsumexp_of_many) {
  constexpr int64_t n = 200003;
  const double all = std::log(0.5 * n * (n + 1));
  for (DType dtype : {f32, f64}) {
    const Tensor x = log(arange(1, n + 1, 1, {.dtype = f64})),
                 columns = stack({x, x + 100, x - 1000}, 1).to(dtype);
    require_values(logsumexp(x.to(dtype), {}), {}, {all});
    require_values(logsumexp(columns, {0}), {3}, {all, all + 100, all - 1000});
    require_values(logsumexp(columns.t(), {1}), {3}, {all, all + 100, all - 1000});
    require_values(logsumexp(columns, {}), {}, {all + 100});
    columns.narrow(0, 0, n - 1).fill_(-kInfinity);
    columns.narrow(0, 5, 1).narrow(1, 1, 1).fill_(kInfinity);
    const double last = std::log(n);
    require_values(logsumexp(columns, {0}), {3}, {last, kInfinity, last - 1000});
    require_values(logsumexp(columns.t().contiguous(), {1}), {3}, {last, kInfinity, last - 1000});
  }
}

// 2^24 + 1 is no f32.
BOOST_AUTO_TEST_CASE(f32_is_summed_in_f64_and_alike_wherever_it_lies_in_memory) {
  Tensor x = ones({1001});
  x.narrow(0, 500, 1).fill_(16777216);
  BOOST_TEST(sum(x).item() == 16778216.0);
  BOOST_TEST(sum(x.reshape({1, 1001}), {1}).item() == 16778216.0);
  const Tensor y = sample({900}).to(f32);
  for (int64_t start : {1, 2, 3, 7, 13})
    for (int64_t n : {31, 64, 500, 801}) {
      const Tensor part = y.narrow(0, start, n);
      for (auto* f : std::initializer_list<Tensor (*)(const Tensor&)>{
               [](const Tensor& v) { return sum(v); }, [](const Tensor& v) { return prod(v); },
               [](const Tensor& v) { return var(v); }})
        BOOST_REQUIRE_EQUAL(f(part).item(), f(part.clone()).item());
    }
}

// Rows of half types are summed in f32, unless that overflows.
BOOST_AUTO_TEST_CASE(halves_that_f32_cannot_sum) {
  const Tensor large = full({3, 3000}, 0x1p127, {.dtype = bf16});
  require_values(mean(large, {1}).to(f64), {3}, {0x1p127, 0x1p127, 0x1p127});
  const Tensor both = cat({large, -large}, 1);
  require_values(sum(both, {1}).to(f64), {3}, {0, 0, 0});
  require_values(sum(full({20000}, INFINITY, {.dtype = f16})).to(f64), {}, {INFINITY});
}

// Small whole numbers, whose sums are exact in any order.
BOOST_AUTO_TEST_CASE(rows_and_columns_of_any_length) {
  for (int64_t n : {1, 31, 33, 65, 129, 320, 1100, 2047, 2049, 4500}) {
    const Tensor x = remainder(arange(0, 5 * n), 7).reshape({5, n}), wide = x.to(f64);
    for (DType dtype : {bf16, f16, f32}) {
      const Tensor rows = x.to(dtype), columns = rows.t().contiguous();
      const Tensor expected = sum(wide, {1}).to(dtype).to(f64);
      for (const Tensor& y : {sum(rows, {1}), sum(columns.t(), {1}), sum(columns, {0}),
                              sum(rows.t(), {0}), sum(rows.unsqueeze(1), {1, 2})})
        BOOST_TEST_REQUIRE(equal(y.to(f64), expected), "of " << n);
      BOOST_TEST_REQUIRE(equal(amax(rows, {0}), amax(columns, {1})), n);
    }
  }
}

BOOST_AUTO_TEST_CASE(types) {
  Tensor whole = ints({1, 2, 3}, {3});
  BOOST_CHECK(sum(whole).dtype() == i64);
  BOOST_CHECK(sum(gt(whole, 1)).dtype() == i64);
  require_values(sum(gt(whole, 1)), {}, {2});
  require_values(prod(whole.to(i32)), {}, {6});
  BOOST_CHECK(amax(whole).dtype() == i64);
  BOOST_CHECK(any(whole).dtype() == boolean);
}

BOOST_AUTO_TEST_CASE(of_nothing) {
  Tensor x = zeros({0, 3});
  require_values(sum(x), {}, {0});
  require_values(sum(x, {0}), {3}, {0, 0, 0});
  require_values(prod(x), {}, {1});
  require_values(mean(x, {0}), {3}, {nan_value, nan_value, nan_value});
  require_values(var(x, {0}), {3}, {nan_value, nan_value, nan_value});
  require_values(any(x).to(i64), {}, {0});
  require_values(all(x).to(i64), {}, {1});
  require_values(amax(x, {1}), {0}, {});
  require_error<ValueError>([&] { amax(x); },
                            "amax: a tensor of shape (0, 3) has no elements to choose from");
  require_error<ValueError>([&] { amin(x, {0}); }, "amin");
  require_error<ValueError>([&] { argmax(x); }, "argmax");
  require_error<ValueError>([&] { argmin(x, 0); }, "argmin");
}

BOOST_AUTO_TEST_CASE(bad_input) {
  Tensor x = zeros({2, 3});
  require_error<IndexError>(
      [&] { sum(x, {2}); },
      "sum: dim 2 is out of range for a tensor of 2 dimensions; it must lie in [-2, 1]");
  require_error<ValueError>([&] { mean(x, {0, -2}); }, "mean: dim 0 appears twice in (0, -2)");
  require_error<DTypeError>([&] { mean(ints({1}, {1})); },
                            "mean: x has dtype i64, but must be a floating type; convert it with "
                            ".to(tenon::f32)");
  require_error<ValueError>([&] { sum(Tensor()); }, "undefined");
}

// Rounding errors do not add up along a row, however its elements lie.
BOOST_AUTO_TEST_CASE(long_rows) {
  for (int64_t n : {4095, 4097, 8191, 12289, 100003, 1000003}) {
    const Tensor x = full({n}, 0.1, {.dtype = f64});
    const double expected = 0.1 * static_cast<double>(n);
    BOOST_TEST(sum(x).item<double>() == expected, boost::test_tools::tolerance(1e-14));
    BOOST_TEST(sum(full({1}, 0.1, {.dtype = f64}).expand({n})).item<double>() == expected,
               boost::test_tools::tolerance(1e-14));
  }
  const Tensor counted = arange(0, 100000, 1, {.dtype = f64});
  BOOST_TEST(sum(counted).item<double>() == 4999950000.0);
  BOOST_TEST(amax(counted).item<double>() == 99999.0);
  BOOST_TEST(sum(counted.to(i64)).item<int64_t>() == 4999950000);
}

BOOST_AUTO_TEST_SUITE_END()
