// The layers that pad and that change shapes, against values that PyTorch gives.
#include <tenon/tenon.h>

#include "modules/ramp.h"
#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(padding_test)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(values) {
  const Tensor x = ramp({1, 2, 3});
  require_values(nn::ReflectionPad1d({1, 2})(x), {1, 2, 6},
                 {-0.4, -0.5, -0.4, -0.3, -0.4, -0.5, -0.1, -0.2, -0.1, 0, -0.1, -0.2});
  require_values(nn::ReplicationPad2d({1, 0, 0, 1})(x), {1, 3, 4},
                 {-0.5, -0.5, -0.4, -0.3, -0.2, -0.2, -0.1, 0, -0.2, -0.2, -0.1, 0});
  require_values(nn::CircularPad1d(1)(x), {1, 2, 5},
                 {-0.3, -0.5, -0.4, -0.3, -0.5, 0, -0.2, -0.1, 0, -0.2});
  require_values(nn::ConstantPad2d({0, 1, -1, 0}, 7)(x), {1, 1, 4}, {-0.2, -0.1, 0, 7});
  require_values(nn::ZeroPad1d({-1, 1})(x), {1, 2, 3}, {-0.4, -0.3, 0, -0.1, 0, 0});
  require_values(nn::ReflectionPad3d({1, 0, 0, 0, 0, 1})(ramp({1, 2, 1, 2})), {1, 3, 1, 3},
                 {-0.4, -0.5, -0.4, -0.2, -0.3, -0.2, -0.4, -0.5, -0.4});
}

// Each is the operator with its mode and as many dimensions.
BOOST_AUTO_TEST_CASE(they_are_the_operator) {
  const Tensor line = ramp({2, 3, 4}), image = ramp({2, 3, 4, 5}), volume = ramp({1, 2, 3, 4, 5});
  const std::vector<int64_t> one = {2, 2}, two = {2, 2, 2, 2}, three = {2, 2, 2, 2, 2, 2};
  require_equal(nn::ReflectionPad1d(2)(line), pad(line, one, "reflect"));
  require_equal(nn::ReflectionPad2d(2)(image), pad(image, two, "reflect"));
  require_equal(nn::ReflectionPad3d(2)(volume), pad(volume, three, "reflect"));
  require_equal(nn::ReplicationPad1d(2)(line), pad(line, one, "replicate"));
  require_equal(nn::ReplicationPad2d(2)(image), pad(image, two, "replicate"));
  require_equal(nn::ReplicationPad3d(2)(volume), pad(volume, three, "replicate"));
  require_equal(nn::CircularPad1d(2)(line), pad(line, one, "circular"));
  require_equal(nn::CircularPad2d(2)(image), pad(image, two, "circular"));
  require_equal(nn::CircularPad3d(2)(volume), pad(volume, three, "circular"));
  require_equal(nn::ZeroPad1d(2)(image), pad(image, one));
  require_equal(nn::ZeroPad2d(2)(image), pad(image, two));
  require_equal(nn::ZeroPad3d(2)(image), pad(image, three));
  require_equal(nn::ConstantPad1d(2, 0.5)(image), pad(image, one, "constant", 0.5));
  require_equal(nn::ConstantPad3d(2, 0.5)(image), pad(image, three, "constant", 0.5));
  require_equal(nn::ConstantPad2d(2, 3)(ints({1, 2}, {1, 2})),
                pad(ints({1, 2}, {1, 2}), two, "constant", 3));
}

BOOST_AUTO_TEST_CASE(windows_and_shapes) {
  const Tensor x = ramp({2, 3, 5, 6});
  const nn::Unfold unfold({2, 3}, {.dilation = {1, 2}, .padding = 1, .stride = 2});
  const nn::Fold fold({5, 6}, {2, 3}, {.dilation = {1, 2}, .padding = 1, .stride = 2});
  const UnfoldOptions options{.dilation = {1, 2}, .padding = 1, .stride = 2};
  require_equal(unfold(x), tenon::unfold(x, {2, 3}, options));
  require_equal(fold(unfold(x)), tenon::fold(unfold(x), {5, 6}, {2, 3}, options));
  BOOST_TEST(nn::Unflatten(1, {3, -1})(ramp({2, 12})).shape().str() == "(2, 3, 4)");
  require_error<ShapeError>([] { nn::Unflatten(1, {5, 2})(ramp({2, 12})); }, "unflatten");
  nn::Sequential model(nn::Flatten(), nn::Unflatten(-1, {3, 5, 6}));
  require_equal(model(x), x);
}

BOOST_AUTO_TEST_CASE(they_print_as_pytorch_prints_them) {
  BOOST_TEST(nn::str(nn::ZeroPad1d(2)) == "ZeroPad1d((2, 2))");
  BOOST_TEST(nn::str(nn::ZeroPad2d({1, 2, 0, 1})) == "ZeroPad2d((1, 2, 0, 1))");
  BOOST_TEST(nn::str(nn::ZeroPad3d(1)) == "ZeroPad3d((1, 1, 1, 1, 1, 1))");
  BOOST_TEST(nn::str(nn::ConstantPad1d(2, 3.5)) == "ConstantPad1d(padding=(2, 2), value=3.5)");
  BOOST_TEST(nn::str(nn::ConstantPad2d({1, 2, 0, 1}, 3)) ==
             "ConstantPad2d(padding=(1, 2, 0, 1), value=3)");
  BOOST_TEST(nn::str(nn::ReflectionPad2d(1)) == "ReflectionPad2d((1, 1, 1, 1))");
  BOOST_TEST(nn::str(nn::ReplicationPad1d(1)) == "ReplicationPad1d((1, 1))");
  BOOST_TEST(nn::str(nn::CircularPad3d({1, 2, 3, 4, 5, 6})) == "CircularPad3d((1, 2, 3, 4, 5, 6))");
  BOOST_TEST(nn::str(nn::Unflatten(1, {2, 5})) == "Unflatten(dim=1, unflattened_size=(2, 5))");
  BOOST_TEST(nn::str(nn::Fold({4, 5}, 2, {.stride = {1, 2}})) ==
             "Fold(output_size=(4, 5), kernel_size=2, dilation=1, padding=0, stride=(1, 2))");
  BOOST_TEST(nn::str(nn::Unfold({2, 3})) ==
             "Unfold(kernel_size=(2, 3), dilation=1, padding=0, stride=1)");
}

BOOST_AUTO_TEST_CASE(what_does_not_fit) {
  require_error<ValueError>(
      [] {
        nn::ZeroPad2d({1, 2});
      },
      "ZeroPad2d: padding is (1, 2); it has to be one number or 4");
  require_error<ShapeError>([] { nn::ReflectionPad1d(1)(zeros({4})); },
                            "ReflectionPad1d: expected an input of 2 or 3 dimensions, got one of "
                            "shape (4,)");
  require_error<ShapeError>(
      [] {
        nn::CircularPad2d(1)(zeros({1, 1, 2, 2, 2}));
      },
      "CircularPad2d: expected an input of 3 or 4 dimensions");
  require_error<ShapeError>([] { nn::ZeroPad2d(1)(zeros({3})); },
                            "ZeroPad2d: expected an input of at least 2 dimensions");
  require_error<ShapeError>([] { nn::ConstantPad2d(1, 2)(zeros({3})); },
                            "ConstantPad2d: expected an input of at least 2 dimensions");
  require_error<ShapeError>([] { nn::ReflectionPad1d(3)(zeros({1, 3})); }, "reflect");
  require_error<ValueError>([] { nn::Unfold(0); }, "Unfold: kernel_size is 0");
  require_error<ValueError>([] { nn::Fold({0, 1}, 1); }, "Fold: output_size is (0, 1)");
  require_error<ValueError>([] { nn::Fold(4, 2, {.stride = 0}); }, "Fold: stride is 0");
}

BOOST_AUTO_TEST_SUITE_END()
