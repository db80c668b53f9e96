// cross_entropy (core/ops/loss.h): fused operators for the loss and its gradient, and the same made
// of simpler operators.
#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/widening.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/loss/class_targets.h>
#include <tenon/core/ops/loss/reduce_loss.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

void infer_cross_entropy(Infer& infer) {
  const Shape& logits = shape_of(infer.in(0));
  DType t = dtype_of(infer.in(0));
  infer.output(t, infer.attrs.get_string("reduction") == "none" ? Shape{logits[0]} : Shape{});
  infer.output(computation_type(t), {2, logits[0]});
  infer.output(computation_type(t), {});
}

// Returns a matrix of bool that is true in row i at the column of its label. A label outside the
// classes marks nothing.
Tensor marks_of(const Tensor& labels, int64_t classes) {
  Tensor numbers =
      arange(0, static_cast<double>(classes), 1, {.dtype = DType::i64, .device = labels.device()});
  return eq(numbers, unsqueeze(labels, 1));
}

// The gradient of the logits. With p = softmax(x), s = label_smoothing, w the class weights and W
// their sum: row i of the loss is
//   (1 - s) w_t (lse - x_t) + s / C sum_j w_j (lse - x_j),
// so its gradient is (1 - s) w_t (p - onehot_t) + s / C (W p - w), times what arrives, divided by
// `total` for "mean".
Tensor cross_entropy_composed_backward(const Tensor& g, const Tensor& logits, const Tensor& labels,
                                       const Tensor& weight, const Tensor& total,
                                       const Attrs& attrs) {
  int64_t classes = shape_of(logits)[1];
  double smoothing = attrs.get_float("label_smoothing");
  Tensor scale = attrs.get_string("reduction") == "mean" ? g / total : g;
  // Rows that are ignored have no gradient, not even where their logits are NaN.
  const Tensor valid = ne(labels, attrs.get_int("ignore_index"));
  scale = where(valid, scale, 0.0);
  Tensor marks = marks_of(labels, classes), p = softmax(where(unsqueeze(valid, 1), logits, 0.0), 1);
  Tensor row = scale * (1.0 - smoothing);
  if (weight.defined()) row = row * sum(where(marks, weight, 0.0), {1});
  Tensor result = unsqueeze(row, 1) * (p - marks.to(dtype_of(p)));
  if (smoothing == 0) return result;
  Tensor spread =
      weight.defined() ? p * sum(weight) - weight : p * static_cast<double>(classes) - 1.0;
  return result + unsqueeze(scale * (smoothing / static_cast<double>(classes)), 1) * spread;
}

void decompose_cross_entropy(const Call& call, Outputs& out) {
  const Tensor &x = call.in(0), &labels = call.in(1);
  const Tensor weight = call.optional(2);
  double smoothing = call.attrs.get_float("label_smoothing"),
         classes = static_cast<double>(shape_of(x)[1]);
  Tensor valid = ne(labels, call.attrs.get_int("ignore_index")), safe = where(valid, labels, 0);
  // The largest logit is kept apart from the logarithm: their sum, rounded, would be as inexact as
  // the logits are large.
  Tensor largest = amax(x, {1}, true), below = x - largest,
         log_sum = log(sum(exp(below), {1}, true));
  Tensor all = log_sum - below;  // -log(softmax(x))
  Tensor counts =
      weight.defined() ? where(valid, index_select(weight, 0, safe), 0.0) : valid.to(dtype_of(x));
  Tensor loss = where(valid, squeeze(gather(all, 1, unsqueeze(safe, 1)), 1), 0.0) * counts *
                (1.0 - smoothing);
  if (smoothing != 0) {
    Tensor spread = sum(weight.defined() ? all * weight : all, {1});
    loss = loss + where(valid, spread, 0.0) * (smoothing / classes);
  }
  Tensor total = sum(counts);
  auto reduction = call.attrs.get_string("reduction");
  out = {reduction == "none"  ? loss
         : reduction == "sum" ? sum(loss)
                              : sum(loss) / total,
         cat({largest.t(), log_sum.t()}, 0), total};
}

void decompose_cross_entropy_backward(const Call& call, Outputs& out) {
  out.push_back(cross_entropy_composed_backward(call.in(0), call.in(1), call.in(2),
                                                call.optional(3), call.in(5), call.attrs));
}

Attrs options_of(const Attrs& a) {
  Attrs result;
  result.set("reduction", a.get_string("reduction").data())
      .set("ignore_index", a.get_int("ignore_index"));
  return result.set("label_smoothing", a.get_float("label_smoothing"));
}

void infer_cross_entropy_backward(Infer& infer) {
  infer.output(dtype_of(infer.in(1)), shape_of(infer.in(1)));
}
// | `cross_entropy_backward` | g, logits, target, weight?, normalizer, total -> glogits | as
//   `cross_entropy` | |
const Op cross_entropy_backward_op{{
    .name = "cross_entropy_backward",
    .infer = infer_cross_entropy_backward,
    .decompose = decompose_cross_entropy_backward,
}};

void cross_entropy_gradient(const GradContext& c, Grads g) {
  if (!c.needs(0)) return;
  const Tensor &logits = c.input(0), &labels = c.input(1), &weight = c.input(2);
  if (grad_enabled()) {
    g[0] = cross_entropy_composed_backward(c.grad(), logits, labels, weight, c.output(2).detach(),
                                           c.attrs);
    return;
  }
  g[0] = run(cross_entropy_backward_op,
             {&c.grad(), &logits, &labels, weight.defined() ? &weight : nullptr, &c.output(1),
              &c.output(2)},
             options_of(c.attrs));
}
// | `cross_entropy` | logits(n,c), target(n) i64, weight(c)? -> loss, normalizer(2,n),
//   total(scalar) | `reduction` "mean" "sum" "none"; `ignore_index` int; `label_smoothing` float |
//   loss is a scalar, or (n) for "none". normalizer[0] is the largest logit of each row,
//   normalizer[1] log(sum(exp(logit - largest))): their sum, rounded, would be as inexact as the
//   logits are large. total the sum of weights that "mean" divides by. A target outside [0,c) that
//   is not ignore_index: TN_CODE_OUT_OF_RANGE, naming row, label and c |
const Op cross_entropy_op{{
    .name = "cross_entropy",
    .inputs = "logits target weight",
    .infer = infer_cross_entropy,
    .gradient = cross_entropy_gradient,
    .saves_inputs = 7,
    .saves_outputs = 6,
    .autocast = AutocastRule::f32,
    .decompose = decompose_cross_entropy,
}};

// The loss for a target of probabilities: -(w * target * log_softmax(x)) summed over classes, of
// which "mean" divides the sum by the number of rows.
Tensor soft_cross_entropy(const Tensor& logits, const Tensor& target,
                          const CrossEntropyOptions& options) {
  if (const Widening wide{&logits, &target, &options.weight}) {
    auto inner = options;
    inner.weight = wide(options.weight);
    return wide.rounded(soft_cross_entropy(wide(logits), wide(target), inner));
  }
  int64_t classes = shape_of(logits)[shape_of(logits).size() == 1 ? 0 : 1];
  require_class_weight("cross_entropy", options.weight, classes);
  Tensor p = class_rows(target);
  double smoothing = options.label_smoothing;
  if (smoothing != 0) p = p * (1.0 - smoothing) + smoothing / static_cast<double>(classes);
  Tensor loss = p * log_softmax(class_rows(logits), 1);
  if (options.weight.defined()) loss = loss * options.weight;
  Tensor rows = neg(sum(loss, {1}));
  if (options.reduction == Reduction::sum) return sum(rows);
  if (options.reduction == Reduction::mean) return sum(rows) / static_cast<double>(rows.numel());
  Shape shape = shape_of(logits);
  shape.erase(shape.size() == 1 ? 0 : 1);
  return rows.reshape(shape);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     const CrossEntropyOptions& options) {
  if (const Autocasting cast{"cross_entropy", {&logits}}) {
    auto inner = options;
    inner.weight = cast(options.weight);
    return cross_entropy(cast(logits), cast(target), inner);
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    throw ValueError(fmt::format("cross_entropy: label_smoothing must lie in [0, 1], found {}",
                                 number_text(options.label_smoothing)));
  require_reduction("cross_entropy", options.reduction);
  require_defined("cross_entropy", {{"logits", logits}, {"target", target}});
  if (is_floating_point(dtype_of(target)) && shape_of(target) == shape_of(logits) &&
      !shape_of(logits).empty())
    return soft_cross_entropy(logits, target, options);
  ClassTargets c = class_targets("cross_entropy", logits, target, options.weight);
  Attrs attrs;
  attrs.set("reduction", name_of(options.reduction)).set("ignore_index", options.ignore_index);
  attrs.set("label_smoothing", options.label_smoothing);
  const Tensor* inputs[] = {&c.scores, &c.labels,
                            options.weight.defined() ? &options.weight : nullptr};
  Tensor loss = run_all({cross_entropy_op, inputs, attrs})[0];
  return options.reduction == Reduction::none && c.loss_shape.size() != 1
             ? loss.reshape(c.loss_shape)
             : loss;
}

}  // namespace tenon
