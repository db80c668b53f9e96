// ctc_loss (core/ops/loss.h): the forward and backward recursions of Graves et al. 2006, in
// logarithms. The forward operator keeps the probability of every prefix for the gradient.
#include <algorithm>
#include <limits>

#include <tenon/core/dispatch/widening.h>
#include <tenon/core/format.h>
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
void refuse_second_order(const GradContext&, Grads) {
  throw AutogradError(
      "ctc_loss: its gradient cannot be differentiated again; compute it without create_graph");
}
const Op ctc_loss_backward_op{{
    .name = "ctc_loss_backward",
    .infer = infer_ctc_loss_backward,
    .gradient = refuse_second_order,
}};

void ctc_loss_gradient(const GradContext& c, Grads g) {
  if (!c.needs(0)) return;
  Attrs attrs;
  attrs.set("blank", c.attrs.get_int("blank"));
  g[0] = run(
      ctc_loss_backward_op,
      {&c.grad(), &c.input(0), &c.input(1), &c.input(2), &c.input(3), &c.output(0), &c.output(1)},
      attrs);
}
const Op ctc_loss_op{{
    .name = "ctc_loss",
    .infer = infer_ctc_loss,
    .gradient = ctc_loss_gradient,
    .saves_inputs = 15,
    .saves_outputs = 3,
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
  require_defined("ctc_loss", {&log_probs, &targets, &input_lengths, &target_lengths});
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
