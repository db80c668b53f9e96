// The onednn overlay computes what the base plugin computes: the same requests to both, made and
// run with their tables alone.
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "onednn_agree.h"

BOOST_AUTO_TEST_SUITE(onednn_test)

using namespace tenon;
using namespace tenon::test;
using namespace tenon::test::overlaid;

BOOST_AUTO_TEST_CASE(products_of_all_shapes_and_layouts, *where_built()) {
  int taken = 0;
  for (int i = 0; i < 120; ++i) {
    const int64_t large = i % 4 == 0 ? 300 : 40, m = draw(2, large), n = draw(2, large),
                  k = draw(1, large);
    const bool linear = draw(0, 1), bias = draw(0, 1);
    const Dims b = linear ? Dims{n, k} : Dims{k, n};
    Case c{
        linear ? "linear" : "matmul",
        {Desc({m, k}, TN_F32, matrix_strides(m, k)), Desc(b, TN_F32, matrix_strides(b[0], b[1]))},
        Desc({m, n})};
    if (linear) c.inputs.push_back(bias ? std::optional(Desc({n})) : std::nullopt);
    taken += agree(c, TN_F32, static_cast<double>(k) + 1) || k <= 4;  // which the base is to have
    taken += agree(c, TN_BF16, static_cast<double>(k) + 1) || may_be_refused(k);
  }
  BOOST_TEST(taken >= (has_bf16() ? 240 : 120));
}

BOOST_AUTO_TEST_CASE(batches_of_products, *where_built()) {
  for (int i = 0; i < 40; ++i) {
    const int64_t p = draw(1, 3), q = draw(1, 4), m = draw(2, 50), n = draw(2, 50), k = draw(1, 50);
    // One right operand for all, or one for each; rows that go on from matrix to matrix, or not.
    const Dims a = draw(0, 1) ? Dims{q * m * k, m * k, k, 1}
                              : Dims{q * (m + 1) * k, (m + 1) * k, k, 1},
               b = draw(0, 1) ? Dims{0, 0, n, 1} : Dims{q * k * n, k * n, 1, k};
    const Case c{"matmul",
                 {Desc({p, q, m, k}, TN_F32, a), Desc({p, q, k, n}, TN_F32, b)},
                 Desc({p, q, m, n})};
    BOOST_TEST(agree(c, TN_F32, static_cast<double>(k)) == (k > 4), text_of(c));
    if (has_bf16())
      BOOST_TEST((agree(c, TN_BF16, static_cast<double>(k)) || may_be_refused(k)), text_of(c));
  }
}

BOOST_AUTO_TEST_CASE(convolutions_in_all_directions, *where_built()) {
  int taken = 0, asked = 0, refused = 0;
  for (int i = 0; i < 60; ++i) {
    // Few channels and many, in blocks and not; images that the threads share evenly, and not.
    const bool wide = i % 3 == 0;
    const int64_t groups = draw(0, 4) == 0 ? draw(2, 3) : 1, n = draw(1, 7),
                  c = groups * (wide ? draw(1, 4) * 16 : draw(1, 20)),
                  o = groups * (wide ? draw(1, 5) * 16 : draw(1, 20)), kh = draw(1, 4),
                  kw = draw(1, 4), sh = draw(1, 2), sw = draw(1, 3), dh = draw(1, 2),
                  dw = draw(1, 2), ph = draw(0, (kh - 1) * dh), pw = draw(0, (kw - 1) * dw),
                  h = (kh - 1) * dh + draw(1, 14), w = (kw - 1) * dw + draw(1, 14),
                  oh = (h + 2 * ph - (kh - 1) * dh - 1) / sh + 1,
                  ow = (w + 2 * pw - (kw - 1) * dw - 1) / sw + 1;
    const Desc x({n, c, h, w}), weight({o, c / groups, kh, kw}), y({n, o, oh, ow});
    const std::vector<Attr> attrs = {Attr("stride", Dims{sh, sw}), Attr("padding", Dims{ph, pw}),
                                     Attr("dilation", Dims{dh, dw}), Attr("groups", groups)};
    const auto bias = draw(0, 1) ? std::optional(Desc({o})) : std::nullopt;
    const std::pair<Case, int64_t> directions[] = {
        {{"conv2d", {x, weight, bias}, y, attrs}, c / groups * kh * kw + 1},
        {{"conv2d_backward_input", {y, weight}, x, attrs}, o / groups * kh * kw},
        {{"conv2d_backward_weight", {y, x}, weight, attrs}, n * oh * ow}};
    for (auto& [direction, sums] : directions)
      for (auto dtype : {TN_F32, TN_BF16}) {
        if (dtype == TN_BF16 && !has_bf16()) continue;
        const bool agrees = agree(direction, dtype, static_cast<double>(sums));
        ++asked, taken += agrees;
        if (dtype == TN_BF16 && !agrees)
          refused += !has(refusal(direction, dtype), "f32 is faster");
      }
  }
  BOOST_TEST(refused == 0);  // of bf16, for other reasons
  // For those with groups that do not fill blocks, oneDNN has only reference code.
  BOOST_TEST(taken >= asked * 2 / 3, taken << " of " << asked);
}

// Several threads share what they read, or a thread reads and writes rows as they are.
BOOST_AUTO_TEST_CASE(large_convolutions_whose_reads_are_shared, *where_built()) {
  struct Size {
    int64_t n, c, side, o, kernel, stride;
  };
  for (const auto& [n, c, side, o, kernel, stride] : {Size{2, 256, 6, 256, 3, 1},
                                                      {5, 256, 5, 272, 3, 2},
                                                      {1, 64, 40, 64, 3, 1},
                                                      {3, 48, 45, 80, 3, 2},
                                                      {1, 64, 41, 128, 1, 2},
                                                      {8, 32, 30, 48, 1, 3},
                                                      {1, 256, 7, 256, 3, 1},
                                                      {1, 128, 14, 264, 3, 2}}) {
    const int64_t padding = kernel / 2, out = (side + 2 * padding - kernel) / stride + 1,
                  taps = kernel * kernel;
    const Desc x({n, c, side, side}), weight({o, c, kernel, kernel}), y({n, o, out, out});
    const std::vector<Attr> attrs = {Attr("stride", Dims{stride, stride}),
                                     Attr("padding", Dims{padding, padding}),
                                     Attr("dilation", Dims{1, 1}), Attr("groups", 1)};
    const std::pair<Case, int64_t> directions[] = {
        {{"conv2d", {x, weight, std::nullopt}, y, attrs}, c * taps},
        {{"conv2d_backward_input", {y, weight}, x, attrs}, o * taps},
        {{"conv2d_backward_weight", {y, x}, weight, attrs}, n * out * out}};
    for (auto& [direction, sums] : directions)
      for (auto dtype : {TN_F32, TN_BF16}) {
        const bool taken = agree(direction, dtype, static_cast<double>(sums));
        if (vector_lanes() >= 8)
          BOOST_TEST(taken == (dtype == TN_F32 || has_bf16()), text_of(direction));
      }
  }
}

// Few windows, far apart, on a small image: some elements of the kernel lie in the padding in all
// of them, and their gradient is 0.
BOOST_AUTO_TEST_CASE(elements_of_a_kernel_that_no_image_meets, *where_built()) {
  int taken = 0;
  for (int i = 0; i < 120; ++i) {
    const int64_t groups = draw(1, 2), n = draw(1, 3), c = groups * draw(1, 3) * (i % 2 ? 16 : 1),
                  o = groups * draw(1, 3) * (i % 3 ? 16 : 1), kh = draw(1, 2), kw = draw(2, 4),
                  sh = draw(1, 2), sw = draw(2, 5), pw = draw(1, kw - 1), h = kh + draw(0, 2),
                  w = std::max(kw - 2 * pw, int64_t{1}) + draw(0, 3), oh = (h - kh) / sh + 1,
                  ow = (w + 2 * pw - kw) / sw + 1;
    const Desc x({n, c, h, w}), weight({o, c / groups, kh, kw}), y({n, o, oh, ow});
    const std::vector<Attr> attrs = {Attr("stride", Dims{sh, sw}), Attr("padding", Dims{0, pw}),
                                     Attr("dilation", Dims{1, 1}), Attr("groups", groups)};
    for (auto dtype : {TN_F32, TN_BF16}) {
      if (dtype == TN_BF16 && !has_bf16()) continue;
      taken += agree({"conv2d_backward_weight", {y, x}, weight, attrs}, dtype,
                     static_cast<double>(n * oh * ow));
    }
  }
  BOOST_TEST(taken >= (has_bf16() ? 120 : 10));
}

BOOST_AUTO_TEST_CASE(averages_over_windows, *where_built()) {
  int taken = 0, asked = 0;
  for (int i = 0; i < 40; ++i) {
    const int64_t n = draw(1, 3), c = draw(1, 40), kh = draw(1, 5), kw = draw(1, 5),
                  sh = draw(1, 3), sw = draw(1, 3), ph = draw(0, kh / 2), pw = draw(0, kw / 2),
                  h = kh + draw(0, 12), w = kw + draw(0, 12), oh = (h + 2 * ph - kh) / sh + 1,
                  ow = (w + 2 * pw - kw) / sw + 1;
    const Desc x({n, c, h, w}), y({n, c, oh, ow});
    const std::vector<Attr> attrs = {Attr("kernel_size", Dims{kh, kw}),
                                     Attr("stride", Dims{sh, sw}), Attr("padding", Dims{ph, pw}),
                                     Attr("ceil_mode", false),
                                     Attr("count_include_pad", draw(0, 1) == 1)};
    for (auto dtype : {TN_F32, TN_BF16}) {
      if (dtype == TN_BF16 && !has_bf16()) continue;
      asked += 2;
      taken += agree({"avg_pool2d", {x}, y, attrs}, dtype, 2);
      taken += agree({"avg_pool2d_backward", {y}, x, attrs}, dtype, static_cast<double>(kh * kw));
    }
  }
  // Without AVX-512, oneDNN's code for plain layouts is slow, and averages stay with cpu.
  if (has_bf16()) BOOST_TEST(taken >= asked / 2, taken << " of " << asked);
  const std::vector<Attr> over = {Attr("kernel_size", Dims{2, 2}), Attr("stride", Dims{2, 2}),
                                  Attr("padding", Dims{0, 0}), Attr("ceil_mode", true),
                                  Attr("count_include_pad", true)};
  BOOST_TEST(has(refusal({"avg_pool2d", {Desc({1, 16, 5, 5})}, Desc({1, 16, 3, 3}), over}),
                 "beyond the padding"));
  const std::vector<Attr> counted = {Attr("kernel_size", Dims{3, 3}), Attr("stride", Dims{3, 3}),
                                     Attr("padding", Dims{1, 1}), Attr("ceil_mode", true),
                                     Attr("count_include_pad", true)};
  if (has_bf16())
    BOOST_TEST(
        has(refusal({"avg_pool2d", {Desc({1, 16, 6, 6})}, Desc({1, 16, 3, 3}), counted}, TN_BF16),
            "padding that counts"));
}

// What is odd about values and memory, in every operator that has such operands. Convolutions have
// no padding here: cpu multiplies weights with its zeros, and oneDNN does not.
BOOST_AUTO_TEST_CASE(odd_values_and_layouts, *where_built()) {
  const std::vector<Attr> conv = {Attr("stride", Dims{1, 1}), Attr("padding", Dims{0, 0}),
                                  Attr("dilation", Dims{1, 1}), Attr("groups", 1)},
                          windows = {Attr("kernel_size", Dims{3, 3}), Attr("stride", Dims{2, 2}),
                                     Attr("padding", Dims{1, 1}), Attr("ceil_mode", false),
                                     Attr("count_include_pad", false)};
  const Desc x({2, 18, 7, 7}), weight({20, 18, 3, 3}), y({2, 20, 5, 5});
  // Rows and columns, one row of a batch, one matrix for all of a batch, gaps between matrices.
  const Case cases[] = {
      {"conv2d", {x, weight, Desc({20})}, y, conv},
      {"conv2d_backward_input", {y, weight}, x, conv},
      {"conv2d_backward_weight", {y, x}, weight, conv},
      {"avg_pool2d", {Desc({2, 16, 9, 9})}, Desc({2, 16, 5, 5}), windows},
      {"avg_pool2d_backward", {Desc({2, 16, 5, 5})}, Desc({2, 16, 9, 9}), windows},
      {"matmul", {Desc({9, 33}, TN_F32, {1, 9}), Desc({33, 17}, TN_F32, {1, 40})}, Desc({9, 17})},
      {"matmul", {Desc({5, 1, 33}), Desc({33, 17}, TN_F32, {1, 33})}, Desc({5, 1, 17})},
      {"matmul",
       {Desc({3, 8, 33}, TN_F32, {300, 33, 1}), Desc({3, 33, 17}, TN_F32, {0, 17, 1})},
       Desc({3, 8, 17})},
      {"linear", {Desc({2, 33}), Desc({17, 33}), Desc({17})}, Desc({2, 17})}};
  const float least = 1e-42f;  // has no normal form
  int taken = 0;
  for (auto& c : cases)
    for (size_t input = 0; input < c.inputs.size(); ++input) {
      // Its weight meets zeros beyond the edges of the gradient.
      if (std::string(c.op) == "conv2d_backward_input" && input == 1) continue;
      for (const float odd : {NAN, INFINITY, -INFINITY, least, -0.0f, 1e30f}) {
        std::vector<Values> values;
        for (auto& d : c.inputs) values.push_back(random_values(d ? d->extent() : 0));
        for (size_t at : {size_t{0}, values[input].size() / 2, values[input].size() - 1})
          values[input][at] = odd;
        taken += agree(c, TN_F32, odd == 1e30f ? 1e33 : 1000, values);
      }
    }
  BOOST_TEST(taken >= 70);
}

BOOST_AUTO_TEST_CASE(nan_and_infinity_stay, *where_built()) {
  for (const int64_t m : {int64_t{3}, int64_t{200}}) {
    const int64_t n = 40, k = 30;
    const Case plain{"linear", {Desc({m, k}), Desc({n, k}), Desc({n})}, Desc({m, n})};
    Values x = random_values(static_cast<size_t>(m * k));
    x[0] = NAN;
    x[static_cast<size_t>(k)] = INFINITY;
    BOOST_TEST(agree(plain, TN_F32, k, {x}));
    // The base does not fuse: relu of what it computes is expected.
    Case fused = plain;
    fused.op = "linear_relu";
    std::vector<Values> values = {x, random_values(static_cast<size_t>(n * k)), random_values(n)};
    for (auto dtype : {TN_F32, TN_BF16}) {
      const auto y = both().overlay.run(plain, dtype, values);
      const auto relu = both().overlay.run(fused, dtype, values);
      if (!y) continue;
      BOOST_REQUIRE(relu.has_value());
      BOOST_TEST(std::isnan((*relu)[0]));
      for (size_t i = 0; i < y->size(); ++i)
        if (!std::isnan((*y)[i])) BOOST_TEST((*relu)[i] == std::max(0.0f, (*y)[i]));
    }
  }
}

// In bf16 nobody else computes: what the overlay leaves to cpu in f32, it takes in bf16.
BOOST_AUTO_TEST_CASE(bf16_vectors_and_strides, *where_built()) {
  if (!has_bf16()) return;
  for (int i = 0; i < 40; ++i) {
    const int64_t vector = draw(0, 2), m = vector == 0 ? 1 : draw(1, 300),
                  n = vector == 1 ? 1 : draw(1, 300), k = draw(1, 80);
    const bool linear = draw(0, 1);
    const Dims b = linear ? Dims{n, k} : Dims{k, n};
    // Rows or columns, steps in both directions, and one row or one element for all.
    const auto steps = [](int64_t rows, int64_t cols) {
      const int64_t kind = draw(0, 4), step = draw(2, 3);
      return kind == 0   ? Dims{cols * step, step}
             : kind == 1 ? Dims{0, 1}
             : kind == 2 ? Dims{0, 0}
                         : matrix_strides(rows, cols);
    };
    Case c{linear ? "linear" : "matmul",
           {Desc({m, k}, TN_F32, steps(m, k)), Desc(b, TN_F32, steps(b[0], b[1]))},
           Desc({m, n})};
    if (linear) c.inputs.push_back(draw(0, 1) ? std::optional(Desc({n})) : std::nullopt);
    BOOST_TEST((agree(c, TN_BF16, static_cast<double>(k) + 1) || may_be_refused(k)), text_of(c));
  }
  for (const int64_t m : {1, 4}) {  // batches that do not lie evenly, and that overlap
    const Desc b({2, 3, 6, 5});
    for (const Dims& a : {Dims{100, 8 * m, 6, 1}, Dims{0, 7, 6, 1}, Dims{1, 0, 12, 2}}) {
      const Case c{"matmul", {Desc({2, 3, m, 6}, TN_F32, a), b}, Desc({2, 3, m, 5})};
      BOOST_TEST(agree(c, TN_BF16, 6), text_of(c));
    }
    const Case c{"matmul", {Desc({3, m, 6}), Desc({3, 6, 5}, TN_F32, {0, 1, 1})}, Desc({3, m, 5})};
    BOOST_TEST(agree(c, TN_BF16, 6), text_of(c));
  }
}

BOOST_AUTO_TEST_CASE(bf16_without_elements, *where_built()) {
  if (!has_bf16()) return;
  const std::vector<Attr> conv = {Attr("stride", Dims{1, 1}), Attr("padding", Dims{0, 0}),
                                  Attr("dilation", Dims{1, 1}), Attr("groups", 1)},
                          windows = {Attr("kernel_size", Dims{2, 2}), Attr("stride", Dims{2, 2}),
                                     Attr("padding", Dims{0, 0}), Attr("ceil_mode", false),
                                     Attr("count_include_pad", true)};
  const Case cases[] = {
      {"matmul", {Desc({0, 4}), Desc({4, 3})}, Desc({0, 3})},
      {"matmul", {Desc({2, 0, 5, 4}), Desc({2, 0, 4, 3})}, Desc({2, 0, 5, 3})},
      {"matmul", {Desc({5, 0}), Desc({0, 3})}, Desc({5, 3})},
      {"linear", {Desc({5, 0}), Desc({3, 0}), Desc({3})}, Desc({5, 3})},
      {"linear", {Desc({5, 0}), Desc({3, 0}), std::nullopt}, Desc({5, 3})},
      {"conv2d", {Desc({0, 3, 4, 4}), Desc({2, 3, 3, 3}), Desc({2})}, Desc({0, 2, 2, 2}), conv},
      {"conv2d", {Desc({2, 0, 4, 4}), Desc({3, 0, 3, 3}), Desc({3})}, Desc({2, 3, 2, 2}), conv},
      {"conv2d_backward_input", {Desc({2, 0, 2, 2}), Desc({0, 3, 3, 3})}, Desc({2, 3, 4, 4}), conv},
      {"conv2d_backward_weight",
       {Desc({0, 2, 2, 2}), Desc({0, 3, 4, 4})},
       Desc({2, 3, 3, 3}),
       conv},
      {"avg_pool2d", {Desc({0, 3, 4, 4})}, Desc({0, 3, 2, 2}), windows},
      {"avg_pool2d_backward", {Desc({2, 0, 2, 2})}, Desc({2, 0, 4, 4}), windows}};
  for (auto& c : cases) BOOST_TEST(agree(c, TN_BF16, 0), text_of(c));
  const Case relu{"linear_relu", {Desc({2, 0}), Desc({4, 0}), Desc({4})}, Desc({2, 4})};
  const auto y = both().overlay.run(relu, TN_BF16, {{}, {}, {-1, 2, NAN, -0.0f}});
  BOOST_REQUIRE(y.has_value());
  for (size_t row : {size_t{0}, size_t{4}}) {
    BOOST_TEST((*y)[row] == 0);
    BOOST_TEST((*y)[row + 1] == 2);
    BOOST_TEST(std::isnan((*y)[row + 2]));
  }
}

BOOST_AUTO_TEST_CASE(bf16_windows_at_and_beyond_the_edges, *where_built()) {
  if (!has_bf16()) return;
  for (int i = 0; i < 30; ++i) {
    const int64_t kh = draw(1, 5), kw = draw(1, 5), sh = draw(1, 3), sw = draw(1, 3),
                  count = draw(0, 1), ph = count ? 0 : draw(0, kh / 2),
                  pw = count ? 0 : draw(0, kw / 2), h = kh + draw(0, 9), w = kw + draw(0, 9),
                  c = draw(1, 40);
    const auto out = [](int64_t in, int64_t kernel, int64_t stride, int64_t padding) {
      const int64_t size = (in + 2 * padding - kernel + stride - 1) / stride + 1;
      return (size - 1) * stride >= in + padding ? size - 1 : size;
    };
    const Desc x({2, c, h, w}), y({2, c, out(h, kh, sh, ph), out(w, kw, sw, pw)});
    const std::vector<Attr> attrs = {Attr("kernel_size", Dims{kh, kw}),
                                     Attr("stride", Dims{sh, sw}), Attr("padding", Dims{ph, pw}),
                                     Attr("ceil_mode", true),
                                     Attr("count_include_pad", count == 1)};
    const double taps = static_cast<double>(kh * kw);
    BOOST_TEST(agree({"avg_pool2d", {x}, y, attrs}, TN_BF16, 2), text_of({"", {x}, y}));
    BOOST_TEST(agree({"avg_pool2d_backward", {y}, x, attrs}, TN_BF16, taps));
  }
  // For these with groups oneDNN has only reference code: their padding is wider than the kernel,
  // or than the image.
  for (int i = 0; i < 24; ++i) {
    const int64_t groups = draw(1, 3), n = draw(1, 4), c = groups * draw(1, 20),
                  o = groups * draw(1, 20), k = draw(1, 3), d = draw(1, 2), s = draw(1, 2),
                  h = draw(1, 6), w = draw(1, 6), reach = (k - 1) * d,
                  p = std::max(reach / 2, draw(0, reach + 3)) + (h <= reach || w <= reach) * reach,
                  oh = (h + 2 * p - reach - 1) / s + 1, ow = (w + 2 * p - reach - 1) / s + 1;
    const Desc x({n, c, h, w}), weight({o, c / groups, k, k}), y({n, o, oh, ow});
    const std::vector<Attr> attrs = {Attr("stride", Dims{s, s}), Attr("padding", Dims{p, p}),
                                     Attr("dilation", Dims{d, d}), Attr("groups", groups)};
    const auto bias = draw(0, 1) ? std::optional(Desc({o})) : std::nullopt;
    const auto sums = [&](int64_t count) { return static_cast<double>(count + 1); };
    const Case cases[] = {{"conv2d", {x, weight, bias}, y, attrs},
                          {"conv2d_backward_input", {y, weight}, x, attrs},
                          {"conv2d_backward_weight", {y, x}, weight, attrs}};
    BOOST_TEST(agree(cases[0], TN_BF16, sums(c / groups * k * k)), text_of(cases[0]));
    BOOST_TEST(agree(cases[1], TN_BF16, sums(o / groups * k * k)), text_of(cases[1]));
    BOOST_TEST(agree(cases[2], TN_BF16, sums(n * oh * ow)), text_of(cases[2]));
  }
}

// A copy of such an operand could not be read either. A few elements stand for all of it.
BOOST_AUTO_TEST_CASE(operands_beyond_32_bits_are_refused, *where_built()) {
  const int64_t large = int64_t{1} << 31;
  for (const Case& c :
       {Case{"matmul",
             {Desc({1, large}, TN_F32, {0, 0}), Desc({large, 1}, TN_F32, {0, 0})},
             Desc({1, 1})},
        Case{"matmul",
             {Desc({2, large / 2, 1}, TN_F32, {0, 0, 0}), Desc({2, 1, 1}, TN_F32, {0, 0, 0})},
             Desc({2, large / 2, 1})}})
    if (has_bf16()) {
      const std::string reason = refusal(c, TN_BF16);
      BOOST_TEST(has(reason, "too large for oneDNN's kernels"), text_of(c) << ": " << reason);
    }
}

BOOST_AUTO_TEST_SUITE_END()
