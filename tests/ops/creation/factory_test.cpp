#include <limits>

#include <tenon/core/ops/shape.h>
#include <tenon/core/random.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(creation)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(filled_tensors) {
  require_values(full({2, 2}, 1.5), {2, 2}, {1.5, 1.5, 1.5, 1.5});
  require_values(full({2}, -3, {.dtype = i64}), {2}, {-3, -3});
  require_values(ones({2}, {.dtype = boolean}).to(i64), {2}, {1, 1});
  require_values(zeros_like(full({3}, 2, {.dtype = f64})), {3}, {0, 0, 0});
  BOOST_CHECK(ones_like(ints({1}, {1})).dtype() == i64);
  BOOST_CHECK_EQUAL(empty({0, 4}).numel(), 0);
  BOOST_CHECK(zeros({1}, {.requires_grad = true}).requires_grad());
  BOOST_CHECK(zeros({1}, {.device = "cpu:1"}).device() == Device("cpu:1"));
}

BOOST_AUTO_TEST_CASE(bools_are_true_where_the_value_is_not_zero) {
  for (double value : {0.5, -0.5, 1e-300, 2.0, std::nan("")}) {
    require_values(full({2}, value, {.dtype = boolean}).to(i64), {2}, {1, 1});
    Tensor x = zeros({2}, {.dtype = boolean});
    require_values(x.fill_(value).to(i64), {2}, {1, 1});
    require_values(doubles({value}, {1}).to(boolean).to(i64), {1}, {1});
  }
  require_values(full({2}, -0.0, {.dtype = boolean}).to(i64), {2}, {0, 0});
  // A value that an integer dtype does not hold.
  for (double value : {300.0, 256.0, -1.0})
    require_error<ValueError>([&] { full({2}, value, {.dtype = u8}); },
                              "has no value in u8; give a dtype that holds it");
  require_error<ValueError>([] { full({2}, 1LL << 31, {.dtype = i32}); }, "has no value in i32");
  require_error<ValueError>([] { zeros({2}, {.dtype = u8}).fill_(-1); },
                            "fill_: the number -1 has no value in u8");
  require_values(full({2}, 255.9, {.dtype = u8}), {2}, {255, 255});
  for (double value : {std::nan(""), static_cast<double>(INFINITY), 1e30})
    require_error<ValueError>([&] { full({2}, value, {.dtype = i64}); }, "has no value in i64");
}

BOOST_AUTO_TEST_CASE(ranges) {
  require_values(arange(0, 5), {5}, {0, 1, 2, 3, 4});
  require_values(arange(1, 2, 0.25, {.dtype = f64}), {4}, {1, 1.25, 1.5, 1.75});
  require_values(arange(5, 0, -2, {.dtype = i64}), {3}, {5, 3, 1});
  require_values(arange(0, 0), {0}, {});
  require_values(arange(3), {3}, {0, 1, 2});
  require_values(arange(2.5), {3}, {0, 1, 2});
  for (const Tensor& x : {arange(1, 3, f64), arange(1, 3, {.dtype = f64})}) {
    require_values(x, {2}, {1, 2});
    BOOST_TEST(x.dtype() == f64);
  }
  for (const Tensor& x : {arange(2, i64), arange(2, {.dtype = i64})}) {
    require_values(x, {2}, {0, 1});
    BOOST_TEST(x.dtype() == i64);
  }
  // Integers are exact, where doubles would round.
  const int64_t large = int64_t{1} << 53, most = std::numeric_limits<int64_t>::max();
  BOOST_CHECK(arange(large, large + 3, 1, {.dtype = i64}).to_vector<int64_t>() ==
              (std::vector<int64_t>{large, large + 1, large + 2}));
  BOOST_CHECK(arange(most - 1, most, 5, {.dtype = i64}).to_vector<int64_t>() ==
              std::vector<int64_t>{most - 1});
  BOOST_CHECK(arange(most, -most, -most, {.dtype = i64}).to_vector<int64_t>() ==
              (std::vector<int64_t>{most, 0}));
  BOOST_CHECK_EQUAL(arange(-most, most, most, {.dtype = i64}).numel(), 2);
  require_error<ValueError>([&] { arange(large + 1, large); }, "never leads");
  require_error<ValueError>([&] { arange(-most, most); }, "more than can be addressed");
  require_error<ValueError>([] { arange(0, 5, 0); }, "arange");
  require_error<ValueError>([] { arange(0, 300, 1, {.dtype = u8}); },
                            "arange: the number 299 has no value in u8");
  require_error<ValueError>([&] { arange(large, large + 3, 1, {.dtype = i32}); },
                            "has no value in i32");
  BOOST_TEST(arange(255, -1, -255, {.dtype = u8}).to_vector<uint8_t>() ==
             (std::vector<uint8_t>{255, 0}));
  require_error<ValueError>([] { arange(0, 5, -1); }, "never leads");
  require_error<ValueError>([] { arange(0, std::numeric_limits<double>::infinity()); }, "finite");
}

BOOST_AUTO_TEST_CASE(host_values) {
  std::vector<float> values = {1.5f, 2.5f};
  require_values(tensor(values, {2}, {.dtype = f64}), {2}, {1.5, 2.5});
  require_values(tensor({1.f, 2.f}, {2, 1}), {2, 1}, {1, 2});
  require_error<ShapeError>([&] { tensor(values, {3}); }, "2 values given for shape (3,)");
  require_error<ValueError>([] { from_host(nullptr, f32, {1}, {}); }, "null pointer");
  require_error<ShapeError>([] { zeros({-1}); }, "negative");
  require_error<Error>([] { empty({1LL << 40, 1LL << 40}); }, "more elements");
}

BOOST_AUTO_TEST_CASE(random_values_follow_the_seed) {
  manual_seed(42);
  Tensor a = rand({1000}), b = randn({1000}, {.dtype = f64}), c = randint(-3, 4, {1000});
  manual_seed(42);
  require_equal(rand({1000}), a);
  require_equal(randn({1000}, {.dtype = f64}), b);
  require_equal(randint(-3, 4, {1000}), c);
  BOOST_CHECK(rand({1000}).to_vector<float>() != a.to_vector<float>());

  for (float v : a.to_vector<float>()) BOOST_REQUIRE(v >= 0 && v < 1);
  BOOST_CHECK_SMALL(mean(a).item() - 0.5, 6 * 0.289 / std::sqrt(1000));
  BOOST_CHECK_SMALL(mean(b).item(), 6 / std::sqrt(1000));
  BOOST_CHECK_CLOSE(tenon::std(b).item(), 1.0, 15);
  BOOST_CHECK_EQUAL(amin(c).item<int64_t>(), -3);
  BOOST_CHECK_EQUAL(amax(c).item<int64_t>(), 3);
  require_error<ValueError>([] { randint(3, 3, {1}); }, "low < high");
  require_error<ValueError>([] { randint(0, 1LL << 40, {1}, {.dtype = i32}); },
                            "high 1099511627776 do not fit into i32");
  require_error<ValueError>([] { randint(0, 257, {1}, {.dtype = u8}); },
                            "low 0 and high 257 do not fit into u8");
}

// Kernels rely on 0 and 1.
BOOST_AUTO_TEST_CASE(bytes_of_bools_that_are_not_0_become_1) {
  const std::vector<uint8_t> bytes = {0, 1, 2, 255, 128};
  const Tensor x = from_host(bytes.data(), boolean, {5});
  BOOST_TEST(x.to_vector<uint8_t>() == (std::vector<uint8_t>{0, 1, 1, 1, 1}),
             boost::test_tools::per_element());
  require_values(sum(x), {}, {4});
  require_values(sum(eq(x, true)), {}, {4});
}

BOOST_AUTO_TEST_CASE(random_mutators) {
  Tensor x = zeros({4, 100});
  uint64_t version = x.version();
  x.uniform_(2, 3);
  BOOST_CHECK_GT(x.version(), version);
  for (float v : x.to_vector<float>()) BOOST_REQUIRE(v >= 2 && v < 3);
  // A strided target gets its values too, and nothing beside it changes.
  Tensor y = zeros({4, 100});
  y.t().narrow(0, 0, 50).normal_(10, 0.5);
  BOOST_CHECK_CLOSE(mean(y.narrow(1, 0, 50)).item(), 10.0, 5);
  BOOST_CHECK_EQUAL(amax(y.narrow(1, 50, 50)).item(), 0);
  require_error<DTypeError>([] { zeros({1}, {.dtype = i64}).uniform_(); },
                            "uniform_: the tensor must be floating");
  require_error<ValueError>([&] { x.normal_(0, -1); }, "must not be negative");
  require_error<ValueError>([&] { x.uniform_(1, 0); }, "low <= high");
}

BOOST_AUTO_TEST_CASE(a_type_that_is_named_is_the_dtype) {
  BOOST_TEST((tensor({1, 2}).dtype() == f32));
  BOOST_TEST((tensor({true, false}).dtype() == boolean));
  BOOST_TEST((tensor<bool>({true, false}).dtype() == boolean));
  BOOST_TEST((tensor<bool>({true, false}, {2, 1}).dtype() == boolean));
  BOOST_TEST((tensor<int64_t>({1, 2}).dtype() == i64));
  BOOST_TEST((tensor<double>({0.1, 2}, {2, 1}).dtype() == f64));
  BOOST_TEST(tensor<double>({0.1}).item<double>() == 0.1);
  BOOST_TEST((tensor<int64_t>({1, 2}, {2}, {.dtype = f32}).dtype() == f32));
}

BOOST_AUTO_TEST_SUITE_END()
