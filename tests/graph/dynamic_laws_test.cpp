// How sizes follow from calls of other sizes, and how it is found that they do not.
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"
#include "random_functions.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(dynamic_laws_test)

using namespace tenon;
using test::Choices;
using test::require_error;
using test::same_bits;
using test::says;

namespace {

template <class Compiled>
int calls_recorded(const Compiled& compiled) {
  const std::string text = compiled.explain();
  return std::atoi(text.c_str() + text.find(": ") + 2);
}

// A size that follows from another by divisions and sums, and is no larger.
std::function<int64_t(int64_t)> any_size(Choices& c) {
  const auto q = static_cast<int64_t>(2 + c.below(8)), a = static_cast<int64_t>(1 + c.below(5)),
             b = static_cast<int64_t>(2 + c.below(7)), add = static_cast<int64_t>(c.below(5));
  switch (c.below(7)) {
    case 0:
      return [=](int64_t n) { return n / q; };
    case 1:
      return [=](int64_t n) { return (n + q - 1) / q; };
    case 2:
      return [=](int64_t n) { return n * a / (a + b); };
    case 3:
      return [=](int64_t n) { return n % q; };
    case 4:
      return [](int64_t n) { return (n / 2 + 1) / 2; };
    case 5:
      return [=](int64_t n) { return n - n / q; };
    default:
      return [=](int64_t n) { return n > add ? n - add : 0; };
  }
}

// Sizes in any order, in a growing or a falling one, or multiples of 8 and now and then another.
std::vector<int64_t> any_order(Choices& c, int64_t calls) {
  const auto least = static_cast<int64_t>(2 + c.below(29)),
             range = static_cast<int64_t>(10 + c.below(51));
  const size_t order = c.below(4);
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < calls; ++i) {
    const auto any = static_cast<int64_t>(c.below(static_cast<size_t>(range) + 1)),
               eighth = static_cast<int64_t>(1 + c.below(12)),
               less = static_cast<int64_t>(1 + c.below(7));
    if (order == 0) sizes.push_back(least + any);
    if (order == 1) sizes.push_back(least + i * range / calls);
    if (order == 2) sizes.push_back(least + range - i * range / calls);
    if (order == 3) sizes.push_back(8 * eighth - (i % 9 == 8 ? less : 0));
  }
  return sizes;
}

}  // namespace

// A line through the numbers of three sizes often does not fit other sizes.
BOOST_AUTO_TEST_CASE(random_functions_of_sizes_have_the_values_of_the_function) {
  constexpr int64_t kCalls = 40;
  const Tensor table = arange(400.0);
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Choices c(seed);
    const auto size = any_size(c), other = any_size(c);
    const size_t use = c.below(4);
    const auto f = [&](const Tensor& x, const Tensor& y) {
      const int64_t n = x.size(0), m = size(n), k = other(y.size(0));
      if (use == 0) return x.narrow(0, 0, m) * 2.0;
      if (use == 1) return table.narrow(0, m, 8) * x.sum();
      if (use == 2) return cat({x, ones({m})}, 0) * 2.0;
      return cat({x.narrow(0, 0, m), y.narrow(0, 0, k)}, 0) * 2.0;
    };
    auto compiled = compile(f, {.dynamic = {0}});
    for (const int64_t n : any_order(c, kCalls)) {
      const Tensor x = randn({n}),
                   y = randn({use == 3 ? static_cast<int64_t>(2 + c.below(19)) : 5});
      BOOST_TEST_CONTEXT("function " << seed << ", size " << n)
      BOOST_REQUIRE(same_bits(compiled(x, y), f(x, y)));
    }
  }
}

// (n + 1) / 6 is n / 5 for these, and not for others.
BOOST_AUTO_TEST_CASE(a_law_that_was_none_makes_room_for_the_right_one) {
  int runs = 0;
  auto fifths = compile(
      [&](const Tensor& x) {
        ++runs;
        return x.narrow(0, 0, x.size(0) / 5) * 2.0;
      },
      {.dynamic = {0}});
  const auto require_right = [&](int64_t n) {
    BOOST_TEST_CONTEXT("size " << n)
    BOOST_TEST(same_bits(fifths(ones({n})), full({n / 5}, 2.0)));
  };
  for (const int64_t n : {11, 17, 23, 29, 35, 20, 25, 30, 10, 40, 45, 95}) require_right(n);
  const int before = runs;
  for (const int64_t n : {50, 55, 15}) require_right(n);
  BOOST_TEST(runs == before);
  BOOST_TEST(!says(fifths, "was found to differ by size"));
}

// 2/3 of these sizes are 5/7 of them as well, but not of those that follow.
BOOST_AUTO_TEST_CASE(fractions_that_are_alike_for_long) {
  struct Fraction {
    int64_t a, b, first, step;
  };
  for (const auto& [a, b, first, step] :
       {Fraction{5, 7, 14, 3}, {7, 15, 24, 1}, {4, 11, 8, 8}, {4, 13, 9, 3}, {2, 3, 6, 2}}) {
    const auto f = [a = a, b = b](const Tensor& x) {
      return x.narrow(0, 0, x.size(0) * a / b) * 2.0;
    };
    auto compiled = compile(f, {.dynamic = {0}});
    for (int64_t i = 0; i < 30; ++i) {
      const Tensor x = randn({first + i * step});
      BOOST_TEST_CONTEXT(a << "/" << b << " of " << x.size(0))
      BOOST_REQUIRE(same_bits(compiled(x), f(x)));
    }
  }
}

// The gradient of a mean divides by the number of all elements: 1 / (10 n) and not 0.1 / n, whose
// bits are others for some sizes.
BOOST_AUTO_TEST_CASE(gradients_of_means_follow_from_sizes) {
  using Loss = Tensor (*)(const Tensor&, const Tensor&);
  const Loss losses[] = {
      [](const Tensor& x, const Tensor& y) { return huber_loss(x, y); },
      [](const Tensor& x, const Tensor& y) { return smooth_l1_loss(x, y, Reduction::mean, 0.5); },
      [](const Tensor& x, const Tensor& y) { return mse_loss(x, y); },
      [](const Tensor& x, const Tensor& y) { return l1_loss(x, y); }};
  for (const auto loss : losses)
    for (const int64_t columns : {3, 10, 100}) {
      const Tensor w = randn({columns}).requires_grad_(), v = w.detach().clone().requires_grad_();
      auto compiled = compile([&](const Tensor& x, const Tensor& y) { return loss(x * w, y); },
                              {.dynamic = {0}});
      for (const int64_t n : {33, 34, 21, 51, 32, 19, 24, 40, 42, 6, 7, 49, 57, 98, 103}) {
        const Tensor x = randn({n, columns}), y = randn({n, columns});
        compiled(x, y).backward();
        loss(x * v, y).backward();
        BOOST_TEST_CONTEXT(columns << " columns of " << n)
        BOOST_REQUIRE(same_bits(w.grad(), v.grad()));
      }
      BOOST_TEST(calls_recorded(compiled) <= 9, compiled.explain());
    }
}

// Multiples of 8 tell nothing of what is none.
BOOST_AUTO_TEST_CASE(a_size_between_multiples_is_compared_first) {
  const auto f = [](const Tensor& x) { return x * static_cast<double>(x.size(0) / 4 * 4); };
  auto compiled = compile(f, {.dynamic = {0}});
  for (const int64_t n : {16, 48, 8, 32, 24, 40})
    BOOST_TEST(same_bits(compiled(ones({n})), f(ones({n}))));
  require_error<ValueError>([&] { compiled(ones({30})); }, "number 0 of mul",
                            "was 30, and then 28");
}

// The sizes that lie far from all others follow from nothing, so that there is nothing to compare.
BOOST_AUTO_TEST_CASE(far_sizes_that_do_not_follow_take_turns_as_all_others) {
  auto compiled = compile(
      [](const Tensor& x) {
        const int64_t n = x.size(0);
        return x.narrow(0, 0, n % 2 ? n * n % 7 + 2 : n / 2) * 2.0;
      },
      {.dynamic = {0}});
  for (const int64_t n : {8, 12, 10, 20, 26, 16}) compiled(ones({n}));
  for (int round = 0; round < 20; ++round)
    for (int64_t n = 1001; n < 1025; n += 2) compiled(ones({n}));
  BOOST_TEST(calls_recorded(compiled) < 60);
  BOOST_TEST(says(compiled, "more kinds of arguments take turns"));
}

BOOST_AUTO_TEST_CASE(what_no_law_tells_is_found_and_not_derived_any_more) {
  auto compiled = compile([](const Tensor& x) { return x.size(0) % 4 == 0 ? relu(x) : x * 2.0; },
                          {.dynamic = {0}});
  for (const int64_t n : {5, 6, 7, 9}) compiled(ones({n}));
  // The next size is recorded and compared.
  BOOST_TEST(same_bits(compiled(ones({8})), ones({8})));
  BOOST_TEST(says(compiled, "was found to differ by size"));
  for (int64_t round = 0; round < 3; ++round)
    for (const int64_t n : {10, 11, 13, 14, 12}) compiled(ones({n}));
  BOOST_TEST(same_bits(compiled(ones({16})), ones({16})));
}

BOOST_AUTO_TEST_CASE(a_number_that_does_not_follow_is_an_error) {
  auto compiled =
      compile([](const Tensor& x) { return x * (x.size(0) == 8 ? 3.0 : 2.0); }, {.dynamic = {0}});
  for (const int64_t n : {5, 6, 7, 9}) compiled(ones({n}));
  require_error<ValueError>([&] { compiled(ones({8})); }, "number 0 of mul", "was 2, and then 3");
  BOOST_TEST(same_bits(compiled(ones({8})), full({8}, 3.0)));
}

// Sizes with a law follow, and so do those between, which have another one.
BOOST_AUTO_TEST_CASE(sizes_of_different_remainders_have_laws_of_their_own) {
  int runs = 0;
  auto halves = compile(
      [&](const Tensor& x) {
        ++runs;
        return x.narrow(0, 0, x.size(0) / 2) * 2.0;
      },
      {.dynamic = {0}});
  for (int64_t n = 4; n < 80; ++n) BOOST_TEST(same_bits(halves(ones({n})), full({n / 2}, 2.0)));
  BOOST_TEST(runs <= 50);
  // Three fifths lie on a line that is not that of others.
  auto fifths = compile([](const Tensor& x) { return x.narrow(0, 0, x.size(0) / 5) * 2.0; },
                        {.dynamic = {0}});
  for (const int64_t n : {20, 11, 17, 23, 35})
    BOOST_TEST(same_bits(fifths(ones({n})), full({n / 5}, 2.0)));
  // Squares lie on no line, whatever is left out.
  auto none =
      compile([](const Tensor& x) { return x.narrow(0, 0, x.size(0) * x.size(0) % 7 + 2) * 2.0; },
              {.dynamic = {0}});
  for (const int64_t n : {11, 13, 12, 14, 19}) none(ones({n}));
  BOOST_TEST(says(none, "does not follow from sizes of arguments"));
}

BOOST_AUTO_TEST_CASE(a_size_far_from_all_others_is_compared_first) {
  int runs = 0;
  auto compiled = compile(
      [&](const Tensor& x) {
        ++runs;
        return x.size(0) > 100 || x.size(0) < 4 ? relu(x) : x * 2.0;
      },
      {.dynamic = {0}});
  for (const int64_t n : {9, 10, 12, 13, 14, 15, 16, 17, 18}) compiled(ones({n}));
  const int before = runs;
  BOOST_TEST(same_bits(compiled(ones({40})), full({40}, 2.0)));
  BOOST_TEST(runs == before + 1);
  BOOST_TEST(same_bits(compiled(ones({60})), full({60}, 2.0)));
  BOOST_TEST(runs == before + 1);
  BOOST_TEST(same_bits(compiled(ones({101})), ones({101})));
  BOOST_TEST(same_bits(compiled(ones({3})), ones({3})));
}

BOOST_AUTO_TEST_SUITE_END()
