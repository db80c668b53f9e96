#include <limits>

#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(shape)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(conversions) {
  Tensor x = doubles({-1.9, 0, 2.9}, {3});
  require_values(x.to(i64), {3}, {-1, 0, 2});
  require_values(x.to(boolean).to(i64), {3}, {1, 0, 1});
  require_values(x.to(f32), {3}, {-1.9, 0, 2.9});
  require_values(x.to(f16).to(f64), {3}, {-1.9, 0, 2.9}, 1e-3);
  require_values(x.to(bf16).to(f64), {3}, {-1.9, 0, 2.9}, 1e-2);
  BOOST_CHECK(x.to(f64).is_same(x));
  BOOST_CHECK(std::isnan(doubles({std::nan("")}, {1}).to(f16).to(f64).item()));
}

// Every value that a half type has stays itself. What lies between two of them goes to the nearer
// one, and from the middle to the even one.
BOOST_AUTO_TEST_CASE(half_types_hold_their_values_and_round_to_the_nearest) {
  struct Half {
    DType dtype;
    int bits, least;  // of the mantissa; the exponent of the smallest normal number
    float first_infinite;
  };
  for (const Half half : {Half{f16, 10, -14, 65520.0f}, Half{bf16, 7, -126, 0x1.ffp127f}}) {
    std::vector<float> values, between, nearest;
    const int last = half.dtype == f16 ? 15 : 127, steps = 1 << half.bits;
    for (int e = half.least - 1; e <= last; ++e)
      for (int m = 0; m < steps; ++m) {
        const bool normal = e >= half.least;  // below lie the denormals
        const int scale = (normal ? e : half.least) - half.bits;
        const auto value = [&](double units) {
          return static_cast<float>(std::ldexp(units + (normal ? steps : 0), scale));
        };
        values.push_back(value(m));
        values.push_back(-value(m));
        if (e == last && m + 1 == steps) continue;  // the next one is infinite
        for (double part : {0.49, 0.5, 0.51}) {
          between.push_back(value(m + part));
          nearest.push_back(value(part > 0.5 || (part == 0.5 && m % 2) ? m + 1 : m));
        }
      }
    const auto through = [&](const std::vector<float>& list) {
      return floats(list, {static_cast<int64_t>(list.size())})
          .to(half.dtype)
          .to(f32)
          .to_vector<float>();
    };
    BOOST_TEST((through(values) == values));
    BOOST_TEST((through(between) == nearest));
    const float inf = std::numeric_limits<float>::infinity(),
                just_below = std::nextafter(half.first_infinite, 0.0f);
    require_values(floats({half.first_infinite, -inf, std::nanf("")}, {3}).to(half.dtype).to(f32),
                   {3}, {inf, -inf, std::nan("")}, 0);
    BOOST_TEST(std::isfinite(through({just_below})[0]));
    // Alike in rows of any length.
    for (int64_t n = 1; n < 20; ++n) {
      const std::vector<float> some(between.end() - n, between.end());
      BOOST_TEST((through(some) == std::vector<float>(nearest.end() - n, nearest.end())));
    }
  }
}

BOOST_AUTO_TEST_CASE(gradients_travel_back_through_types_and_devices) {
  Tensor x = sample({2, 3}).requires_grad_();
  Tensor far = x.t().to(Device("cpu:1"));
  BOOST_CHECK(far.device() == Device("cpu:1"));
  require_equal(far.to(Device("cpu:0")), x.t());
  sum(square(far)).backward();
  BOOST_CHECK(x.grad().device() == x.device());
  require_equal(x.grad(), x.detach() * 2, 1e-12);

  Tensor y = sample({3}).requires_grad_();
  sum(y.to(f32) * 2).backward();
  BOOST_CHECK(y.grad().dtype() == f64);
  require_values(y.grad(), {3}, {2, 2, 2});
}

BOOST_AUTO_TEST_CASE(an_integer_result_has_no_gradient) {
  Tensor x = sample({3}).requires_grad_();
  BOOST_CHECK(!x.to(i64).requires_grad());
  BOOST_CHECK(!gt(x, 0).requires_grad());
}

BOOST_AUTO_TEST_CASE(copy_into_a_tensor) {
  Tensor x = zeros({2, 3}, {.dtype = f64});
  x.copy_(ints({1, 2, 3}, {3}));
  require_values(x, {2, 3}, {1, 2, 3, 1, 2, 3});
  x.t().copy_(doubles({0, 1, 2, 3, 4, 5}, {3, 2}));
  require_values(x, {2, 3}, {0, 2, 4, 1, 3, 5});
  x.select(0, 1).fill_(7);
  require_values(x, {2, 3}, {0, 2, 4, 7, 7, 7});
  x.copy_(x);
  require_values(x, {2, 3}, {0, 2, 4, 7, 7, 7});
  x.copy_(full({2, 3}, 9, {.device = "cpu:1"}));
  require_values(x, {2, 3}, {9, 9, 9, 9, 9, 9});
}

BOOST_AUTO_TEST_CASE(overlapping_copies_read_before_they_write) {
  Tensor x = arange(0, 6);
  x.narrow(0, 1, 5).copy_(x.narrow(0, 0, 5));
  require_values(x, {6}, {0, 0, 1, 2, 3, 4});
  Tensor y = arange(0, 4).reshape({2, 2});
  y.copy_(y.t());
  require_values(y, {2, 2}, {0, 2, 1, 3});
}

// Rows of some kilobytes whose places within a cache line differ are not left to the C library.
BOOST_AUTO_TEST_CASE(long_rows_are_copied_from_any_place_to_any_other) {
  for (const DType dtype : {u8, f16, f32, f64})
    for (const int64_t cols : {2047, 2600})
      for (const int64_t from : {0, 1, 3, 8}) {
        const int64_t width = cols + 9, to = 5;
        const auto value = [&](int64_t row, int64_t col) {
          return static_cast<double>((row * width + col) % 251);
        };
        Tensor x = (arange(0, 3 * width) % 251).to(dtype).reshape({3, width});
        Tensor part = zeros({3, width}).to(dtype), rows = index_select(x, 0, ints({2, 0, 1}, {3}));
        part.narrow(1, to, cols).copy_(x.narrow(1, from, cols));
        const Tensor rolled = roll(x, from, 1);
        std::vector<double> parts, moved, chosen;
        for (int64_t r = 0; r < 3; ++r)
          for (int64_t c = 0; c < width; ++c) {
            const bool inside = c >= to && c < to + cols;
            parts.push_back(inside ? value(r, c - to + from) : 0);
            moved.push_back(value(r, (c - from + width) % width));
            chosen.push_back(value((r + 2) % 3, c));
          }
        BOOST_TEST((part.to(f64).to_vector<double>() == parts));
        BOOST_TEST((rolled.to(f64).to_vector<double>() == moved));
        BOOST_TEST((rows.to(f64).to_vector<double>() == chosen));
      }
}

BOOST_AUTO_TEST_CASE(refused_changes) {
  Tensor x = zeros({2, 3}), leaf = zeros({2}).requires_grad_();
  require_error<ShapeError>([&] { x.copy_(zeros({2, 2})); }, "copy_");
  require_error<ShapeError>(
      [&] { zeros({3}).copy_(x); },
      "copy_: a source of shape (2, 3) does not fit into a tensor of shape (3,)");
  require_error<ValueError>(
      [&] {
        zeros({1, 3}).expand({2, 3}).fill_(1);
      },
      "share one place in memory");
  require_error<AutogradError>([&] { leaf.fill_(1); },
                               "fill_: changes a tensor in place that requires a gradient");
  require_error<AutogradError>([&] { zeros({2}).copy_(leaf); }, "use source.detach()");
  no_grad([&] { leaf.fill_(1); });
  require_values(leaf.detach(), {2}, {1, 1});
  require_error<ValueError>([&] { Tensor().fill_(1); }, "undefined");
}

BOOST_AUTO_TEST_SUITE_END()
