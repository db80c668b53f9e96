// Integers, bools and mixed types: exact results, and the types that PyTorch gives them.
#include <limits>

#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(pointwise)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(whole_powers_are_exact) {
  auto whole = [](const Tensor& found, DType dtype, const std::vector<int64_t>& expected) {
    BOOST_CHECK(found.dtype() == dtype);
    BOOST_TEST(found.to(i64).to_vector<int64_t>() == expected, boost::test_tools::per_element());
  };
  const int64_t most = std::numeric_limits<int64_t>::min();
  whole(pow(ints({3, -3, 0, 1, -1}, {5}), 39), i64,
        {4052555153018976267, -4052555153018976267, 0, 1, -1});
  whole(pow(ints({7, 0, most}, {3}), 0), i64, {1, 1, 1});
  whole(pow(ints({3037000499, 10}, {2}), ints({2, 18}, {2})), i64,
        {9223372030926249001, 1000000000000000000});
  whole(pow(ints({2, -1, 1, 0, -2, -1, -1}, {7}), ints({-1, -1, -3, -1, -2, -2, most}, {7})), i64,
        {0, -1, 1, 0, 0, 1, 1});
  whole(pow(2, ints({62, 63, 64, -1}, {4})), i64, {4611686018427387904, most, 0, 0});
  whole(pow(ints({2, 3}, {2}).to(i32), 31), i32, {std::numeric_limits<int32_t>::min(), 1264544299});
  whole(pow(ints({1, -1, 3}, {3}).to(i32), int64_t{1} << 33 | 1), i32, {1, -1, 3});
  whole(pow(ints({2, 3}, {2}).to(u8), 9), u8, {0, 227});
  whole(pow(ints({2, 3}, {2, 1}).to(u8), ints({1, 2, 3}, {3}).to(i64)), i64, {2, 4, 8, 3, 9, 27});
  whole(pow(bools({1, 0}, {2}), 2), i64, {1, 0});
  whole(pow(bools({1, 0}, {2}), ints({5, 0}, {2})), i64, {1, 1});
  BOOST_CHECK(pow(ints({2}, {1}), 2.0).dtype() == f32);
  BOOST_CHECK(pow(2.0, ints({2}, {1})).dtype() == f32);
  BOOST_CHECK(pow(ints({2}, {1}), floats({-1}, {1})).dtype() == f32);
  BOOST_TEST(pow(ints({2}, {1}), -1.0).to_vector<float>()[0] == 0.5f);
  require_error<ValueError>(
      [] { pow(ints({2}, {1}), -1); },
      "pow: an integer tensor cannot be raised to a negative integer power; found a "
      "tensor of type i64 and the exponent -1; convert it with "
      ".to(tenon::f32), or give a floating exponent such as -1.0");
  require_error<DTypeError>([] { pow(bools({1}, {1}), bools({1}, {1})); },
                            "pow: both are bool, but one must be a number");
}

// Cut to its low bits, the number would compare as another one.
BOOST_AUTO_TEST_CASE(numbers_that_an_integer_tensor_does_not_hold_are_not_compared) {
  const Tensor bytes = ints({0, 1, 255}, {3}).to(u8), words = ints({1, 2, 3}, {3}).to(i32);
  const int64_t huge = int64_t{1} << 40;
  require_error<ValueError>([&] { gt(bytes, -1); }, "gt: the number -1 has no value in u8");
  require_error<ValueError>([&] { eq(bytes, 256); }, "eq: the number 256 has no value in u8");
  require_error<ValueError>([&] { maximum(bytes, 300); }, "maximum: the number 300");
  require_error<ValueError>([&] { lt(words, huge); }, "has no value in i32");
  require_error<ValueError>([&] { minimum(words, huge); }, "minimum");
  require_error<ValueError>([&] { where(eq(words, 1), huge, words); }, "where: the number");
  BOOST_TEST(gt(bytes.to(i64), -1).to_vector<uint8_t>() == std::vector<uint8_t>(3, 1));
  BOOST_TEST(lt(words, 1e20).to_vector<uint8_t>() == std::vector<uint8_t>(3, 1));
}

BOOST_AUTO_TEST_CASE(types_are_promoted_as_by_pytorch) {
  Tensor whole = ints({7, 2}, {2}), single = floats({0.5f, 1.5f}, {2}),
         twice = doubles({1, 2}, {2});
  BOOST_CHECK(add(whole, 1).dtype() == i64);
  BOOST_CHECK(add(whole, 1.5).dtype() == f32);
  BOOST_CHECK(div(whole, whole).dtype() == f32);
  BOOST_CHECK(exp(whole).dtype() == f32);
  BOOST_CHECK(add(whole, single).dtype() == f32);
  BOOST_CHECK(add(single, twice).dtype() == f64);
  BOOST_CHECK(add(single, scalar(1, {.dtype = f64})).dtype() == f32);
  BOOST_CHECK(add(whole, scalar(1, {.dtype = f64})).dtype() == f64);
  BOOST_CHECK(add(eq(whole, whole), 1).dtype() == i64);
  require_values(div(whole, 2), {2}, {3.5, 1});
  require_values(1 - whole, {2}, {-6, -1});
  require_values(clamp(whole, 3, std::nullopt), {2}, {7, 3});
  require_values(eq(whole, 2.5).to(i64), {2}, {0, 0});
  require_values(logical_and(whole, ints({1, 0}, {2})).to(i64), {2}, {1, 0});
}

// As in PyTorch: sums and larger elements of truth values are their "or", products and smaller ones
// their "and".
BOOST_AUTO_TEST_CASE(arithmetic_on_bools) {
  const Tensor a = bools({1, 1, 0, 0}, {4}), b = bools({1, 0, 1, 0}, {4}),
               column = bools({1, 0}, {2, 1});
  for (auto device : {"cpu:0", "cpu:1"}) {
    const Tensor x = a.to(device), y = b.to(device);
    for (const Tensor& either : {x + y, maximum(x, y)}) {
      BOOST_CHECK(either.dtype() == boolean);
      require_values(either.to(i64), {4}, {1, 1, 1, 0});
    }
    for (const Tensor& both : {x * y, minimum(x, y)}) {
      BOOST_CHECK(both.dtype() == boolean);
      require_values(both.to(i64), {4}, {1, 0, 0, 0});
    }
  }
  require_values((column * a).to(i64), {2, 4}, {1, 1, 0, 0, 0, 0, 0, 0});
  BOOST_CHECK((a + ints({1, 2, 3, 4}, {4})).dtype() == i64);
}

// A bool beside a tensor is no integer.
BOOST_AUTO_TEST_CASE(bools_as_numbers) {
  const Tensor flags = bools({1, 0}, {2});
  const auto whole = [](const Tensor& x) { return x.to(i64).to_vector<int64_t>(); };
  using Values = std::vector<int64_t>;
  const auto check = [&](const Tensor& x, DType dtype, const Values& values) {
    BOOST_CHECK(x.dtype() == dtype);
    BOOST_TEST(whole(x) == values, boost::test_tools::per_element());
  };
  check(flags + true, boolean, {1, 1});
  check(flags * false, boolean, {0, 0});
  check(maximum(flags, true), boolean, {1, 1});
  check(pow(flags, true), boolean, {1, 0});
  check(pow(flags, false), boolean, {1, 1});
  check(eq(flags, true), boolean, {1, 0});
  check(where(flags, false, flags), boolean, {0, 0});
  check(flags + 1, i64, {2, 1});
  check(ints({3, 4}, {2}).to(u8) + true, u8, {4, 5});
  check(div(flags, true), f32, {1, 0});
  require_error<DTypeError>([&] { flags - true; }, "sub: a has dtype bool");
}

BOOST_AUTO_TEST_CASE(gradients_pass_through_promotion) {
  Tensor x = floats({1, 2}, {2});
  x.requires_grad_();
  sum(x * doubles({3, 4}, {2})).backward();
  BOOST_CHECK(x.grad().dtype() == f32);
  require_values(x.grad(), {2}, {3, 4});
}

BOOST_AUTO_TEST_SUITE_END()
