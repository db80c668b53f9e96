// Convolutions over one and three dimensions, transposed ones, and paddings that are no numbers.
#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/convolution.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(convolution)

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr int64_t kLargest = (int64_t{1} << 31) - 1;

// What a convolution of three dimensions is by its definition: plane by plane, by conv2d.
Tensor by_planes(const Tensor& x, const Tensor& weight, const Conv3dOptions& o) {
  const Triple p = o.padding, s = o.stride, d = o.dilation;
  const Tensor padded = pad(x, {0, 0, 0, 0, p.depth, p.depth});
  std::vector<Tensor> planes;
  for (int64_t at = 0; at + d.depth * (weight.size(2) - 1) < padded.size(2); at += s.depth) {
    Tensor plane;
    for (int64_t k = 0; k < weight.size(2); ++k) {
      const Tensor part = conv2d(padded.select(2, at + k * d.depth), weight.select(2, k), {},
                                 {.stride = {s.height, s.width},
                                  .padding = Pair(p.height, p.width),
                                  .dilation = {d.height, d.width},
                                  .groups = o.groups});
      plane = plane.defined() ? plane + part : part;
    }
    planes.push_back(plane);
  }
  return stack(planes, 2);
}

}  // namespace

BOOST_AUTO_TEST_CASE(volumes_are_sums_over_planes) {
  struct Case {
    Shape x, w;
    Conv3dOptions options;
  };
  for (auto& c : std::initializer_list<Case>{
           {{2, 4, 6, 5, 4}, {6, 2, 3, 2, 2}, {.padding = {2, 1, 0}, .groups = 2}},
           {{1, 3, 7, 4, 4}, {2, 3, 2, 3, 1}, {.stride = {3, 2, 1}, .dilation = {2, 1, 3}}},
           {{1, 2, 2, 3, 3}, {2, 2, 2, 2, 2}, {.stride = {5, 1, 1}, .padding = {3, 0, 1}}},
           {{2, 2, 3, 3, 3}, {4, 1, 1, 1, 1}, {.stride = {2, 1, 1}, .groups = 2}},
           {{2, 2, 6, 3, 4}, {3, 2, 3, 1, 1}, {.stride = {2, 1, 1}, .padding = {1, 0, 0}}},
           {{2, 2, 4, 3, 4}, {3, 2, 2, 1, 1}, {.stride = {1, 1, 2}}},
           {{2, 2, 4, 3, 4}, {3, 2, 2, 1, 1}, {.padding = {0, 1, 0}}},
           {{2, 2, 3, 4, 4}, {3, 2, 3, 2, 2}, {}}}) {
    const Tensor x = sample(c.x), w = sample(c.w, 1.1), b = sample({c.w[0]}, 2);
    require_equal(conv3d(x, w, {}, c.options), by_planes(x, w, c.options), 1e-12);
    require_equal(conv3d(x, w, b, c.options), by_planes(x, w, c.options) + b.reshape({-1, 1, 1, 1}),
                  1e-12);
  }
}

// <conv(x), y> = <x, conv_transpose(y)> for all x and y.
BOOST_AUTO_TEST_CASE(the_transposed_convolution_is_the_transpose) {
  struct Case {
    Shape x, w;
    ConvTranspose3dOptions o;
  };
  for (auto& c : std::initializer_list<Case>{
           {{2, 4, 3, 4, 3},
            {4, 3, 2, 3, 2},
            {.stride = {2, 3, 1}, .padding = {1, 0, 1}, .groups = 2}},
           {{1, 2, 3, 2, 2}, {2, 2, 3, 2, 1}, {.stride = {3, 2, 4}, .output_padding = {2, 1, 3}}},
           {{1, 2, 2, 3, 2}, {2, 3, 2, 2, 3}, {.padding = {2, 1, 0}, .dilation = {4, 3, 2}}},
           {{2, 4, 3, 2, 3},
            {4, 1, 2, 1, 1},
            {.stride = {2, 1, 1}, .padding = {1, 0, 0}, .groups = 2}},
           {{1, 1, 2, 2, 2}, {1, 1, 2, 2, 2}, {.stride = 7}}}) {
    const Tensor x = sample(c.x), w = sample(c.w, 1.1), y = conv_transpose3d(x, w, {}, c.o),
                 other = sample(y.shape(), 0.7);
    const Tensor back = conv3d(other, w, {},
                               {.stride = c.o.stride,
                                .padding = c.o.padding,
                                .dilation = c.o.dilation,
                                .groups = c.o.groups});
    require_equal(sum(y * other), sum(x * back), 1e-10);
    // Images are volumes of one plane.
    const Tensor image = x.select(2, 0), kernel = w.narrow(2, 0, 1);
    const auto pair = [](const Triple& t) { return Pair(t.height, t.width); };
    require_equal(conv_transpose2d(image, kernel.select(2, 0), {},
                                   {.stride = pair(c.o.stride),
                                    .padding = pair(c.o.padding),
                                    .output_padding = pair(c.o.output_padding),
                                    .groups = c.o.groups,
                                    .dilation = pair(c.o.dilation)}),
                  conv_transpose3d(
                      image.unsqueeze(2), kernel, {},
                      {.stride = {1, c.o.stride.height, c.o.stride.width},
                       .padding = {0, c.o.padding.height, c.o.padding.width},
                       .output_padding = {0, c.o.output_padding.height, c.o.output_padding.width},
                       .groups = c.o.groups,
                       .dilation = {1, c.o.dilation.height, c.o.dilation.width}})
                      .select(2, 0),
                  1e-12);
  }
}

// Half types are added up in f32: 256 is the first number whose successor bf16 does not have.
BOOST_AUTO_TEST_CASE(planes_of_half_types_are_added_in_f32) {
  const Tensor x = ones({1, 1, 2, 1, 1}, {.dtype = bf16}),
               w = tensor(std::vector<double>{256, 1, 1}, {1, 1, 3, 1, 1}).to(bf16);
  // 256, 1 + 256, 1 + 1, 1: what lies between is 257, which rounds to 256.
  require_values(conv_transpose3d(x, w).to(f64).flatten(), {4}, {256, 256, 2, 1});
  const Tensor many = ones({1, 1, 4, 1, 1}, {.dtype = bf16}),
               kernel = tensor(std::vector<double>{1, 256, 1, 1}, {1, 1, 4, 1, 1}).to(bf16);
  // The plane where all four meet: 1 + 1 + 256 + 1 = 259, of which 260 is the nearest.
  require_values(conv_transpose3d(many, kernel).to(f64).flatten().narrow(0, 3, 1), {1}, {260});
}

BOOST_AUTO_TEST_CASE(padding_by_a_word) {
  const Tensor x = sample({2, 2, 6}), w = sample({3, 2, 4}, 1.1);
  // 3 elements of padding: one in front and two behind.
  require_equal(conv1d(x, w, {}, {.padding = "same"}), conv1d(pad(x, {1, 2}), w), 1e-12);
  require_equal(conv1d(x, w, {}, {.padding = "valid"}), conv1d(x, w));
  require_equal(conv1d(x, w, {}, {.padding = std::string("same"), .padding_mode = "circular"}),
                conv1d(pad(x, {1, 2}, "circular"), w), 1e-12);
  const Tensor image = sample({2, 5, 4}), kernel = sample({3, 2, 3, 2}, 0.9);
  require_equal(conv2d(image, kernel, {}, {.padding = "same", .dilation = {2, 1}}),
                conv2d(pad(image, {0, 1, 2, 2}), kernel, {}, {.dilation = {2, 1}}), 1e-12);
  require_equal(conv2d(image, kernel, {}, {.padding = {1, 2}, .padding_mode = "reflect"}),
                conv2d(pad(image, {2, 2, 1, 1}, "reflect"), kernel), 1e-12);
  const Tensor volume = sample({1, 2, 3, 4, 3}), cube = sample({2, 2, 3, 3, 3}, 0.8);
  require_equal(conv3d(volume, cube, {}, {.padding = "same", .padding_mode = "replicate"}),
                conv3d(pad(volume, {1, 1, 1, 1, 1, 1}, "replicate"), cube), 1e-12);
  require_error<ValueError>([&] { conv1d(x, w, {}, {.stride = 2, .padding = "same"}); },
                            "conv1d: padding \"same\" needs a stride of 1, found (2,)");
  require_error<ValueError>([&] { conv1d(x, w, {}, {.padding = "full"}); },
                            "padding must be numbers, \"same\" or \"valid\", found \"full\"");
  require_error<ValueError>(
      [&] { conv1d(x, w, {}, {.padding = 1, .padding_mode = "mirror"}); },
      "conv1d: padding_mode must be \"zeros\", \"reflect\", \"replicate\" or \"circular\", found "
      "\"mirror\"");
  require_error<ValueError>([&] { conv1d(x, w, {}, {.padding = "same", .dilation = kLargest}); },
                            "adds more than 2^31 - 1 elements");
  require_error<ShapeError>([&] { conv1d(x, w, {}, {.padding = 6, .padding_mode = "reflect"}); },
                            "reflect");
}

BOOST_AUTO_TEST_CASE(empty_batches_and_channels) {
  const Tensor w1 = zeros({3, 2, 2}).requires_grad_();
  const Tensor y = conv1d(zeros({0, 2, 5}), w1, ones({3}));
  require_values(y, {0, 3, 4}, {});
  sum(y).backward();
  require_values(w1.grad(), {3, 2, 2}, std::vector<double>(12, 0));
  require_values(conv3d(zeros({0, 2, 3, 3, 3}), zeros({3, 2, 2, 2, 2})), {0, 3, 2, 2, 2}, {});
  const Tensor w3 = zeros({2, 3, 2, 2, 2}).requires_grad_();
  const Tensor z = conv_transpose3d(zeros({0, 2, 3, 3, 3}), w3, ones({3}));
  require_values(z, {0, 3, 4, 4, 4}, {});
  sum(z).backward();
  BOOST_TEST(w3.grad().shape() == w3.shape());
  require_values(conv_transpose1d(zeros({1, 0, 2}), zeros({0, 1, 2}), ones({1})), {1, 1, 3},
                 {1, 1, 1});
  require_values(conv3d(zeros({1, 0, 2, 1, 1}), zeros({1, 0, 2, 1, 1}), ones({1})), {1, 1, 1, 1, 1},
                 {1});
}

// One window, of which the next would begin far behind the input.
BOOST_AUTO_TEST_CASE(the_largest_strides) {
  const Tensor x = sample({1, 1, 3}), w = sample({1, 1, 2});
  require_equal(conv1d(x, w, {}, {.stride = kLargest}), conv1d(x, w).narrow(2, 0, 1), 1e-12);
  const Tensor v = sample({1, 1, 3, 1, 1}), k = sample({1, 1, 2, 1, 1});
  require_equal(conv3d(v, k, {}, {.stride = kLargest}), conv3d(v, k).narrow(2, 0, 1), 1e-12);
  require_equal(conv3d(v, k.narrow(2, 0, 1), {}, {.dilation = kLargest}),
                conv3d(v, k.narrow(2, 0, 1)));
  require_equal(conv_transpose3d(v.narrow(2, 0, 1), k, {}, {.stride = kLargest}),
                conv_transpose3d(v.narrow(2, 0, 1), k), 1e-12);
  require_error<ShapeError>(
      [&] {
        conv_transpose3d(v.expand({1, 1, 3, 1 << 20, 1 << 20}),
                         k.expand({1, 1, 2, 1 << 20, 1 << 20}), {},
                         {.stride = kLargest, .dilation = kLargest});
      },
      "conv_transpose3d: ", "more elements than can be addressed");
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_one_and_three_dimensions) {
  const Tensor x = zeros({1, 3, 8}), w = zeros({4, 3, 3});
  require_error<ShapeError>(
      [&] {
        conv1d(zeros({1, 2, 8}), w);
      },
      "conv1d: an input of shape (1, 2, 8) has 2 channels, but a weight of shape (4, 3, 3) takes "
      "3");
  require_error<ShapeError>(
      [&] { conv1d(zeros({8}), w); },
      "conv1d: needs an input (n, c, l) or (c, l) and a weight (o, c/groups, k)");
  require_error<ShapeError>([&] { conv1d(x, w, zeros({3})); },
                            "conv1d: bias has shape (3,), but must be (4,)");
  require_error<ShapeError>(
      [&] {
        conv1d(x, zeros({4, 3, 9}));
      },
      "conv1d: the kernel of a weight of shape (4, 3, 9)", "larger than the padded input");
  require_error<ValueError>([&] { conv1d(x, w, {}, {.stride = 0}); },
                            "conv1d: stride must be one number of at least 1, found (0,)");
  require_error<ValueError>([&] { conv1d(x, w, {}, {.groups = 0}); },
                            "conv1d: groups must be at least 1, found 0");
  require_error<DTypeError>([&] { conv1d(x.to(i64), w.to(i64)); },
                            "conv1d: x has dtype i64, but must be a floating type");
  require_error<DTypeError>([&] { conv1d(x, w.to(f64)); }, "conv1d: x is f32, weight f64");
  const Tensor v = zeros({1, 3, 4, 4, 4}), k = zeros({2, 3, 2, 2, 2});
  require_error<ShapeError>(
      [&] {
        conv3d(v, zeros({2, 3, 2, 2}));
      },
      "conv3d: needs an input (n, c, d, h, w)");
  require_error<ShapeError>(
      [&] {
        conv3d(v, zeros({2, 3, 5, 1, 1}));
      },
      "conv3d: the kernel of a weight of shape (2, 3, 5, 1, 1)");
  require_error<ValueError>(
      [&] {
        conv3d(v, k, {}, {.padding = {0, -1, 0}});
      },
      "conv3d: padding must be three numbers of at least 0, found (0, -1, 0)");
  require_error<ValueError>([&] { conv3d(Tensor(), k); }, "conv3d: x is an undefined");
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_a_transposed_convolution) {
  const Tensor x = zeros({1, 4, 5, 5}), w = zeros({4, 3, 3, 3});
  require_error<ShapeError>(
      [&] {
        conv_transpose2d(x, zeros({3, 4, 3, 3}));
      },
      "conv_transpose2d: an input of shape (1, 4, 5, 5) has 4 channels, but a "
      "weight of shape (3, 4, 3, 3) takes 3");
  require_error<ShapeError>(
      [&] { conv_transpose2d(x, w, {}, {.groups = 3}); },
      "conv_transpose2d: an input of shape (1, 4, 5, 5) has 4 channels, which "
      "must be a multiple of groups=3");
  require_error<ShapeError>([&] { conv_transpose2d(x, w, zeros({3}), {.groups = 2}); },
                            "conv_transpose2d: bias has shape (3,), but must be (6,)");
  require_error<ValueError>([&] { conv_transpose2d(x, w, {}, {.groups = 0}); },
                            "conv_transpose2d: groups must be at least 1");
  require_error<ValueError>(
      [&] {
        conv_transpose2d(x, w, {}, {.stride = {2, 1}, .output_padding = {1, 1}});
      },
      "conv_transpose2d: output_padding (1, 1) must be smaller than the stride (2, 1) or the "
      "dilation (1, 1)");
  require_error<ValueError>([&] { conv_transpose2d(x, w, {}, {.output_padding = -1}); },
                            "conv_transpose2d: output_padding must be two numbers of at least 0");
  require_error<ShapeError>([&] { conv_transpose2d(x, w, {}, {.padding = 4}); },
                            "conv_transpose2d: the result would have no elements");
  require_error<ShapeError>(
      [&] {
        conv_transpose2d(zeros({1, 4, 0, 5}), w);
      },
      "conv_transpose2d: an input of shape (1, 4, 0, 5)", "empty");
  require_error<ShapeError>([&] { conv_transpose1d(x, w); },
                            "conv_transpose1d: needs an input (n, c, l) or (c, l) and a weight (c, "
                            "o/groups, k)");
  require_error<DTypeError>([&] { conv_transpose2d(x, w.to(f64)); }, "x is f32, weight f64");
}

BOOST_AUTO_TEST_SUITE_END()
