// ctc_loss (core/ops/loss.h): the forward and backward recursions of Graves et al. 2006, in
// logarithms. The forward operator keeps the probability of every prefix for the gradient.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include <tenon/core/dispatch/widening.h>
#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/loss/reduce_loss.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

void infer_ctc_loss(Infer& infer) {
  const Shape &x = shape_of(infer.in(0)), &targets = shape_of(infer.in(1));
  const DType type = dtype_of(infer.in(0));
  infer.output(type, {x[1]});
  infer.output(type, {x[1], x[0], 2 * targets[1] + 1});
}

void infer_ctc_loss_backward(Infer& infer) {
  infer.output(dtype_of(infer.in(1)), shape_of(infer.in(1)));
}

// | `ctc_loss_backward` | g(n), log_probs, targets, input_lengths, target_lengths, losses, alphas
//   -> glog_probs | `blank` | for log_probs made by log_softmax: exp(log_prob) less the share of
//   the paths; 0 where g is 0 and behind a sequence's end |
const Op ctc_loss_backward_op{{
    .name = "ctc_loss_backward",
    .infer = infer_ctc_loss_backward,
}};

// ---- the same gradient, made of operators that can be differentiated again ----

// Stands for the logarithm of 0: unlike -infinity, its sums and their gradients are numbers.
constexpr double kNever = -1e30;

// The states (n, states) moved by so many places, behind them where `by` is negative.
Tensor moved(const Tensor& x, int64_t by) {
  const Shape& shape = shape_of(x);
  const int64_t states = shape[1], places = std::min(std::abs(by), states);
  const Tensor gap = full({shape[0], places}, kNever, {.dtype = x.dtype(), .device = x.device()});
  const Tensor kept = narrow(x, 1, by < 0 ? places : 0, states - places);
  return by < 0 ? cat({kept, gap}, 1) : cat({gap, kept}, 1);
}

// What the recursions need: states are labels with a blank before, between and behind them.
struct CtcPaths {
  Tensor labels;   // (t, n, states), of each state
  Tensor x;        // (t, n, states), the log-probability of each state at each step
  Tensor no_skip;  // (n, states), 0 where a path may skip the state before, otherwise kNever
  Tensor begin;    // (n, states), 0 in the state from which a path begins, otherwise kNever
  Tensor end;      // (n, states), 0 in the states in which a path may end, otherwise kNever
  Tensor steps;    // (n, 1)
};

CtcPaths ctc_paths(const GradContext& c) {
  const Tensor& x = c.input(0);
  const DType type = dtype_of(x);
  const Shape& shape = c.input_shape(1);
  const int64_t t = shape_of(x)[0], n = shape[0], s = shape[1], states = 2 * s + 1;
  const TensorOptions whole{.dtype = DType::i64, .device = x.device()};
  const Tensor counts = c.input(3).unsqueeze(1), state = arange(states, whole);
  const int64_t blank = c.attrs.get_int("blank");
  // Labels behind a sequence's end may be any numbers.
  const Tensor known = where(lt(arange(s, whole), counts), c.input(1), blank);
  const Tensor pairs = stack({full({n, s}, blank, whole), known}, 2).reshape({n, 2 * s});
  const Tensor labels = cat({pairs, full({n, 1}, blank, whole)}, 1);
  const int64_t back = std::min<int64_t>(2, states);
  const Tensor before = cat({full({n, back}, -1, whole), narrow(labels, 1, 0, states - back)}, 1);
  const Tensor skips = logical_and(eq(remainder(state, 2), 1), ne(labels, before));
  const Tensor ends = logical_or(eq(state, counts * 2), eq(state, counts * 2 - 1));
  const auto never_unless = [&](const Tensor& condition) {
    return logical_not(condition).to(type) * kNever;
  };
  const Tensor everywhere = labels.unsqueeze(0).expand({t, n, states}).contiguous();
  return {everywhere,          clamp(gather(x, 2, everywhere), kNever),
          never_unless(skips), never_unless(eq(state, 0)).unsqueeze(0).expand({n, states}),
          never_unless(ends),  c.input(2).unsqueeze(1)};
}

Tensor log_sum(const Tensor& stay, const Tensor& next, const Tensor& skip) {
  return logsumexp(stack({stay, next, skip}, 0), {0});
}

// The share of the paths through each class at each step.
Tensor ctc_shares(const CtcPaths& paths, const Tensor& x) {
  const int64_t t = shape_of(x)[0];
  std::vector<Tensor> through;
  Tensor alpha = paths.begin;
  for (int64_t k = 0; k < t; ++k) {
    const Tensor next = log_sum(alpha, moved(alpha, 1), moved(alpha, 2) + paths.no_skip);
    alpha = where(gt(paths.steps, k), next + select(paths.x, 0, k), alpha);
    through.push_back(alpha);
  }
  Tensor beta = paths.end;
  for (int64_t k = t; k-- > 0;) {
    if (k + 1 < t) {
      const Tensor ahead = beta + select(paths.x, 0, k + 1);
      const Tensor before = log_sum(ahead, moved(ahead, -1), moved(ahead + paths.no_skip, -2));
      beta = where(gt(paths.steps, k + 1), before, paths.end);
    }
    through[static_cast<size_t>(k)] = through[static_cast<size_t>(k)] + beta;
  }
  // Without a path all shares are 0, and so they are where nothing is taken from them.
  const Tensor all = logsumexp(alpha + paths.end, {1}, true);
  const Tensor share = exp(stack(through, 0) - where(gt(all, kNever / 2), all, 0.0));
  return scatter_add(zeros_like(x), 2, paths.labels, share);
}

Tensor ctc_composed_backward(const GradContext& c) {
  const Tensor& x = c.input(0);
  if (x.numel() == 0) return zeros_like(x);
  const CtcPaths paths = ctc_paths(c);
  const Tensor step = arange(shape_of(x)[0], {.dtype = DType::i64, .device = x.device()});
  const Tensor within = gt(c.input(2), step.unsqueeze(1)).unsqueeze(2);
  return where(within, (exp(x) - ctc_shares(paths, x)) * c.grad().unsqueeze(1), 0.0);
}

void ctc_loss_gradient(const GradContext& c, Grads g) {
  if (!c.needs(0)) return;
  if (grad_enabled()) {
    g[0] = ctc_composed_backward(c);
    return;
  }
  Attrs attrs;
  attrs.set("blank", c.attrs.get_int("blank"));
  g[0] = run(
      ctc_loss_backward_op,
      {&c.grad(), &c.input(0), &c.input(1), &c.input(2), &c.input(3), &c.output(0), &c.output(1)},
      attrs);
}
// | `ctc_loss` | log_probs(t,n,c), targets(n,s) i64, input_lengths(n) i64, target_lengths(n) i64 ->
//   losses(n), alphas(n,t,2s+1) | `blank` int | losses are infinite where a sequence cannot be
//   aligned. alphas: log-probability of all paths to a state at a step, -inf where there is none. A
//   label or a length out of range: TN_CODE_OUT_OF_RANGE |
const Op ctc_loss_op{{
    .name = "ctc_loss",
    .inputs = "log_probs targets input_lengths target_lengths",
    .infer = infer_ctc_loss,
    .gradient = ctc_loss_gradient,
    .saves_inputs = 15,
    .saves_outputs = 3,
    .autocast = AutocastRule::f32,
}};

// One length a sequence.
Tensor lengths(const char* name, const Tensor& given, int64_t sequences) {
  require_index("ctc_loss", given, name);
  const Tensor list = given.to(DType::i64).reshape({-1});
  if (shape_of(list)[0] != sequences)
    throw ShapeError(
        fmt::format("ctc_loss: {} must have a value for each of {} sequences, found "
                    "shape {}",
                    name, sequences, shape_of(given)));
  return list;
}

// Labels in one row, as rows of the same length. Where each begins, the host has to know.
Tensor rows_of_labels(const Tensor& labels, const Tensor& counts) {
  const auto n = counts.to_vector<int64_t>();
  int64_t total = 0, longest = 0;
  for (int64_t count : n) {
    total += count;
    longest = std::max(longest, count);
  }
  if (total != shape_of(labels)[0] || *std::min_element(n.begin(), n.end()) < 0)
    throw ShapeError(fmt::format("ctc_loss: target_lengths add up to {}, but targets has shape {}",
                                 total, shape_of(labels)));
  std::vector<int64_t> places;
  int64_t begin = 0;
  for (int64_t count : n) {
    for (int64_t k = 0; k < longest; ++k) places.push_back(k < count ? begin + k : 0);
    begin += count;
  }
  const auto rows = static_cast<int64_t>(n.size());
  if (longest == 0) return labels.reshape({rows, 0});
  const Tensor index = tensor(places, {rows * longest}).to(labels.device());
  return index_select(labels, 0, index).reshape({rows, longest});
}

Tensor labels_of(const Tensor& targets, const Tensor& counts, int64_t sequences) {
  require_index("ctc_loss", targets, "targets");
  const Shape& shape = shape_of(targets);
  const Tensor labels = targets.to(DType::i64).contiguous();
  if (shape.size() == 2 && shape[0] == sequences) return labels;
  if (shape.size() != 1)
    throw ShapeError(
        fmt::format("ctc_loss: targets must be ({}, s) or the labels of all "
                    "sequences in one row, found shape {}",
                    sequences, shape));
  return rows_of_labels(labels, counts);
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CtcLossOptions& options) {
  require_defined("ctc_loss", {{"log_probs", log_probs},
                               {"targets", targets},
                               {"input_lengths", input_lengths},
                               {"target_lengths", target_lengths}});
  require_reduction("ctc_loss", options.reduction);
  const Shape& shape = shape_of(log_probs);
  if (shape.size() != 2 && shape.size() != 3)
    throw ShapeError(
        fmt::format("ctc_loss: log_probs must have shape (t, n, C) or (t, C), found {}", shape));
  const DType type = dtype_of(log_probs);
  if (!is_floating_point(type))
    throw DTypeError(fmt::format("ctc_loss: log_probs must be floating, found {}; {}", type,
                                 conversion_to(DType::f32)));
  if (const Widening wide{&log_probs})
    return wide.rounded(ctc_loss(wide(log_probs), targets, input_lengths, target_lengths, options));
  const int64_t classes = shape[shape.size() - 1];
  if (options.blank < 0 || options.blank >= classes)
    throw ValueError(
        fmt::format("ctc_loss: blank must lie in [0, {}), found {}", classes, options.blank));
  const bool alone = shape.size() == 2;
  const Tensor x = (alone ? unsqueeze(log_probs, 1) : log_probs).contiguous();
  const int64_t sequences = shape_of(x)[1];
  const Tensor steps = lengths("input_lengths", input_lengths, sequences),
               counts = lengths("target_lengths", target_lengths, sequences);
  const Tensor labels = labels_of(targets, counts, sequences);
  Attrs attrs;
  attrs.set("blank", options.blank);
  const Tensor* inputs[] = {&x, &labels, &steps, &counts};
  Tensor loss = run_all({ctc_loss_op, inputs, attrs})[0];
  if (options.zero_infinity)
    loss = where(eq(loss, std::numeric_limits<double>::infinity()), 0.0, loss);
  if (options.reduction == Reduction::mean) return mean(loss / maximum(counts, 1).to(type));
  if (options.reduction == Reduction::sum) return sum(loss);
  return alone ? squeeze(loss, 0) : loss;
}

}  // namespace tenon
