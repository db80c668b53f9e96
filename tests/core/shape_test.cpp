// Shapes as values: what they are made of, and looking up their dimensions.
#include <span>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/error.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/tensor.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(shape_test)

using namespace tenon;
using test::error_of;
using test::has;

BOOST_AUTO_TEST_CASE(dimensions_of_a_shape_are_looked_up_safely) {
  const Shape shape{2, 3};
  BOOST_TEST(shape[-1] == 3);
  BOOST_TEST(shape[-2] == 2);
  BOOST_TEST(shape[1] == 3);
  BOOST_TEST(shape.back() == 3);
  for (int i : {2, 5, -3})
    BOOST_TEST(has(
        error_of([&] { (void)shape[i]; }),
        "dimension " + std::to_string(i) + " of (2, 3) does not exist; it must lie in [-2, 1]"));
  BOOST_CHECK_THROW((void)shape[size_t{2}], IndexError);
  BOOST_CHECK_THROW((void)scalar(1).shape().back(), IndexError);
  BOOST_TEST(has(error_of([] { (void)Shape()[0]; }), "there are no dimensions"));
  Shape changed = shape;
  changed[-1] = 7;
  BOOST_TEST((changed == Shape{2, 7}));
  BOOST_CHECK_THROW(changed[2] = 1, IndexError);
  BOOST_CHECK_THROW(changed.erase(2), IndexError);
  BOOST_CHECK_THROW(changed.insert(3, 1), IndexError);
  BOOST_TEST((changed == Shape{2, 7}));
}

BOOST_AUTO_TEST_CASE(shapes_are_made_of_what_callers_have) {
  const std::vector<int64_t> sizes{2, 3};
  BOOST_TEST((zeros(sizes).shape() == Shape{2, 3}));
  BOOST_TEST((ones(6).reshape(std::span<const int64_t>(sizes)).shape() == Shape{2, 3}));
  const Tensor x = arange(0, 6).reshape({2, 3});
  BOOST_TEST((x.sum(0).shape() == Shape{3}));
  BOOST_TEST((x.mean(-1, true).shape() == Shape{2, 1}));
  BOOST_TEST((x.reshape(-1).shape() == Shape{6}));
  BOOST_TEST((logsumexp(x, 1).shape() == Shape{2}));
  BOOST_TEST((var(x, 1).shape() == Shape{2}));
  BOOST_TEST((zeros(3).shape() == Shape{3}));
  BOOST_TEST((x.sum({}).shape() == Shape{}));
  BOOST_TEST((x.permute(std::vector<int64_t>{1, 0}).shape() == Shape{3, 2}));
}

namespace {
// Whether `keepdim` could be taken for a dimension or a correction.
template <class B>
concept TakesBool =
    requires(const Tensor& x, B b) { var(x, {1}, b); } ||
    requires(const Tensor& x, B b) { tenon::std(x, {1}, b); } ||
    requires(const Tensor& x, B b) { x.sum(b); } || requires(const Tensor& x, B b) { amax(x, b); };
static_assert(!TakesBool<bool>);
}  // namespace

BOOST_AUTO_TEST_SUITE_END()
