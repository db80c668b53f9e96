// Arithmetic that changes a tensor: add_, sub_, mul_, div_.
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/device.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/subscript.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(pointwise)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(arithmetic_in_place) {
  Tensor x = doubles({1, 2, 3, 4, 5, 6}, {2, 3});
  const uint64_t before = x.version();
  Tensor row = x[1];
  require_values(row.add_(doubles({1, 1, 1}, {3})), {3}, {5, 6, 7});
  require_values(x.mul_(2).sub_(1), {2, 3}, {1, 3, 5, 9, 11, 13});
  require_values(x.div_(doubles({1, 3, 5}, {3})), {2, 3}, {1, 1, 1, 9, 11.0 / 3, 2.6});
  BOOST_CHECK(x.version() > before);
  require_values(x.t().add_(doubles({0, 10}, {2})), {3, 2}, {1, 19, 1, 11.0 / 3 + 10, 1, 12.6});
  require_values(x.narrow(1, 0, 1), {2, 1}, {1, 19});
  Tensor whole = ints({7, 8}, {2});
  require_values(whole.mul_(3).add_(whole), {2}, {42, 48});
  BOOST_CHECK(whole.dtype() == i64);
  Tensor half = ones({2}, f16);
  BOOST_CHECK(half.add_(ones({2}, f32)).dtype() == f16);
}

// A bound that is NaN takes two operators, of which the first must not write over the target.
BOOST_AUTO_TEST_CASE(clamp_in_place_by_nan) {
  Tensor x = doubles({1.5, -2.5}, {2});
  x.clamp_(NAN, 1.0);
  for (const double value : x.to_vector<double>()) BOOST_TEST(std::isnan(value));
}

// Operands that are the target, or a view of it.
BOOST_AUTO_TEST_CASE(bits_and_masks_of_the_target_itself) {
  Tensor bits = ints({6, 5, 12}, {3});
  require_values(bits.bitwise_xor_(bits[0]), {3}, {0, 3, 10});
  require_values(bits.bitwise_or_(bits).bitwise_and_(bits[2]), {3}, {0, 2, 10});
  Tensor mask = gt(doubles({1, -1, 2}, {3}), 0);
  mask.logical_not_();
  require_values(mask.to(i64), {3}, {0, 1, 0});
  mask.masked_fill_(mask, false);
  require_values(mask.to(i64), {3}, {0, 0, 0});
  Tensor x = doubles({1, 2, 3}, {3});
  x.masked_fill_(gt(x, 1.5), x[0]);
  require_values(x, {3}, {1, 1, 1});
}

namespace {

struct Change {
  const char* name;
  std::function<void(Tensor&)> in_place;
  std::function<Tensor(const Tensor&)> apart;
};

// How many tensors a change makes on the way.
uint64_t made_by(Tensor& x, const Change& change) {
  const uint64_t before = memory_stats(x.device()).allocations;
  change.in_place(x);
  return memory_stats(x.device()).allocations - before;
}

}  // namespace

namespace {

void check_changes(int64_t rows, int64_t width) {
  const Tensor y = rand({rows, width}), row = rand({width}), whole = full({width}, 3.0),
               mask = gt(y, 0.5), filler = full({}, 7.0);
  const std::vector<Change> changes = {
      {"add_", [&](Tensor& x) { x += y; }, [&](auto& x) { return x + y; }},
      {"add_ of a row", [&](Tensor& x) { x += row; }, [&](auto& x) { return x + row; }},
      {"mul_", [](Tensor& x) { x *= 0.5; }, [](auto& x) { return x * 0.5; }},
      {"lerp_", [&](Tensor& x) { x.lerp_(y, 0.25); }, [&](auto& x) { return lerp(x, y, 0.25); }},
      {"clamp_", [](Tensor& x) { x.clamp_(-0.5, 0.5); },
       [](auto& x) { return clamp(x, -0.5, 0.5); }},
      {"remainder_ of a row", [&](Tensor& x) { x.remainder_(row); },
       [&](auto& x) { return remainder(x, row); }},
      {"addcdiv_", [&](Tensor& x) { x.addcdiv_(y, whole); },
       [&](auto& x) { return addcdiv(x, y, whole); }},
      {"pow_", [](Tensor& x) { x.pow_(2); }, [](auto& x) { return pow(x, 2); }},
      {"pow_ of a row", [&](Tensor& x) { x.pow_(whole); }, [&](auto& x) { return pow(x, whole); }},
      {"fmod_", [](Tensor& x) { x.fmod_(0.3); }, [](auto& x) { return fmod(x, 0.3); }},
      {"nan_to_num_", [](Tensor& x) { x.nan_to_num_(); }, [](auto& x) { return nan_to_num(x); }},
      {"addcmul_", [&](Tensor& x) { x.addcmul_(y, row); },
       [&](auto& x) { return addcmul(x, y, row); }},
      {"masked_fill_", [&](Tensor& x) { x.masked_fill_(mask, filler); },
       [&](auto& x) { return masked_fill(x, mask, filler); }},
      {"relu_", [](Tensor& x) { x.relu_(); }, [](auto& x) { return relu(x); }},
      {"exp_", [](Tensor& x) { x.exp_(); }, [](auto& x) { return exp(x); }}};
  const Tensor base = randn({rows + 4, width}), columns = randn({width, rows}),
               wide = randn({rows, 2 * width});
  for (auto& change : changes)
    // Row-major, by columns, rows of another tensor, and with gaps.
    for (Tensor x : {base.narrow(0, 0, rows).clone(), columns.clone().t(),
                     base.clone().narrow(0, 4, rows), wide.clone().narrow(1, 3, width)}) {
      const bool has_gaps = x.strides()[0] == 2 * width;
      const std::vector<double> expected = change.apart(x).to_vector<double>();
      const uint64_t version = x.version();
      BOOST_TEST_CONTEXT(change.name << " of " << rows << " rows with strides " << x.strides()[0]
                                     << ", " << x.strides()[1]) {
        BOOST_TEST(made_by(x, change) == (has_gaps ? 1 : 0));
        BOOST_TEST(x.to_vector<double>() == expected);
        BOOST_TEST(x.version() > version);
      }
    }
}

}  // namespace

// Elements that fill vectors of each width, and elements that fill none.
BOOST_AUTO_TEST_CASE(an_operator_writes_over_a_tensor_without_gaps) {
  check_changes(16, 10);
  check_changes(17, 11);
  check_changes(2, 3);
}

BOOST_AUTO_TEST_CASE(what_shares_memory_or_is_converted_makes_a_new_tensor) {
  Tensor square = doubles({1, 2, 3, 4}, {2, 2});
  square += square.t();
  require_values(square, {2, 2}, {2, 5, 5, 8});
  square.mul_(square);
  require_values(square, {2, 2}, {4, 25, 25, 64});
  square.addcmul_(square, ones_like(square), 0.5);
  require_values(square, {2, 2}, {6, 37.5, 37.5, 96});
  square.div_(1.5);
  require_values(square, {2, 2}, {4, 25, 25, 64});
  square += square[0];
  require_values(square, {2, 2}, {8, 50, 29, 89});
  Tensor line = doubles({1, 2, 3, 4}, {4}), later = line.narrow(0, 1, 3);
  later += line.narrow(0, 0, 3);
  require_values(line, {4}, {1, 3, 5, 7});
  Tensor narrow = floats({1, 2}, {2});
  narrow += doubles({1e-3, 1}, {2});
  require_values(narrow, {2}, {1.001, 3}, 1e-6);
  Tensor one = doubles({3}, {1});  // the result has another shape
  require_error<ShapeError>([&] { one += line; }, "add_: the result has shape (4,)");
  require_values(one, {1}, {3});
  Tensor none = zeros({0, 2});
  none += 1;
  require_values(none.relu_(), {0, 2}, {});
  // What a rule reads is not changed unnoticed.
  Tensor w = doubles({2}, {1}).requires_grad_(), factor = doubles({3}, {1});
  const Tensor product = w * factor;
  factor += 1;
  require_error<AutogradError>([&] { product.backward(); }, "");
}

BOOST_AUTO_TEST_CASE(errors_of_arithmetic_in_place) {
  Tensor x = zeros({2}), whole = ints({1, 2}, {2});
  require_error<DTypeError>([&] { whole.add_(1.5); },
                            "add_: the result is f32, but the tensor that it changes is i64");
  require_error<DTypeError>([&] { whole.div_(2); }, "div_: the result is f32");
  require_error<ShapeError>(
      [&] {
        x.sub_(zeros({3, 2}));
      },
      "sub_: the result has shape (3, 2), but the tensor that it changes (2,)");
  require_error<ValueError>([&] { zeros({1}).expand({2}).mul_(2); }, "share one place in memory");
  require_error<ValueError>([&] { Tensor().add_(1); }, "add_: x is an undefined tensor");
  Tensor leaf = ones({2}, {.requires_grad = true});
  require_error<AutogradError>([&] { leaf.mul_(2); }, "mul_: changes a tensor in place");
  require_error<AutogradError>([&] { leaf += 1; }, "add_: changes a tensor in place", "a leaf");
  Tensor base = zeros({2}), view = base.view({2, 1});
  require_error<AutogradError>([&] { base += leaf; }, "add_: this change requires a gradient",
                               "the tensor of shape (2,) shares its memory with others");
  Tensor sum = leaf * 2;
  require_error<AutogradError>([&] { sum[0] += 1; }, "the tensor of shape () shares its memory");
  // What a rule reads cannot be changed unnoticed: exp saves its result.
  Tensor grown = exp(leaf);
  require_error<AutogradError>([&] { grown += 1; }, "or what backward() still needs");
  no_grad([&] { leaf.mul_(2); });
  require_values(leaf.detach(), {2}, {2, 2});
}

BOOST_AUTO_TEST_CASE(operators_change_the_tensor_itself) {
  Tensor x = doubles({1, 2}, {2}), same = x;
  x += 1;
  x *= doubles({2, 3}, {2});
  x -= doubles({1, 1}, {2});
  x /= 2;
  require_values(same, {2}, {1.5, 4});
  x[1] += 1;
  require_values(same, {2}, {1.5, 5});
  Tensor table = zeros({2, 2});
  auto row = table(1);
  row += 2;
  table(Slice(), 0) -= 1;
  require_values(table, {2, 2}, {-1, 0, 1, 2});
}

// The gradients of w are those of the same computation that makes new tensors.
BOOST_AUTO_TEST_CASE(changes_are_recorded) {
  auto gradients = [](auto&& compute) {
    Tensor w = doubles({2, 3}, {2}).requires_grad_(), v = doubles({5, 7}, {2}).requires_grad_();
    compute(w, v).sum().backward();
    return std::pair(w.grad().to_vector<double>(), v.grad().to_vector<double>());
  };
  const auto in_place = gradients([](const Tensor& w, const Tensor& v) {
    Tensor total = zeros({2}, f64);
    total += w * v;
    total *= v;
    total *= total;
    total -= w;
    total /= v;
    total *= 3;
    total += 1;
    return total;
  });
  const auto apart = gradients([](const Tensor& w, const Tensor& v) {
    const Tensor product = w * v * v;
    return (product * product - w) / v * 3 + 1;
  });
  BOOST_TEST(in_place.first == apart.first);
  BOOST_TEST(in_place.second == apart.second);
  // The handle is not a leaf any more, and a second order is the same, too.
  Tensor x = doubles({2}, {1}).requires_grad_(), y = zeros({1}, f64);
  y += x * x;
  y *= x;
  BOOST_TEST(!y.is_leaf());
  BOOST_TEST(y.requires_grad());
  const Tensor first = grad(y, x, {.create_graph = true});
  require_values(first.detach(), {1}, {12});
  require_values(grad(first, x), {1}, {12});
  // f32 results of an f16 tensor keep its type, and so does the gradient.
  Tensor half = ones({1}, f16).requires_grad_(), sum = half * 1;
  sum += ones({1});
  BOOST_CHECK(sum.dtype() == f16);
  sum.backward();
  BOOST_CHECK(half.grad().dtype() == f16);
}

BOOST_AUTO_TEST_SUITE_END()
