#include <cmath>
#include <utility>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/convolution.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(convolution)

using namespace tenon;
using namespace tenon::test;

namespace {

// Written from the definition, one output at a time.
std::vector<double> by_definition(const Tensor& x, const Tensor& w, const Conv2dOptions& o,
                                  const Shape& out) {
  auto xs = x.to_vector<double>(), ws = w.to_vector<double>();
  const Shape &sx = x.shape(), &sw = w.shape();
  std::vector<double> result;
  for (int64_t n = 0; n < out[0]; ++n)
    for (int64_t c = 0; c < out[1]; ++c)
      for (int64_t i = 0; i < out[2]; ++i)
        for (int64_t j = 0; j < out[3]; ++j) {
          double total = 0;
          int64_t group = c / (sw[0] / o.groups);
          for (int64_t k = 0; k < sw[1]; ++k)
            for (int64_t p = 0; p < sw[2]; ++p)
              for (int64_t q = 0; q < sw[3]; ++q) {
                int64_t h = i * o.stride.height - o.padding.height + p * o.dilation.height,
                        v = j * o.stride.width - o.padding.width + q * o.dilation.width;
                if (h < 0 || v < 0 || h >= sx[2] || v >= sx[3]) continue;
                total += xs[static_cast<size_t>(
                             ((n * sx[1] + group * sw[1] + k) * sx[2] + h) * sx[3] + v)] *
                         ws[static_cast<size_t>(((c * sw[1] + k) * sw[2] + p) * sw[3] + q)];
              }
          result.push_back(total);
        }
  return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(values_and_gradients) {
  struct Case {
    Shape x, w;
    Conv2dOptions options;
  };
  for (auto& c : std::initializer_list<Case>{
           {{2, 1, 4, 4}, {2, 1, 3, 3}, {}},
           {{1, 2, 5, 4}, {3, 2, 2, 3}, {.stride = {2, 1}, .padding = {1, 2}}},
           {{1, 4, 4, 5}, {4, 2, 2, 2}, {.padding = {1, 0}, .dilation = {2, 1}, .groups = 2}},
           {{2, 2, 4, 4}, {4, 1, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 2}},
           {{1, 3, 3, 3}, {2, 3, 1, 1}, {}},
           {{1, 1, 6, 6}, {1, 1, 2, 2}, {.stride = {3, 3}}}}) {
    Tensor x = sample(c.x), w = sample(c.w, 1.1), b = sample({c.w[0]}, 2);
    Tensor y = conv2d(x, w, Tensor(), c.options);
    require_close(y.to_vector<double>(), by_definition(x, w, c.options, y.shape()), 1e-12, 1e-12,
                  "conv2d");
    require_equal(conv2d(x, w, b, c.options), y + b.reshape({-1, 1, 1}), 1e-12);
    require_equal(conv2d(x.to(f32), w.to(f32), b.to(f32), c.options).to(f64),
                  y + b.reshape({-1, 1, 1}), 1e-4);
    check_gradients([&](auto& v) { return conv2d(v[0], v[1], v[2], c.options); }, {x, w, b},
                    "conv2d " + c.w.str());
  }
}

namespace {

struct Geometry {
  Shape x, w;
  Conv2dOptions options;
};

std::vector<Geometry> geometries() {
  std::vector<Geometry> all;
  for (int64_t stride : {1, 2, 3})
    for (int64_t padding : {0, 1})
      for (int64_t channels : {1, 3, 16})
        all.push_back({{2, channels, 9, 8},
                       {channels, channels, 3, 3},
                       {.stride = stride, .padding = padding}});
  all.push_back({{1, 4, 9, 9}, {4, 2, 3, 3}, {.stride = {2, 1}, .dilation = 2, .groups = 2}});
  all.push_back({{1, 8, 6, 5}, {8, 1, 2, 3}, {.padding = {0, 1}, .groups = 8}});
  return all;
}

Tensor gradient_of(const Tensor& y, const Tensor& x) {
  return grad(std::span(&y, 1), std::span(&x, 1), {})[0];
}

// 1 where x is not finite, 0 elsewhere.
Tensor marks_of(const Tensor& x) { return logical_not(eq(x - x, 0.0)).to(f64); }

}  // namespace

// The tap reaches those elements of the input alone that a window has it on.
BOOST_AUTO_TEST_CASE(nan_in_a_weight_reaches_the_elements_that_it_touches) {
  for (auto& c : geometries())
    for (const double value : {double(NAN), double(INFINITY)})
      for (const DType dtype : {f32, f64}) {
        const Tensor x = ones(c.x, {.dtype = dtype}).requires_grad_();
        Tensor w = ones(c.w, {.dtype = dtype}), marked = zeros(c.w, {.dtype = f64});
        w.select(2, 0).select(2, 1).fill_(value);
        marked.select(2, 0).select(2, 1).fill_(1);
        const Tensor reached = ones(c.x, {.dtype = f64}).requires_grad_(),
                     found = gradient_of(sum(conv2d(x, w, {}, c.options)), x),
                     expected = gradient_of(sum(conv2d(reached, marked, {}, c.options)), reached);
        require_equal(marks_of(found), gt(expected, 0.0).to(f64));
      }
}

// And an element of the input the taps alone that a window has on it.
BOOST_AUTO_TEST_CASE(nan_in_the_input_reaches_the_taps_that_touch_it) {
  for (auto& c : geometries())
    for (const double value : {double(NAN), double(INFINITY)})
      for (const auto& [row, column] : {std::pair<int64_t, int64_t>{0, 0}, {0, 7}, {4, 4}}) {
        if (row >= c.x[2] || column >= c.x[3]) continue;
        Tensor x = ones(c.x), marked = zeros(c.x, {.dtype = f64});
        x.select(2, row).select(2, column).fill_(value);
        marked.select(2, row).select(2, column).fill_(1);
        const Tensor w = ones(c.w).requires_grad_(),
                     reached = ones(c.w, {.dtype = f64}).requires_grad_(),
                     found = gradient_of(sum(conv2d(x, w, {}, c.options)), w),
                     expected = gradient_of(sum(conv2d(marked, reached, {}, c.options)), reached);
        require_equal(marks_of(found), gt(expected, 0.0).to(f64));
      }
}

BOOST_AUTO_TEST_CASE(inputs_of_other_forms) {
  Tensor x = sample({3, 4, 5}), w = sample({2, 3, 2, 2});
  require_equal(conv2d(x, w), conv2d(x.unsqueeze(0), w).squeeze(0));
  Tensor strided = sample({1, 5, 4, 3}).permute({0, 3, 2, 1});
  require_equal(conv2d(strided, w), conv2d(strided.contiguous(), w), 1e-12);
  require_values(conv2d(zeros({0, 3, 4, 5}), zeros({2, 3, 2, 2})), {0, 2, 3, 4}, {});
  require_values(conv2d(zeros({1, 3, 2, 2}), zeros({2, 3, 2, 2}), ones({2})), {1, 2, 1, 1}, {1, 1});
}

BOOST_AUTO_TEST_CASE(bad_input) {
  Tensor x = zeros({1, 3, 8, 8}), w = zeros({4, 3, 3, 3});
  require_error<ShapeError>(
      [&] {
        conv2d(zeros({1, 2, 8, 8}), w);
      },
      "conv2d: an input of shape (1, 2, 8, 8) has 2 channels, but a weight of shape (4, 3, 3, 3) "
      "takes 3");
  require_error<ShapeError>(
      [&] {
        conv2d(x, zeros({6, 2, 3, 3}), {}, {.groups = 3});
      },
      "has 3 channels, but a weight of shape (6, 2, 3, 3) with groups=3 takes 6");
  require_error<ShapeError>(
      [&] {
        conv2d(x, zeros({4, 1, 3, 3}), {}, {.groups = 3});
      },
      "has 4 output channels, which must be a multiple of groups=3");
  require_error<ShapeError>(
      [&] {
        conv2d(x, zeros({4, 3, 9, 3}));
      },
      "larger than the padded input");
  require_error<ShapeError>(
      [&] {
        conv2d(x, zeros({4, 3, 3, 3}), {}, {.dilation = {4, 1}});
      },
      "larger than the padded input");
  require_error<ShapeError>([&] { conv2d(x, w, zeros({3})); },
                            "bias has shape (3,), but must be (4,)");
  require_error<ShapeError>(
      [&] {
        conv2d(zeros({8, 8}), w);
      },
      "needs an input (n, c, h, w) or (c, h, w)");
  require_error<ValueError>(
      [&] {
        conv2d(x, w, {}, {.stride = {0, 1}});
      },
      "stride must be two numbers of at least 1, found (0, 1)");
  require_error<ValueError>(
      [&] {
        conv2d(x, w, {}, {.padding = {-1, 0}});
      },
      "padding must be two numbers of at least 0");
  require_error<ValueError>([&] { conv2d(x, w, {}, {.dilation = 0}); },
                            "dilation must be two numbers of at least 1, found (0, 0)");
  require_error<ValueError>([&] { conv2d(x, w, {}, {.groups = 0}); }, "groups must be at least 1");
  require_error<DTypeError>(
      [&] {
        conv2d(x, zeros({4, 3, 3, 3}, {.dtype = f64}));
      },
      "x is f32, weight f64");
}

// What planes add to one another is not rounded before it is added.
BOOST_AUTO_TEST_CASE(transposed_volumes_in_half_types_are_rounded_once) {
  const auto half = [](const Shape& shape, double phase, DType dtype) {
    return sample(shape, phase).to(dtype);
  };
  for (DType dtype : {bf16, f16}) {
    const Tensor x = half({2, 3, 4, 3, 3}, 0.1, dtype), w = half({3, 2, 3, 2, 2}, 0.5, dtype),
                 b = half({2}, 0.9, dtype);
    const Tensor expected = conv_transpose3d(x.to(f32), w.to(f32), b.to(f32), {.padding = 1});
    require_equal(conv_transpose3d(x, w, b, {.padding = 1}), expected.to(dtype));
  }
}

BOOST_AUTO_TEST_SUITE_END()
