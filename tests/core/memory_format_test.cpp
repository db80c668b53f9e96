// In which order results lie in memory. Strides are those that PyTorch 2.15 gives.
#include <limits>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(memory_format_test)

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

Tensor counted(const Shape& shape) { return arange(0, shape.numel()).reshape(shape); }
Tensor image() { return counted({2, 3, 4, 5}).to(channels_last); }

// The result of `f` has these strides for the given tensors, and the values that it has for
// row-major ones.
template <class F>
void check(const char* what, const Strides& strides, F&& f, const std::vector<Tensor>& inputs) {
  BOOST_TEST_CONTEXT(what) {
    std::vector<Tensor> row_major;
    for (auto& t : inputs) row_major.push_back(t.contiguous());
    const Tensor y = f(inputs), expected = f(row_major);
    BOOST_TEST(y.strides() == strides);
    BOOST_TEST(y.to_vector<float>() == expected.to_vector<float>(),
               boost::test_tools::per_element());
  }
}
using List = const std::vector<Tensor>&;
const auto add_both = [](List t) { return t[0] + t[1]; };
const auto exp_of = [](List t) { return (t[0] / 100.0).exp(); };

}  // namespace

BOOST_AUTO_TEST_CASE(a_tensor_is_brought_into_a_format_and_back) {
  const Tensor x = counted({2, 3, 4, 5}), y = x.to(channels_last);
  BOOST_TEST(y.strides() == (Strides{60, 1, 15, 3}));
  BOOST_TEST((y.is_contiguous(channels_last) && !y.is_contiguous()));
  BOOST_TEST((y.suggest_memory_format() == channels_last));
  BOOST_TEST((x.suggest_memory_format() == contiguous_format));
  BOOST_TEST(y.to_vector<float>() == x.to_vector<float>(), boost::test_tools::per_element());
  BOOST_TEST(y.str() == x.str());
  BOOST_TEST(y.to(channels_last).is_same(y));
  BOOST_TEST(x.to(preserve_format).is_same(x));
  BOOST_TEST(y.to(contiguous_format).strides() == (Strides{60, 20, 5, 1}));
  BOOST_TEST(y.contiguous().strides() == (Strides{60, 20, 5, 1}));
  BOOST_TEST(y.clone().strides() == y.strides());
  BOOST_TEST(y.clone(contiguous_format).is_contiguous());
  BOOST_TEST(zeros({2, 3, 2, 4, 5}).to(channels_last_3d).strides() == (Strides{120, 1, 60, 15, 3}));
}

BOOST_AUTO_TEST_CASE(layouts_that_are_in_two_formats) {
  const Tensor one_channel = zeros({2, 1, 4, 5}), pixel = zeros({2, 3, 1, 1});
  BOOST_TEST((one_channel.is_contiguous(channels_last) && pixel.is_contiguous(channels_last)));
  BOOST_TEST(one_channel.contiguous(channels_last).is_same(one_channel));
  BOOST_TEST(one_channel.to(channels_last).strides() == (Strides{20, 1, 5, 1}));
  BOOST_TEST(one_channel.to(channels_last).is_contiguous());
  BOOST_TEST(pixel.to(channels_last).strides() == (Strides{3, 1, 3, 3}));
  BOOST_TEST((pixel.to(channels_last).suggest_memory_format() == channels_last));
  BOOST_TEST(zeros({1, 1, 4, 1}).to(channels_last).strides() == (Strides{4, 1, 1, 1}));
  BOOST_TEST(zeros({1, 1, 1, 1}).to(channels_last).strides() == (Strides{1, 1, 1, 1}));
  BOOST_TEST(zeros({0, 3, 4, 5}).to(channels_last).strides() == (Strides{60, 1, 15, 3}));
  // What is contiguous is one stretch of memory, whatever the strides of single elements.
  BOOST_TEST(pixel.to(channels_last).view({6}).numel() == 6);
}

BOOST_AUTO_TEST_CASE(pointwise_results_keep_the_order_of_their_inputs) {
  const Strides last = {60, 1, 15, 3}, row_major = {60, 20, 5, 1};
  const Tensor x = image(), rows = counted({2, 3, 4, 5}) * 3;
  check("unary", last, exp_of, {x});
  check("channels last first", last, add_both, {x, rows});
  check("row-major first", row_major, add_both, {rows, x});
  check("two of one order", last, add_both, {x, image() * 2});
  check("a bias", last, add_both, {x, counted({1, 3, 1, 1})});
  check("a bias first", last, add_both, {counted({3, 1, 1}), x});
  check("a row", last, add_both, {x, counted({5})});
  check("a plane first", last, add_both, {counted({4, 5}), x});
  check("a scalar", last, add_both, {x, counted({})});
  check("three", last, [](List t) { return where(t[0] > 30, t[0], t[1]); }, {x, rows});
  const Tensor t = counted({4, 3}).t(), c = counted({3, 4});
  check("transposed", {1, 3}, exp_of, {t});
  check("transposed first", {1, 3}, add_both, {t, c});
  check("transposed second", {4, 1}, add_both, {c, t});
  check("with gaps", {3, 1}, exp_of, {counted({6, 8}).slice(0, 0, 6, 2).slice(1, 1, 4)});
  check("transposed with gaps", {1, 4}, exp_of,
        {counted({6, 8}).t().slice(0, 0, 8, 2).slice(1, 1, 4)});
  check("expanded", {4, 1}, exp_of, {counted({3, 1}).expand({3, 4})});
  check("expanded inside", {1, 4, 12}, exp_of,
        {counted({2, 1, 4}).permute({2, 1, 0}).expand({4, 3, 2})});
  check("permuted", {1, 20, 60, 5}, [](List l) { return l[0] * 2; },
        {counted({2, 3, 4, 5}).permute({3, 1, 0, 2})});
  check("some channels", {40, 1, 10, 2}, exp_of, {x.slice(1, 1, 3)});
  BOOST_TEST(x.slice(1, 1, 3).clone().strides() == (Strides{40, 1, 10, 2}));
  BOOST_TEST(x.to(f64).strides() == last);
  BOOST_TEST((x > 3).strides() == last);
}

BOOST_AUTO_TEST_CASE(changes_in_place_keep_the_order) {
  Tensor x = image();
  x.add_(1).mul_(2).relu_();
  BOOST_TEST(x.strides() == (Strides{60, 1, 15, 3}));
  BOOST_TEST(x.to_vector<float>()[7] == 16.0f);
  x.copy_(counted({2, 3, 4, 5}));
  BOOST_TEST(x.to_vector<float>()[7] == 7.0f);
  x.add_(counted({2, 3, 4, 5}));
  BOOST_TEST(x.to_vector<float>()[7] == 14.0f);
  x.fill_(3);
  BOOST_TEST(x.sum().item() == 360.0);
}

BOOST_AUTO_TEST_CASE(factories_take_a_format) {
  const Strides last = {60, 1, 15, 3};
  const Tensor x = image();
  BOOST_TEST(empty({2, 3, 4, 5}, {.memory_format = channels_last}).strides() == last);
  BOOST_TEST(ones({2, 3, 4, 5}, {.memory_format = channels_last}).strides() == last);
  BOOST_TEST(randn({2, 3, 4, 5}, {.memory_format = channels_last}).strides() == last);
  BOOST_TEST(zeros_like(x).strides() == last);
  BOOST_TEST(empty_like(x).strides() == last);
  const Tensor sevens = full_like(x, 7, {.requires_grad = true});
  BOOST_TEST(sevens.strides() == last);
  BOOST_TEST((sevens.requires_grad() && sevens.is_leaf()));
  BOOST_TEST(sevens.sum().item() == 840.0);
  BOOST_TEST(rand_like(x).strides() == last);
  BOOST_TEST(randn_like(x, {.memory_format = contiguous_format}).is_contiguous());
  BOOST_TEST(randint_like(x, 0, 9, {.dtype = i64}).strides() == last);
  BOOST_TEST(zeros_like(x, {.memory_format = contiguous_format}).is_contiguous());
  BOOST_TEST(ones_like(counted({6, 8}).t().slice(0, 0, 8, 2)).strides() == (Strides{1, 4}));
  // Random values do not depend on the order.
  manual_seed(5);
  const auto row_major = randn({2, 3, 4, 5}).to_vector<float>();
  manual_seed(5);
  BOOST_TEST(randn({2, 3, 4, 5}, {.memory_format = channels_last}).to_vector<float>() == row_major,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(views_and_copies_of_channels_last) {
  const Tensor x = image();
  require_error<ShapeError>([&] { x.view({2, 60}); }, "view");
  BOOST_TEST(x.reshape({2, 60}).to_vector<float>() == x.to_vector<float>(),
             boost::test_tools::per_element());
  BOOST_TEST(x.permute({0, 2, 3, 1}).is_contiguous());
  BOOST_TEST(cat({x, x}, 1).strides() == (Strides{120, 1, 30, 6}));
  BOOST_TEST(cat({x, x}, 1).to_vector<float>() ==
                 cat({x.contiguous(), x.contiguous()}, 1).to_vector<float>(),
             boost::test_tools::per_element());
  BOOST_TEST(cat({x, counted({2, 3, 4, 5})}, 1).is_contiguous());
  BOOST_TEST(pad(x, {1, 1}).strides() == (Strides{84, 1, 21, 3}));
  // Others see the same memory.
  const Tensor back = from_dlpack(to_dlpack(x));
  BOOST_TEST(back.strides() == x.strides());
  BOOST_TEST((back.suggest_memory_format() == channels_last));
  BOOST_TEST(back.to_vector<float>() == x.to_vector<float>(), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(gradients_lie_as_their_leaves) {
  Tensor x = image().requires_grad_();
  (x.contiguous() * 2).sum().backward();
  BOOST_TEST(x.grad().strides() == x.strides());
  const Tensor first = x.grad();
  (x * counted({2, 3, 4, 5})).sum().backward();
  BOOST_TEST(x.grad().strides() == x.strides());
  BOOST_TEST(x.grad().to_vector<float>()[7] == 9.0f);
  Tensor rows = counted({2, 3, 4, 5}).requires_grad_();
  (rows.to(channels_last) * image()).sum().backward();
  BOOST_TEST(rows.grad().is_contiguous());
  BOOST_TEST(rows.grad().to_vector<float>()[7] == 7.0f);
}

BOOST_AUTO_TEST_CASE(refusals) {
  require_error<ShapeError>(
      [] {
        zeros({2, 3}).to(channels_last);
      },
      "to: channels_last is a format of tensors of 4 dimensions", "found shape (2, 3)");
  require_error<ShapeError>(
      [] {
        zeros({2, 3, 4, 5}).contiguous(channels_last_3d);
      },
      "contiguous: channels_last_3d is a format of tensors of 5 dimensions");
  require_error<ShapeError>([] { empty({2}, {.memory_format = channels_last}); },
                            "empty: channels_last is a format of tensors of 4 dimensions");
  require_error<ShapeError>([] { linspace(0, 1, 3, {.memory_format = channels_last}); },
                            "to: channels_last is a format of tensors of 4 dimensions");
  require_error<ValueError>([] { zeros({2}).contiguous(preserve_format); },
                            "contiguous: preserve_format is no order of elements");
  require_error<ValueError>([] { (void)zeros({2}).is_contiguous(preserve_format); },
                            "is_contiguous: preserve_format is no format of a tensor");
}

BOOST_AUTO_TEST_CASE(what_may_overlap_is_not_changed_in_place) {
  std::vector<float> values(32, 1.0f);
  auto over = [&](const Shape& shape, const Strides& strides) {
    return from_blob(values.data(), shape, strides, f32);
  };
  const char* const text = "share one place in memory";
  require_error<ValueError>([&] { over({4, 3}, {1, 1}).add_(1); }, text);  // windows of three
  require_error<ValueError>([&] { over({3, 4}, {2, 1}).fill_(1); }, text);
  require_error<ValueError>([&] { over({2, 2, 2}, {3, 2, 1}).copy_(ones({2, 2, 2})); }, text);
  require_error<ValueError>([&] { over({3, 2}, {0, 1}).mul_(2); }, text);
  over({4, 3}, {1, 4}).add_(1);
  over({2, 3}, {16, 5}).add_(1);
  BOOST_TEST(values[0] == 3.0f);
  BOOST_TEST(values[26] == 2.0f);
}

// Strides of single elements, and of none, may be any number.
BOOST_AUTO_TEST_CASE(strides_that_nobody_takes) {
  std::vector<float> values(8, 1.0f);
  Tensor x = from_blob(values.data(), {1, 4, 1}, {kMax, 2, kMax}, f32);
  x.add_(1);
  BOOST_TEST(x.exp().sum().item() > 4.0);
  BOOST_TEST(x.slice(0, 0, 1, 5).contiguous().numel() == 4);
  BOOST_TEST(x.expand({3, 4, 1}).sum().item() == 24.0);
  BOOST_TEST(values[2] == 2.0f);
  BOOST_TEST(values[1] == 1.0f);
  Tensor none = from_blob(values.data(), {3, 0, 2}, {kMax, kMax, kMax}, f32);
  none.add_(1);
  BOOST_TEST(none.transpose(0, 2).sum().item() == 0.0);
  Tensor planes = from_blob(values.data(), {1, 4, 1, 2}, {kMax, 2, kMax, 1}, f32);
  BOOST_TEST(planes.to(channels_last).sum().item() == 12.0);
}

BOOST_AUTO_TEST_SUITE_END()
