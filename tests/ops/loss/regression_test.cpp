// Losses of probabilities, numbers, pairs and sequences: what the table does not say.
#include <cmath>
#include <limits>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(loss)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(binary_cross_entropies_are_finite_far_from_zero) {
  const Tensor t = doubles({0, 1}, {2}), x = doubles({800, -800}, {2}).requires_grad_();
  const Tensor loss = binary_cross_entropy_with_logits(x, t, {.reduction = Reduction::none});
  require_values(loss, {2}, {800, 800});
  sum(loss).backward();
  require_values(x.grad(), {2}, {1, -1});
  require_values(soft_margin_loss(doubles({-800, 800}, {2}), doubles({1, 1}, {2}), Reduction::none),
                 {2}, {800, 0});
  // As in PyTorch, the logarithm of 0 counts as -100.
  require_values(binary_cross_entropy(doubles({0, 1, 1}, {3}), doubles({1, 0, 1}, {3}),
                                      {.reduction = Reduction::none}),
                 {3}, {100, 100, 0});
}

BOOST_AUTO_TEST_CASE(losses_have_the_gradients_of_differences) {
  const Tensor x = sample({3, 4}), y = sample({3, 4}, 1.9), p = positive({3, 4});
  const Tensor signs = doubles({1, -1, 1}, {3});
  const Tensor half = p * 0.3;
  check_gradients([&](auto& v) { return binary_cross_entropy(v[0], half, {}); }, {half}, "bce");
  check_gradients([&](auto& v) { return kl_div(v[0], v[1]); }, {x, p}, "kl_div");
  check_gradients([&](auto& v) { return poisson_nll_loss(v[0], p, {.full = true}); }, {x},
                  "poisson");
  check_gradients([&](auto& v) { return gaussian_nll_loss(v[0], v[1], v[2]); },
                  {x, y, positive({3, 1})}, "gaussian");
  check_gradients([&](auto& v) { return cosine_embedding_loss(v[0], v[1], signs, -0.9); }, {x, y},
                  "cosine", 2e-5);
}

BOOST_AUTO_TEST_CASE(gaussian_variances_below_eps_count_as_eps) {
  const Tensor var = doubles({0, 4}, {2}).requires_grad_(), x = doubles({1, 2}, {2});
  const Tensor loss = gaussian_nll_loss(x, x, var, {.eps = 0.25, .reduction = Reduction::sum});
  require_values(loss, {}, {0.5 * (std::log(0.25) + std::log(4.0))});
  loss.backward();
  require_values(var.grad(), {2}, {2, 0.125});
}

BOOST_AUTO_TEST_CASE(ctc_of_one_path_and_of_none) {
  // Two steps for two unlike labels: one path.
  const Tensor x = log_softmax(sample({2, 1, 3}), -1);
  const auto p = x.to_vector<double>();
  const Tensor two = ints({2}, {1});
  require_values(ctc_loss(x, ints({1, 2}, {1, 2}), two, two, {.reduction = Reduction::sum}), {},
                 {-(p[1] + p[5])});
  require_values(ctc_loss(x.squeeze(1), ints({1, 2}, {2}), ints({2}, {}), ints({2}, {}),
                          {.reduction = Reduction::none}),
                 {}, {-(p[1] + p[5])});
  // Two like labels need a blank between them.
  const Tensor like = ints({1, 1}, {1, 2});
  const double none = std::numeric_limits<double>::infinity();
  require_values(ctc_loss(x, like, two, two), {}, {none});
  Tensor logits = x.detach().requires_grad_();
  const Tensor loss = ctc_loss(logits, like, two, two, {.zero_infinity = true});
  require_values(loss, {}, {0});
  loss.backward();
  require_values(logits.grad(), {2, 1, 3}, std::vector<double>(6, 0.0));
  // No labels: blanks alone.
  require_values(ctc_loss(x, ints({}, {1, 0}), two, ints({0}, {1})), {}, {-(p[0] + p[3])});
}

// Both orders are compared. Sequences have unlike lengths and equal labels in a row, and behind the
// end of one stands a number that is no label.
BOOST_AUTO_TEST_CASE(ctc_has_the_gradients_of_differences) {
  const Tensor x = sample({6, 2, 4}), labels = ints({1, 1, 2, 3, 2, 9}, {2, 3});
  const Tensor steps = ints({6, 4}, {2}), counts = ints({3, 2}, {2});
  for (const Reduction reduction : {Reduction::sum, Reduction::none})
    check_gradients(
        [&](auto& v) {
          return ctc_loss(log_softmax(v[0], -1), labels, steps, counts, {.reduction = reduction});
        },
        {x}, "ctc_loss");
  check_gradients(
      [&](auto& v) {
        return ctc_loss(log_softmax(v[0], -1), ints({2, 1}, {2}), steps, ints({0, 2}, {2}),
                        {.blank = 3});
      },
      {x}, "ctc_loss with no labels");
}

// The gradient that is recorded has the values of the one that is not, without a path, too.
BOOST_AUTO_TEST_CASE(ctc_has_one_gradient) {
  const Tensor labels = ints({1, 1, 2, 3}, {2, 2}), counts = ints({2, 2}, {2});
  for (const int64_t shortest : {0, 1, 2, 5}) {
    const Tensor steps = ints({5, shortest}, {2});
    const Tensor x = log_softmax(sample({5, 2, 4}), -1).detach().requires_grad_();
    const auto loss = [&] {
      return sum(ctc_loss(x, labels, steps, counts,
                          {.reduction = Reduction::none, .zero_infinity = true}));
    };
    const Tensor recorded = grad(loss(), x, {.create_graph = true});
    require_close(recorded.detach().to_vector<double>(), grad(loss(), x).to_vector<double>(), 1e-12,
                  1e-12, "ctc_loss");
    const Tensor second = grad(sum(square(recorded)), x);
    BOOST_TEST(std::isfinite(sum(second).item<double>()));
  }
}

BOOST_AUTO_TEST_CASE(losses_refuse) {
  const Tensor x = sample({3, 4}), labels = ints({0, 1, 2}, {3});
  const Tensor one = sample({3});
  require_error<ShapeError>([&] { binary_cross_entropy(x, one); },
                            "binary_cross_entropy: input and", "(3, 4)", "(3,)");
  require_error<ShapeError>([&] { binary_cross_entropy_with_logits(x, one); },
                            "binary_cross_entropy_with_logits", "(3,)");
  require_error<ValueError>([&] { huber_loss(x, x, Reduction::mean, 0); }, "huber_loss: delta",
                            "0");
  require_error<ValueError>([&] { smooth_l1_loss(x, x, Reduction::mean, -1); },
                            "smooth_l1_loss: beta");
  require_error<ValueError>([&] { gaussian_nll_loss(x, x, x, {.eps = 0}); },
                            "gaussian_nll_loss: eps");
  require_error<ShapeError>([&] { gaussian_nll_loss(x, x, sample({4})); }, "gaussian_nll_loss",
                            "(3, 1)", "(4,)");
  require_error<ValueError>([&] { triplet_margin_loss(x, x, x, {.margin = 0}); },
                            "triplet_margin_loss: margin");
  require_error<ShapeError>([&] { triplet_margin_loss(x, x, one); }, "triplet_margin_loss", "(3,)");
  require_error<ShapeError>([&] { cosine_embedding_loss(x, x, x); }, "cosine_embedding_loss");
  require_error<ValueError>([&] { multi_margin_loss(x, labels, {.p = 3}); }, "multi_margin_loss: p",
                            "3");
  require_error<ShapeError>(
      [&] {
        multi_margin_loss(sample({2, 3, 4}), ints({0, 0, 0, 0, 0, 0, 0, 0}, {2, 4}));
      },
      "multi_margin_loss", "(2, 3, 4)");
  require_error<ShapeError>([&] { multilabel_margin_loss(x, labels); }, "multilabel_margin_loss",
                            "(3,)");
  require_error<DTypeError>([&] { multilabel_margin_loss(x, x); },
                            "multilabel_margin_loss: target");
  require_error<ValueError>([&] { mse_loss(x, x, Reduction::batchmean); }, "mse_loss", "batchmean",
                            "kl_div");
  require_error<ValueError>([&] { cross_entropy(x, labels, {.reduction = Reduction::batchmean}); },
                            "cross_entropy", "batchmean");
}

BOOST_AUTO_TEST_CASE(ctc_refuses) {
  const Tensor x = log_softmax(sample({5, 2, 3}), -1), n = ints({5, 5}, {2}), k = ints({1, 1}, {2});
  const Tensor labels = ints({1, 2}, {2, 1});
  require_error<ShapeError>([&] { ctc_loss(sample({3}), labels, n, k); }, "ctc_loss: log_probs",
                            "(3,)");
  require_error<DTypeError>([&] { ctc_loss(x, x, n, k); }, "ctc_loss: targets", "f64");
  require_error<ShapeError>([&] { ctc_loss(x, labels, ints({5}, {1}), k); },
                            "ctc_loss: input_lengths", "2 sequences");
  require_error<ShapeError>([&] { ctc_loss(x, ints({1}, {1}), n, k); },
                            "target_lengths add up to 2");
  require_error<ValueError>([&] { ctc_loss(x, labels, n, k, {.blank = 3}); }, "ctc_loss: blank",
                            "[0, 3)");
  require_error<IndexError>(
      [&] {
        ctc_loss(x, ints({1, 7}, {2, 1}), n, k).item<double>();
      },
      "ctc_loss", "label 7 in row 1");
  require_error<IndexError>(
      [&] {
        ctc_loss(x, labels, ints({5, 6}, {2}), k).item<double>();
      },
      "ctc_loss");
}

BOOST_AUTO_TEST_CASE(variances_without_measure) {
  const Tensor x = doubles({1, 1, 1}, {3}), t = doubles({0, 0, 0}, {3});
  const double inf = std::numeric_limits<double>::infinity();
  Tensor var = doubles({-1, -100, inf}, {3}).to(f32).requires_grad_();
  const Tensor y =
      gaussian_nll_loss(x.to(f32), t.to(f32), var, {.reduction = Reduction::none}).to(f64);
  const double least = (std::log(1e-6) + 1e6) / 2;
  for (int64_t i : {0, 1}) BOOST_TEST(std::abs(y.select(0, i).item<double>() / least - 1) < 1e-6);
  BOOST_TEST(y.select(0, 2).item<double>() == inf);
  y.narrow(0, 0, 2).sum().backward();
  BOOST_TEST(var.grad().narrow(0, 0, 2).isfinite().all().item<bool>());
}

BOOST_AUTO_TEST_SUITE_END()
