// Losses that ask for a margin (core/ops/loss.h).
#include <tenon/core/base/module_path.h>
#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/widening.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/activation.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/loss/class_targets.h>
#include <tenon/core/ops/loss/reduce_loss.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

Tensor row_numbers(const Tensor& labels, int64_t count) {
  return arange(0, static_cast<double>(count), 1, {.dtype = DType::i64, .device = labels.device()});
}

void require_one_shape(const char* op, const Tensor& a, const Tensor& b, const Tensor& c) {
  if (!(shape_of(a) == shape_of(b) && shape_of(a) == shape_of(c)))
    throw ShapeError(fmt::format("{}: all tensors must have one shape, found {}, {} and {}", op,
                                 shape_of(a), shape_of(b), shape_of(c)));
}

// The p-norm of a - b + eps along the last dimension.
Tensor distance(const Tensor& a, const Tensor& b, const TripletMarginLossOptions& options) {
  return norm(a - b + options.eps, options.p, {-1});
}

}  // namespace

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin,
                            Reduction reduction) try {
  if (const Autocasting cast{"hinge_embedding_loss", {&input, &target}})
    return hinge_embedding_loss(cast(input), cast(target), margin, reduction);
  require_defined("hinge_embedding_loss", {{"input", input}, {"target", target}});
  if (const Widening wide{&input, &target})
    return wide.rounded(hinge_embedding_loss(wide(input), wide(target), margin, reduction));
  const Tensor close = where(ne(target, -1), input, 0.0);
  const Tensor apart = where(ne(target, 1), relu(margin - input), 0.0);
  return reduce_loss("hinge_embedding_loss", close + apart, reduction);
} catch (const Error&) {
  rethrow_in("hinge_embedding_loss");
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin,
                           Reduction reduction) try {
  if (const Autocasting cast{"margin_ranking_loss", {&a, &b, &target}})
    return margin_ranking_loss(cast(a), cast(b), cast(target), margin, reduction);
  require_defined("margin_ranking_loss", {{"a", a}, {"b", b}, {"target", target}});
  if (const Widening wide{&a, &b, &target})
    return wide.rounded(margin_ranking_loss(wide(a), wide(b), wide(target), margin, reduction));
  return reduce_loss("margin_ranking_loss", relu(neg(target) * (a - b) + margin), reduction);
} catch (const Error&) {
  rethrow_in("margin_ranking_loss");
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) try {
  if (const Autocasting cast{"soft_margin_loss", {&input, &target}})
    return soft_margin_loss(cast(input), cast(target), reduction);
  require_defined("soft_margin_loss", {{"input", input}, {"target", target}});
  if (const Widening wide{&input, &target})
    return wide.rounded(soft_margin_loss(wide(input), wide(target), reduction));
  return reduce_loss("soft_margin_loss", neg(logsigmoid(target * input)), reduction);
} catch (const Error&) {
  rethrow_in("soft_margin_loss");
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossOptions& options) try {
  if (const Autocasting cast{"triplet_margin_loss", {&anchor, &positive, &negative}})
    return triplet_margin_loss(cast(anchor), cast(positive), cast(negative), options);
  require_defined("triplet_margin_loss",
                  {{"anchor", anchor}, {"positive", positive}, {"negative", negative}});
  if (const Widening wide{&anchor, &positive, &negative})
    return wide.rounded(triplet_margin_loss(wide(anchor), wide(positive), wide(negative), options));
  if (!(options.margin > 0))
    throw ValueError(fmt::format("triplet_margin_loss: margin must be above 0, found {}",
                                 number_text(options.margin)));
  require_one_shape("triplet_margin_loss", anchor, positive, negative);
  const Tensor near = distance(anchor, positive, options);
  Tensor far = distance(anchor, negative, options);
  if (options.swap) far = minimum(far, distance(positive, negative, options));
  return reduce_loss("triplet_margin_loss", relu(near - far + options.margin), options.reduction);
} catch (const Error&) {
  rethrow_in("triplet_margin_loss");
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin,
                             Reduction reduction) try {
  if (const Autocasting cast{"cosine_embedding_loss", {&a, &b, &target}})
    return cosine_embedding_loss(cast(a), cast(b), cast(target), margin, reduction);
  require_defined("cosine_embedding_loss", {{"a", a}, {"b", b}, {"target", target}});
  if (const Widening wide{&a, &b, &target})
    return wide.rounded(cosine_embedding_loss(wide(a), wide(b), wide(target), margin, reduction));
  const size_t rank = shape_of(target).size();
  if (rank > 1 || shape_of(a).size() != rank + 1 || shape_of(b).size() != rank + 1)
    throw ShapeError(fmt::format(
        "cosine_embedding_loss: inputs (n, d) need a target (n), inputs (d) a target (); found "
        "inputs of shape {} and {} and a target of shape {}",
        shape_of(a), shape_of(b), shape_of(target)));
  constexpr double eps = 1e-12;  // PyTorch's
  const Tensor lengths = (sum(square(a), {-1}) + eps) * (sum(square(b), {-1}) + eps);
  const Tensor cosine = sum(a * b, {-1}) / sqrt(lengths);
  const Tensor same = where(eq(target, 1), 1.0 - cosine, 0.0);
  const Tensor other = where(eq(target, -1), relu(cosine - margin), 0.0);
  return reduce_loss("cosine_embedding_loss", same + other, reduction);
} catch (const Error&) {
  rethrow_in("cosine_embedding_loss");
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                         const MultiMarginLossOptions& options) try {
  if (const Autocasting cast{"multi_margin_loss", {&input}}) {
    auto inner = options;
    inner.weight = cast(options.weight);
    return multi_margin_loss(cast(input), target, inner);
  }
  require_tensor("multi_margin_loss", input, "input");
  if (const Widening wide{&input, &options.weight}) {
    auto inner = options;
    inner.weight = wide(options.weight);
    return wide.rounded(multi_margin_loss(wide(input), target, inner));
  }
  const PartPath part("multi_margin_loss");
  if (options.p != 1 && options.p != 2)
    throw ValueError(fmt::format("multi_margin_loss: p must be 1 or 2, found {}", options.p));
  const ClassTargets c = class_targets("multi_margin_loss", input, target, options.weight);
  if (shape_of(input).size() > 2)
    throw ShapeError(fmt::format("multi_margin_loss: the input must be (n, C) or (C), found {}",
                                 shape_of(input)));
  const int64_t classes = shape_of(c.scores)[1];
  const Tensor label = unsqueeze(c.labels, 1);
  Tensor values = relu(c.scores - gather(c.scores, 1, label) + options.margin);
  if (options.p == 2) values = square(values);
  values = where(eq(row_numbers(label, classes), label), 0.0, values);
  Tensor loss = sum(values, {1}) / static_cast<double>(classes);
  if (options.weight.defined()) loss = loss * index_select(options.weight, 0, c.labels);
  return reduce_loss("multi_margin_loss", loss.reshape(c.loss_shape), options.reduction);
} catch (const Error&) {
  rethrow_in("multi_margin_loss");
}

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) try {
  if (const Autocasting cast{"multilabel_margin_loss", {&input}})
    return multilabel_margin_loss(cast(input), target, reduction);
  constexpr const char* op = "multilabel_margin_loss";
  require_defined(op, {{"input", input}, {"target", target}});
  require_index(op, target, "target");
  if (const Widening wide{&input})
    return wide.rounded(multilabel_margin_loss(wide(input), target, reduction));
  const PartPath part(op);
  const Shape& shape = shape_of(input);
  if (shape.empty() || shape.size() > 2 || !(shape == shape_of(target)))
    throw ShapeError(
        fmt::format("{}: input and target must have one shape (n, C) or (C), found {} and {}", op,
                    shape, shape_of(target)));
  const int64_t classes = shape[shape.size() - 1];
  const Tensor x = input.reshape({-1, classes}), numbers = row_numbers(target, classes);
  const Tensor labels = target.reshape({-1, classes}).to(DType::i64);
  // In row j of the matrix those up to j count: an end among them ends the labels.
  const Tensor earlier = le(numbers, unsqueeze(numbers, 1));
  const Tensor ended = any(logical_and(lt(unsqueeze(labels, 1), 0), earlier), {2});
  const Tensor chosen = where(ended, 0, labels);
  const Tensor marks = logical_and(eq(unsqueeze(chosen, 2), numbers),
                                   unsqueeze(logical_not(ended), 2));  // (n, label, class)
  const Tensor others = logical_not(any(marks, {1}));                  // (n, class)
  const Tensor pairs = logical_and(unsqueeze(logical_not(ended), 2), unsqueeze(others, 1));
  const Tensor margins = relu(unsqueeze(x, 1) - unsqueeze(gather(x, 1, chosen), 2) + 1.0);
  const Tensor rows = sum(where(pairs, margins, 0.0), {1, 2}) / static_cast<double>(classes);
  return reduce_loss(op, shape.size() == 1 ? squeeze(rows, 0) : rows, reduction);
} catch (const Error&) {
  rethrow_in("multilabel_margin_loss");
}

}  // namespace tenon
