#include <algorithm>
#include <cmath>
#include <vector>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(loss)

using namespace tenon;
using namespace tenon::test;

namespace {

std::vector<CrossEntropyOptions> all_options() {
  std::vector<CrossEntropyOptions> result;
  for (Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none})
    for (double smoothing : {0.0, 0.2})
      for (bool weighted : {false, true})
        for (int64_t ignored : {-100, 1})
          result.push_back({weighted ? positive({3}, 2) : Tensor(), reduction, ignored, smoothing});
  return result;
}

// From log_softmax, row by row, as PyTorch documents it.
std::vector<double> by_definition(const Tensor& logits, const std::vector<int64_t>& labels,
                                  const CrossEntropyOptions& o) {
  auto logp = log_softmax(logits, 1).to_vector<double>();
  size_t classes = static_cast<size_t>(logits.size(1));
  auto weight = o.weight.defined() ? o.weight.to_vector<double>() : std::vector<double>(classes, 1);
  std::vector<double> rows;
  double total = 0, weights = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    double loss = 0;
    if (labels[i] != o.ignore_index) {
      size_t label = static_cast<size_t>(labels[i]);
      loss = -(1 - o.label_smoothing) * weight[label] * logp[i * classes + label];
      for (size_t c = 0; c < classes; ++c)
        loss -=
            o.label_smoothing / static_cast<double>(classes) * weight[c] * logp[i * classes + c];
      weights += weight[label];
    }
    rows.push_back(loss);
    total += loss;
  }
  if (o.reduction == Reduction::none) return rows;
  return {o.reduction == Reduction::sum ? total : total / weights};
}

}  // namespace

BOOST_AUTO_TEST_CASE(cross_entropy_values_and_gradients) {
  Tensor logits = sample({5, 3});
  std::vector<int64_t> labels = {0, 2, 1, 1, 0};
  for (auto& o : all_options()) {
    require_close(cross_entropy(logits, ints(labels, {5}), o).to_vector<double>(),
                  by_definition(logits, labels, o), 1e-12, 1e-12, name_of(o.reduction));
    check_gradients([&](auto& v) { return cross_entropy(v[0], ints(labels, {5}), o); }, {logits},
                    std::string("cross_entropy ") + name_of(o.reduction));
    Tensor x = logits.clone().requires_grad_();
    Tensor loss = weighted_sum(cross_entropy(x, ints(labels, {5}), o), 0.4);
    require_equal(grad(loss, x, {.retain_graph = true}), grad(loss, x, {.create_graph = true}),
                  1e-12);
  }
}

// A number that is added to all logits changes nothing, however large it is.
BOOST_AUTO_TEST_CASE(cross_entropy_of_large_logits) {
  const Tensor near_zero = floats({0, -1, -2, 3, 0, 1}, {2, 3}), labels = ints({0, 2}, {2});
  for (double smoothing : {0.0, 0.25})
    for (bool weighted : {false, true}) {
      const CrossEntropyOptions o{.weight = weighted ? floats({1, 2, 0.5}, {3}) : Tensor(),
                                  .reduction = Reduction::none,
                                  .label_smoothing = smoothing};
      Tensor expected = near_zero.clone().requires_grad_();
      Tensor loss = cross_entropy(expected, labels, o);
      loss.sum().backward();
      for (double added : {1e3, 1e5, 1e6, -1e7, 1e7}) {
        Tensor x = (near_zero + added).requires_grad_();
        Tensor far = cross_entropy(x, labels, o);
        require_equal(far, loss, 1e-6);
        require_equal(grad(far.sum(), x, {.retain_graph = true}), expected.grad(), 1e-6);
        require_equal(grad(far.sum(), x, {.create_graph = true}), expected.grad(), 1e-6);
      }
    }
  // -log_softmax of (10, 0, 0) by its definition, in f64.
  const double small = std::log1p(2 * std::exp(-10.0));
  BOOST_TEST(cross_entropy(floats({10, 0, 0}, {1, 3}), ints({0}, {1})).item<double>() == small,
             boost::test_tools::tolerance(1e-3));
}

BOOST_AUTO_TEST_CASE(other_forms_of_cross_entropy) {
  Tensor pixels = sample({2, 3, 2, 2});
  Tensor labels = ints({0, 1, 2, 0, 1, 1, 2, 2}, {2, 2, 2});
  Tensor rows = pixels.reshape({2, 3, 4}).transpose(1, 2).reshape({8, 3});
  for (Reduction reduction : {Reduction::mean, Reduction::sum})
    require_equal(cross_entropy(pixels, labels, {.reduction = reduction}),
                  cross_entropy(rows, labels.flatten(), {.reduction = reduction}), 1e-12);
  require_equal(
      cross_entropy(pixels, labels, {.reduction = Reduction::none}),
      cross_entropy(rows, labels.flatten(), {.reduction = Reduction::none}).reshape({2, 2, 2}),
      1e-12);
  require_equal(cross_entropy(rows[0], ints({2}, {})),
                cross_entropy(rows.narrow(0, 0, 1), ints({2}, {1})), 1e-12);
  require_equal(cross_entropy(rows, labels.flatten().to(i32)),
                cross_entropy(rows, labels.flatten()));
  check_gradients([&](auto& v) { return cross_entropy(v[0], labels); }, {pixels}, "pixels");

  // Probabilities that are all on one class are a label.
  Tensor sure = eq(labels.reshape({8, 1}), arange(0, 3, 1, {.dtype = i64})).to(f64);
  for (double smoothing : {0.0, 0.3})
    require_equal(cross_entropy(rows, sure, {.label_smoothing = smoothing}),
                  cross_entropy(rows, labels.flatten(), {.label_smoothing = smoothing}), 1e-12);
  check_gradients(
      [&](auto& v) { return cross_entropy(v[0], softmax(v[1], 1), {.weight = positive({3})}); },
      {rows, sample({8, 3}, 5)}, "probabilities");
}

BOOST_AUTO_TEST_CASE(no_rows_or_none_that_count) {
  BOOST_CHECK(std::isnan(cross_entropy(zeros({0, 3}), ints({}, {0})).item()));
  BOOST_CHECK_EQUAL(
      cross_entropy(zeros({0, 3}), ints({}, {0}), {.reduction = Reduction::none}).numel(), 0);
  Tensor logits = sample({2, 3});
  BOOST_CHECK(std::isnan(cross_entropy(logits, ints({-100, -100}, {2})).item()));
  BOOST_CHECK_EQUAL(
      cross_entropy(logits, ints({-100, -100}, {2}), {.reduction = Reduction::sum}).item(), 0);
}

BOOST_AUTO_TEST_CASE(nll_loss_equals_cross_entropy_of_log_softmax) {
  Tensor logits = sample({5, 3}), labels = ints({0, 2, 1, 1, 0}, {5});
  for (auto& o : all_options()) {
    if (o.label_smoothing != 0) continue;
    NllLossOptions n{o.weight, o.reduction, o.ignore_index};
    require_equal(nll_loss(log_softmax(logits, 1), labels, n), cross_entropy(logits, labels, o),
                  1e-12);
    check_gradients([&](auto& v) { return nll_loss(v[0], labels, n); }, {logits}, "nll_loss");
  }
}

BOOST_AUTO_TEST_CASE(distances) {
  Tensor x = sample({3, 2}), y = sample({3, 2}, 2);
  require_values(mse_loss(doubles({1, 4}, {2}), doubles({2, 2}, {2})), {}, {2.5});
  require_values(l1_loss(doubles({1, 4}, {2}), doubles({2, 2}, {2}), Reduction::sum), {}, {3});
  require_values(mse_loss(doubles({1, 4}, {2}), doubles({2, 2}, {2}), Reduction::none), {2},
                 {1, 4});
  for (Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
    check_gradients([&](auto& v) { return mse_loss(v[0], v[1], reduction); }, {x, y}, "mse_loss");
    check_gradients([&](auto& v) { return l1_loss(v[0], v[1], reduction); }, {x, y}, "l1_loss");
    for (double limit : {0.3, 1.0, 20.0}) {
      check_gradients([&](auto& v) { return huber_loss(v[0], v[1], reduction, limit); }, {x, y},
                      "huber_loss");
      check_gradients([&](auto& v) { return smooth_l1_loss(v[0], v[1], reduction, limit); }, {x, y},
                      "smooth_l1_loss");
    }
  }
}

BOOST_AUTO_TEST_CASE(distances_with_a_limit) {
  const Tensor x = doubles({0, 1, -3, 5, 2}, {5}), y = doubles({0, 0, 0, 1, 0}, {5});
  require_values(huber_loss(x, y, Reduction::none, 2), {5}, {0, 0.5, 4, 6, 2});
  require_values(huber_loss(x, y, Reduction::sum, 2), {}, {12.5});
  require_values(huber_loss(x, y, Reduction::mean, 2), {}, {2.5});
  require_values(smooth_l1_loss(x, y, Reduction::none, 2), {5}, {0, 0.25, 2, 3, 1});
  require_values(smooth_l1_loss(x, y, Reduction::sum, 2), {}, {6.25});
  require_values(smooth_l1_loss(x, y, Reduction::mean, 2), {}, {1.25});
  // Without a limit it is half the square, and without small differences their size. A limit whose
  // reciprocal has no value in f32 is none there.
  require_equal(huber_loss(x, y, Reduction::sum, INFINITY), mse_loss(x, y, Reduction::sum) * 0.5);
  for (double none : {0.0, 0x1p-1074})
    require_equal(smooth_l1_loss(x, y, Reduction::sum, none), l1_loss(x, y, Reduction::sum));
  const Tensor a = floats({0, 1, -3}, {3}).requires_grad_(), b = zeros({3});
  for (double tiny : {1e-30, 1e-40}) {
    const Tensor loss = smooth_l1_loss(a, b, Reduction::sum, tiny);
    require_values(loss, {}, {4});
    require_values(grad(loss, a), {3}, {0, 1, -1});
  }
  // 2e-20 squared has no value in f32.
  const Tensor small = floats({2e-20f}, {1});
  require_values(smooth_l1_loss(small * 1e20, b[0].reshape({1}), Reduction::sum, 1e20), {},
                 {2e-20});
}

// More elements than one thread sums, of which the last block is not whole.
BOOST_AUTO_TEST_CASE(distances_of_many_elements) {
  for (DType dtype : {f32, f64, bf16}) {
    const Tensor x = randn({5, 20011}).to(dtype), y = randn({5, 20011}).to(dtype);
    const Tensor d = x.to(f64) - y.to(f64);
    for (Reduction reduction : {Reduction::mean, Reduction::sum}) {
      const double n = reduction == Reduction::mean ? 1.0 / 100055 : 1,
                   unit = dtype == bf16 ? 0x1p-8 : 1e-6;
      const auto check = [&](const char* name, auto&& loss, const Tensor& total,
                             const Tensor& slope) {
        BOOST_TEST_CONTEXT(name << " in " << dtype) {
          const Tensor a = x.detach().requires_grad_(), b = y.detach().requires_grad_();
          const Tensor found = loss(a, b, reduction);
          const double exact = total.item() * n;
          BOOST_TEST(std::abs(found.item() - exact) <= unit * exact);
          (found * 2).backward();
          const std::vector<double> gradient = (slope * (2 * n)).template to_vector<double>();
          require_close(a.grad().template to_vector<double>(), gradient, 2 * unit, 0, name);
          require_close(neg(b.grad()).template to_vector<double>(), gradient, 2 * unit, 0, name);
        }
      };
      check(
          "mse_loss", [](auto&... in) { return mse_loss(in...); }, sum(square(d)), d * 2);
      check(
          "l1_loss", [](auto&... in) { return l1_loss(in...); }, sum(abs(d)), sign(d));
      const Tensor near = clamp(d, -0.7, 0.7), values = near * (d - near * 0.5);
      check(
          "huber_loss", [](auto&... in) { return huber_loss(in..., 0.7); }, sum(values), near);
      check(
          "smooth_l1_loss", [](auto&... in) { return smooth_l1_loss(in..., 0.7); },
          sum(values) / 0.7, near / 0.7);
    }
  }
}

BOOST_AUTO_TEST_CASE(distances_of_odd_tensors) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  BOOST_CHECK(std::isnan(mse_loss(zeros({0, 3}), zeros({0, 3})).item()));
  BOOST_CHECK_EQUAL(l1_loss(zeros({0, 3}), zeros({0, 3}), Reduction::sum).item(), 0);
  require_values(mse_loss(doubles({3}, {}), doubles({1}, {})), {}, {4});
  const Tensor wide = doubles({1, 2, 3, 4, 5, 6}, {2, 3});
  require_values(mse_loss(wide.t(), wide.t().contiguous()), {}, {0});
  require_values(l1_loss(wide, wide[0]), {}, {1.5});
  require_values(mse_loss(ints({1, 4}, {2}).to(f64), ints({2, 2}, {2})), {}, {2.5});
  Tensor x = doubles({1, nan, inf}, {3}).requires_grad_();
  const Tensor y = doubles({0, 0, 0}, {3});
  BOOST_CHECK(std::isnan(mse_loss(x, y).item()));
  require_values(grad(mse_loss(x, y, Reduction::sum), x), {3}, {2, nan, inf});
  require_values(grad(l1_loss(x, y, Reduction::sum), x), {3}, {1, 0, 1});
}

BOOST_AUTO_TEST_CASE(distances_with_a_limit_of_odd_tensors) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Tensor wide = doubles({1, 2, 3, 4, 5, 6}, {2, 3}), none = zeros({0, 3});
  using Loss = Tensor (*)(const Tensor& x, const Tensor& y, Reduction reduction);
  const auto check = [&](Loss loss) {
    BOOST_CHECK(std::isnan(loss(none, none, Reduction::mean).item()));
    BOOST_CHECK_EQUAL(loss(none, none, Reduction::sum).item(), 0);
    Tensor empty = none.detach().requires_grad_();
    BOOST_TEST(grad(loss(empty, none, Reduction::sum), empty).shape() == Shape({0, 3}));
    require_values(loss(doubles({3}, {}), doubles({1}, {}), Reduction::mean), {}, {1.5});
    require_values(loss(wide.t(), wide.t().contiguous(), Reduction::mean), {}, {0});
    require_values(loss(wide, wide[0], Reduction::sum), {}, {7.5});
    const Tensor x = doubles({0.5, nan, inf, -inf, -2}, {5}).requires_grad_();
    const Tensor y = zeros({5}, {.dtype = f64});
    for (Reduction reduction : {Reduction::sum, Reduction::none})
      require_values(grad(sum(loss(x, y, reduction)), x), {5}, {0.5, nan, 1, -1, -1});
    require_values(loss(x, y, Reduction::none), {5}, {0.125, nan, inf, inf, 1.5});
    BOOST_CHECK(std::isnan(loss(x, y, Reduction::sum).item()));
    BOOST_CHECK_EQUAL(loss(x.slice(0, 2, 5), y.slice(0, 2, 5), Reduction::sum).item(), inf);
    require_error<ShapeError>(
        [&] {
          loss(wide, zeros({2, 2}, {.dtype = f64}), Reduction::sum);
        },
        "_loss: shapes", "(2, 2)");
  };
  check([](auto& x, auto& y, Reduction r) { return huber_loss(x, y, r); });
  check([](auto& x, auto& y, Reduction r) { return smooth_l1_loss(x, y, r); });
  require_error<ValueError>([&] { huber_loss(wide, wide, Reduction::sum, nan); }, "delta", "nan");
  require_error<ValueError>([&] { smooth_l1_loss(wide, wide, Reduction::sum, nan); }, "beta",
                            "nan");
}

BOOST_AUTO_TEST_CASE(bad_input) {
  Tensor logits = zeros({2, 3}), labels = ints({0, 1}, {2});
  require_error<ShapeError>(
      [&] { cross_entropy(logits, ints({0}, {1})); },
      "cross_entropy: an input of shape (2, 3) needs a target of shape (2,), found (1,)");
  require_error<DTypeError>([&] { cross_entropy(logits, zeros({2})); },
                            "target must be i64 or i32, found f32");
  require_error<DTypeError>([&] { cross_entropy(logits.to(i64), labels); },
                            "the input must be floating, found i64");
  require_error<ShapeError>([&] { cross_entropy(logits, labels, {.weight = zeros({2})}); },
                            "weight must have shape (3,)");
  require_error<DTypeError>(
      [&] { cross_entropy(logits, labels, {.weight = zeros({3}, {.dtype = f64})}); },
      "weight is f64, the input f32");
  require_error<ValueError>([&] { cross_entropy(logits, labels, {.label_smoothing = 1.5}); },
                            "label_smoothing must lie in [0, 1]");
  require_error<ShapeError>([&] { cross_entropy(scalar(1), ints({1}, {})); },
                            "dimension of classes");
  require_error<IndexError>([&] { cross_entropy(logits, ints({0, 3}, {2})).wait(); }, "3");
  require_error<IndexError>([&] { nll_loss(logits, ints({0, -1}, {2})).wait(); }, "-1");
  require_error<ShapeError>([&] { mse_loss(logits, zeros({2, 2})); }, "(2, 2)");
}

// Whatever the logits of a row that is ignored are, they go into nothing.
BOOST_AUTO_TEST_CASE(ignored_rows_of_nan_leave_loss_and_gradient_alone) {
  const Tensor labels = ints({1, -100, -100}, {3}), first = ints({1}, {1});
  const Tensor logits = floats({1, 2, 3, NAN, 1, 2, INFINITY, 0, -INFINITY}, {3, 3});
  for (Reduction reduction : {Reduction::mean, Reduction::sum})
    for (double smoothing : {0.0, 0.1})
      for (bool again : {false, true}) {
        const CrossEntropyOptions options{.reduction = reduction, .label_smoothing = smoothing};
        Tensor x = logits.clone().requires_grad_(),
               alone = logits.narrow(0, 0, 1).clone().requires_grad_();
        const Tensor loss = cross_entropy(x, labels, options),
                     expected = cross_entropy(alone, first, options);
        require_equal(loss, expected, 1e-6);
        const auto slope = [&](const Tensor& y, const Tensor& in) {
          return grad(std::span(&y, 1), std::span(&in, 1), {}, {.create_graph = again})[0];
        };
        require_equal(slope(loss, x), cat({slope(expected, alone), zeros({2, 3})}, 0), 1e-6);
      }
}

// As in PyTorch: without classes only rows that are ignored have a loss.
BOOST_AUTO_TEST_CASE(nll_loss_without_classes) {
  const Tensor scores = zeros({3, 0}), ignored = full({3}, -100, {.dtype = i64});
  require_values(nll_loss(scores, ignored, {.reduction = Reduction::sum}), {}, {0});
  require_values(nll_loss(scores, ignored, {.reduction = Reduction::none}), {3}, {0, 0, 0});
  BOOST_TEST(std::isnan(nll_loss(scores, ignored).item()));
  require_error<IndexError>([&] { nll_loss(scores, ints({-100, 0, -100}, {3})).wait(); }, "gather");
}

// More elements than one thread takes, and gradients that differ from one to the next.
BOOST_AUTO_TEST_CASE(a_loss_for_each_of_many_elements) {
  constexpr int64_t n = 40003;
  const double limit = 0.75;
  const Tensor a = sample({n}) * 3, b = sample({n}, 1.9), weights = sample({n}, 0.7);
  for (DType dtype : {f64, f32, bf16, f16}) {
    const double near = dtype == f64 ? 1e-12 : dtype == f32 ? 1e-5 : dtype == f16 ? 0.02 : 0.1;
    const Tensor t = b.to(dtype), g = weights.to(dtype);
    const auto check = [&](const char* name, auto loss, auto value, auto slope) {
      Tensor x = a.to(dtype).clone().requires_grad_(), y = t.clone().requires_grad_();
      const Tensor each = loss(x, y);
      sum(each * g).backward();
      const auto xs = x.detach().to(f64).to_vector<double>(), ys = t.to(f64).to_vector<double>(),
                 gs = g.to(f64).to_vector<double>();
      std::vector<double> losses, slopes, opposite;
      for (size_t i = 0; i < xs.size(); ++i) {
        losses.push_back(value(xs[i] - ys[i]));
        slopes.push_back(gs[i] * slope(xs[i] - ys[i]));
        opposite.push_back(-slopes.back());
      }
      BOOST_TEST_CONTEXT(name << " in " << dtype) {
        require_values(each.detach().to(f64), {n}, losses, near);
        require_values(x.grad().to(f64), {n}, slopes, near);
        require_values(y.grad().to(f64), {n}, opposite, near);
      }
    };
    const auto none = Reduction::none;
    check(
        "mse_loss", [&](auto& x, auto& y) { return mse_loss(x, y, none); },
        [](double d) { return d * d; }, [](double d) { return 2 * d; });
    check(
        "l1_loss", [&](auto& x, auto& y) { return l1_loss(x, y, none); },
        [](double d) { return std::abs(d); },
        [](double d) { return d > 0   ? 1.0
                              : d < 0 ? -1.0
                                      : 0.0; });
    const auto clamped = [=](double d) { return std::min(limit, std::max(-limit, d)); };
    const auto huber = [=](double d) { return clamped(d) * (d - clamped(d) / 2); };
    check(
        "huber_loss", [&](auto& x, auto& y) { return huber_loss(x, y, none, limit); }, huber,
        clamped);
    check(
        "smooth_l1_loss", [&](auto& x, auto& y) { return smooth_l1_loss(x, y, none, limit); },
        [=](double d) { return huber(d) / limit; }, [=](double d) { return clamped(d) / limit; });
  }
}

BOOST_AUTO_TEST_SUITE_END()
