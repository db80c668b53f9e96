// Losses of probabilities (core/ops/loss.h).
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/widening.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/activation.h>
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/loss/reduce_loss.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/special.h>

namespace tenon {

namespace {

// ---- binary_cross_entropy: an operator for its gradient, in which PyTorch keeps x (1 - x) from 0

void infer_binary_cross_entropy(Infer& infer) {
  infer.require_dtype(dtype_of(infer.in(1)) == dtype_of(infer.in(0)), 1, "the dtype of input",
                      dtype_of(infer.in(0)));
  if (!(shape_of(infer.in(0)) == shape_of(infer.in(1))))
    infer.shape_error(fmt::format("input and target must have one shape, found {} and {}",
                                  shape_of(infer.in(0)), shape_of(infer.in(1))));
  infer_floating(infer);
}

// PyTorch's constant, which is an f32 for every dtype.
constexpr double kMin = 1e-12f;

Tensor log_at_least(const Tensor& x) { return maximum(log(x), -100.0); }

void binary_cross_entropy_gradient(const GradContext& c, Grads g) {
  const Tensor &x = c.input(0), &t = c.input(1);
  if (c.needs(0)) g[0] = c.grad() * ((x - t) / maximum(x * (1.0 - x), kMin));
  if (c.needs(1)) g[1] = c.grad() * (log_at_least(1.0 - x) - log_at_least(x));
}
void decompose_binary_cross_entropy(const Call& call, Outputs& out) {
  const Tensor &x = call.in(0), &t = call.in(1);
  out.push_back((t - 1.0) * log_at_least(1.0 - x) - t * log_at_least(x));
}
// | `binary_cross_entropy` | x, t -> loss | | floats; -(t log(x) + (1 - t) log(1 - x)) with
//   logarithms of at least -100 |
const Op binary_cross_entropy_op{{
    .name = "binary_cross_entropy",
    .inputs = "input target",
    .infer = infer_binary_cross_entropy,
    .gradient = binary_cross_entropy_gradient,
    .saves_inputs = 3,
    .pointwise = true,
    .autocast = AutocastRule::f32,
    .decompose = decompose_binary_cross_entropy,
}};

void require_same_shape(const char* op, const Tensor& input, const Tensor& target) {
  require_defined(op, {{"input", input}, {"target", target}});
  if (!(shape_of(input) == shape_of(target)))
    throw ShapeError(fmt::format("{}: input and target must have one shape, found {} and {}", op,
                                 shape_of(input), shape_of(target)));
}

}  // namespace

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyOptions& options) {
  if (const Autocasting cast{"binary_cross_entropy", {&input, &target}}) {
    auto inner = options;
    inner.weight = cast(options.weight);
    return binary_cross_entropy(cast(input), cast(target), inner);
  }
  require_same_shape("binary_cross_entropy", input, target);
  const Widening wide{&input, &target, &options.weight};
  if (wide && dtype_of(input) == dtype_of(target)) {
    auto inner = options;
    inner.weight = wide(options.weight);
    return wide.rounded(binary_cross_entropy(wide(input), wide(target), inner));
  }
  Tensor loss = run(binary_cross_entropy_op, {&input, &target});
  if (options.weight.defined()) loss = loss * options.weight;
  return reduce_loss("binary_cross_entropy", loss, options.reduction);
}

// (1 - t) x - w log(sigmoid(x)) with w = 1 + (pos_weight - 1) t
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsOptions& options) try {
  if (const Autocasting cast{"binary_cross_entropy_with_logits", {&input, &target}}) {
    auto inner = options;
    inner.weight = cast(options.weight);
    inner.pos_weight = cast(options.pos_weight);
    return binary_cross_entropy_with_logits(cast(input), cast(target), inner);
  }
  require_same_shape("binary_cross_entropy_with_logits", input, target);
  if (const Widening wide{&input, &target, &options.weight, &options.pos_weight}) {
    auto inner = options;
    inner.weight = wide(options.weight);
    inner.pos_weight = wide(options.pos_weight);
    return wide.rounded(binary_cross_entropy_with_logits(wide(input), wide(target), inner));
  }
  Tensor likelihood = logsigmoid(input);
  if (options.pos_weight.defined())
    likelihood = likelihood * ((options.pos_weight - 1.0) * target + 1.0);
  Tensor loss = (1.0 - target) * input - likelihood;
  if (options.weight.defined()) loss = loss * options.weight;
  return reduce_loss("binary_cross_entropy_with_logits", loss, options.reduction);
} catch (const Error&) {
  rethrow_in("binary_cross_entropy_with_logits");
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const Tensor& weight,
                                   Reduction reduction) try {
  if (const Autocasting cast{"multilabel_soft_margin_loss", {&input, &target}})
    return multilabel_soft_margin_loss(cast(input), cast(target), cast(weight), reduction);
  require_same_shape("multilabel_soft_margin_loss", input, target);
  if (const Widening wide{&input, &target, &weight})
    return wide.rounded(
        multilabel_soft_margin_loss(wide(input), wide(target), wide(weight), reduction));
  if (shape_of(input).empty())
    throw ShapeError(
        "multilabel_soft_margin_loss: the input needs a dimension of classes, found shape ()");
  Tensor loss = (1.0 - target) * input - logsigmoid(input);
  if (weight.defined()) loss = loss * weight;
  return reduce_loss("multilabel_soft_margin_loss", mean(loss, {-1}), reduction);
} catch (const Error&) {
  rethrow_in("multilabel_soft_margin_loss");
}

Tensor kl_div(const Tensor& input, const Tensor& target, Reduction reduction, bool log_target) try {
  if (const Autocasting cast{"kl_div", {&input, &target}})
    return kl_div(cast(input), cast(target), reduction, log_target);
  require_defined("kl_div", {{"input", input}, {"target", target}});
  if (const Widening wide{&input, &target})
    return wide.rounded(kl_div(wide(input), wide(target), reduction, log_target));
  const Tensor loss =
      log_target ? exp(target) * (target - input) : xlogy(target, target) - target * input;
  if (reduction != Reduction::batchmean) return reduce_loss("kl_div", loss, reduction);
  const Shape& shape = shape_of(input);
  return sum(loss) / (shape.empty() ? 1.0 : static_cast<double>(shape[0]));
} catch (const Error&) {
  rethrow_in("kl_div");
}

}  // namespace tenon
