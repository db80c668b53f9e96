// scaled_dot_product_attention (core/ops/attention.h).
#include <cmath>

#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/attention.h>
#include <tenon/core/ops/attention/scores.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

constexpr const char* kAttention = "scaled_dot_product_attention";

void require_operands(const Tensor& query, const Tensor& key, const Tensor& value) {
  const Shape &q = shape_of(query), &k = shape_of(key), &v = shape_of(value);
  if (q.size() < 2 || k.size() < 2 || v.size() < 2)
    throw ShapeError(
        fmt::format("{}: query, key and value have at least two dimensions; found {}, {} and {}",
                    kAttention, q, k, v));
  if (q[q.size() - 1] != k[k.size() - 1])
    throw ShapeError(
        fmt::format("{}: query {} and key {} must have the same last dimension", kAttention, q, k));
  if (k[k.size() - 2] != v[v.size() - 2])
    throw ShapeError(
        fmt::format("{}: key {} and value {} must have the same number of positions, dimension -2",
                    kAttention, k, v));
  for (auto* t : {&query, &key, &value})
    if (!is_floating_point(dtype_of(*t)) || dtype_of(*t) != dtype_of(query))
      throw DTypeError(
          fmt::format("{}: query, key and value have one floating dtype; found {}, {} and {}",
                      kAttention, dtype_of(query), dtype_of(key), dtype_of(value)));
}

// Repeats each head of key or value for the query heads that share it.
Tensor shared_heads(const Tensor& x, int64_t query_heads, const char* what) {
  const Shape& shape = shape_of(x);
  const int64_t rank = static_cast<int64_t>(shape.size());
  const int64_t heads = rank < 3 ? 1 : shape[shape.size() - 3];
  if (heads < 1 || query_heads % heads)
    throw ShapeError(fmt::format(
        "{}: with enable_gqa the {} query heads must be a multiple of the {} heads of {}",
        kAttention, query_heads, heads, what));
  if (heads == query_heads || rank < 3) return x;
  Shape wide = shape, result = shape;
  wide.insert(static_cast<size_t>(rank - 2), query_heads / heads);
  result[shape.size() - 3] = query_heads;
  return x.unsqueeze(-3).expand(wide).reshape(result);
}

}  // namespace

Tensor causal_mask(int64_t l, int64_t s, Device device) {
  const TensorOptions i64_there = {.dtype = i64, .device = device};
  return ge(arange(0, l, 1, i64_there).unsqueeze(1), arange(0, s, 1, i64_there));
}

// Rows that attend to nothing would be NaN in a softmax, and so would be their gradients.
Tensor attention_weights(const Tensor& scores) {
  if (shape_of(scores).numel() == 0) return scores;
  const Tensor dead = eq(amax(scores.detach(), {-1}, true), -kInfinity);
  return where(dead, 0.0, softmax(where(dead, 0.0, scores), -1));
}

Tensor masked_scores(const Tensor& scores, const Tensor& mask, bool true_takes_part) {
  if (dtype_of(mask) != boolean) return scores + mask;
  return true_takes_part ? where(mask, scores, -kInfinity) : where(mask, -kInfinity, scores);
}

namespace {

// Inputs: query, key, value, mask?, with equal dimensions before the last two. Outputs: y and, of
// each row of scores, the largest and 1 by the sum of the exponentials below it, from which the
// weights are computed again; both 0 for a row without any pair.
void infer_attention(Infer& infer) {
  const Shape &q = shape_of(infer.in(0)), &v = shape_of(infer.in(2));
  const DType t = dtype_of(infer.in(0));
  Shape rows(q.span().first(q.size() - 1)), y = rows;
  y.push_back(v[v.size() - 1]);
  infer.output(t, y);
  for (int i = 0; i < 2; ++i) infer.output(computation_type(t), rows);
}

Tensor composed_scores(const Tensor& query, const Tensor& key, const Tensor& mask,
                       const Attrs& attrs) {
  Tensor scores = matmul(query * attrs.get_float("scale"), key.transpose(-2, -1));
  const Shape& shape = shape_of(scores);
  if (attrs.get_bool("is_causal"))
    scores = masked_scores(
        scores, causal_mask(shape[shape.size() - 2], shape[shape.size() - 1], query.device()),
        true);
  return mask.defined() ? masked_scores(scores, mask, true) : scores;
}

void decompose_attention(const Call& call, Outputs& out) {
  const Tensor scores = composed_scores(call.in(0), call.in(1), call.optional(3), call.attrs);
  out.resize(3);
  out[0] = matmul(attention_weights(scores), call.in(2));
  if (!(call.wanted & 6)) return;
  const Tensor wide = scores.to(computation_type(dtype_of(scores))), top = amax(wide, {-1}, true);
  const Tensor dead = eq(top, -kInfinity), largest = where(dead, 0.0, top);
  out[1] = squeeze(largest, -1);
  out[2] = squeeze(where(dead, 0.0, reciprocal(sum(exp(wide - largest), {-1}, true))), -1);
}

// With weights P and g as the gradient of y: gvalue = Pᵀ g, and the scores' gradient is
// P (g valueᵀ - the sum of y g).
void attention_composed_backward(const Call& c, const Tensor& g, const Tensor& mask, Grads out) {
  const Tensor &query = c.in(0), &key = c.in(1), &value = c.in(2);
  const double scale = c.attrs.get_float("scale");
  const Tensor weights = attention_weights(composed_scores(query, key, mask, c.attrs));
  out[2] = matmul(weights.transpose(-2, -1), g);
  const Tensor by_weights = matmul(g, value.transpose(-2, -1));
  const Tensor scores = weights * (by_weights - sum(weights * by_weights, {-1}, true));
  out[0] = matmul(scores, key) * scale;
  out[1] = matmul(scores.transpose(-2, -1), query) * scale;
  if (out.size() > 3) out[3] = scores;
}

// Inputs: g, query, key, value, y, largest, scale, mask?. Outputs: the gradients of query, key,
// value.
void infer_attention_backward(Infer& infer) {
  for (size_t i = 1; i < 4; ++i) infer.output(dtype_of(infer.in(i)), shape_of(infer.in(i)));
}

void decompose_attention_backward(const Call& call, Outputs& out) {
  out.resize(3);
  attention_composed_backward(call.with_inputs(call.inputs.subspan(1)), call.in(0),
                              call.optional(7), out);
}

// | `scaled_dot_product_attention_backward` | g, query, key, value, y, largest, scale, mask? ->
//   gquery?, gkey?, gvalue? | as `scaled_dot_product_attention` | |
const Op attention_backward_op{{
    .name = "scaled_dot_product_attention_backward",
    .infer = infer_attention_backward,
    .decompose = decompose_attention_backward,
    .decomposes_halves = true,
}};

// The kernel has no gradient of its own, and gives none for the mask.
void attention_gradient(const GradContext& c, Grads g) {
  const Tensor& mask = c.input(3);
  if (grad_enabled() || c.needs(3)) {
    const Tensor* inputs[] = {&c.input(0), &c.input(1), &c.input(2)};
    return attention_composed_backward({c.op, inputs, c.attrs}, c.grad(), mask, g);
  }
  // What arrives is often a permuted view; its copy would otherwise bring those of all operands.
  const Tensor arrives = c.grad().contiguous();
  const Tensor* inputs[] = {
      &arrives,     &c.input(0),  &c.input(1),  &c.input(2),
      &c.output(0), &c.output(1), &c.output(2), mask.defined() ? &mask : nullptr};
  uint32_t wanted = 0;
  for (size_t i = 0; i < 3; ++i) wanted |= static_cast<uint32_t>(c.needs(i)) << i;
  auto grads = run_all({attention_backward_op, inputs, c.attrs, {}, wanted});
  for (size_t i = 0; i < 3; ++i) g[i] = grads[i];
}

// | `scaled_dot_product_attention` | query(…,l,e), key(…,s,e), value(…,s,ev), mask(…,l,s)? ->
//   y(…,l,ev), largest(…,l)?, scale(…,l)? | `is_causal` bool, `scale` | weights: softmax of query
//   keyᵀ · scale, along s. The dimensions before the last two are equal, and no tensor is empty;
//   operands and mask may have any strides, 0 among them. A mask is bool (true: the pair takes
//   part) or is added to the scores. Causal: row i sees the columns up to i. A weight is exp(score
//   - largest) · scale, with scale as 1 by the sum of the exponentials of its row. A row without
//   any pair is 0, and so are its largest and scale. On `cpu` memory for blocks of 64 x 256 scores
//   is all that it takes beside the operands |
const Op attention_op{{
    .name = kAttention,
    .inputs = "query key value attn_mask",
    .infer = infer_attention,
    .gradient = attention_gradient,
    .saves_inputs = 15,
    .saves_outputs = 7,
    .autocast = AutocastRule::lower,
    .decompose = decompose_attention,
    .decomposes_halves = true,
}};

Shape before_matrix(const Shape& shape) { return Shape(shape.span().first(shape.size() - 2)); }

// Gives all operands the same dimensions before the last two, without a copy.
void broadcast_batch(Tensor (&operands)[4]) {
  Shape batch;
  for (auto& t : operands)
    if (t.defined() && shape_of(t).size() > 1)
      batch = broadcast_shapes(batch, before_matrix(shape_of(t)), kAttention);
  const Shape &q = shape_of(operands[0]), &k = shape_of(operands[1]);
  const Shape scores{q[q.size() - 2], k[k.size() - 2]};
  for (auto& t : operands) {
    if (!t.defined()) continue;
    Shape wanted = batch;
    const Shape& own = shape_of(t);
    const Shape matrix = &t == &operands[3] ? scores : Shape(own.span().last(2));
    for (const int64_t size : matrix.span()) wanted.push_back(size);
    if (!(broadcast_shapes(own, wanted, kAttention) == wanted))
      throw ShapeError(fmt::format("{}: attn_mask of shape {} does not broadcast to the scores, {}",
                                   kAttention, own, wanted));
    if (!(own == wanted)) t = t.expand(wanted);
  }
}

// Without weights that are dropped, no (l, s) matrix is kept where the device has a kernel. Where
// it has none there is such a matrix in any case: its parts are recorded, and the backward pass
// reads the weights that they keep instead of computing them again.
Tensor fused_attention(Tensor (&operands)[4], const Attrs& attrs) {
  broadcast_batch(operands);
  const Tensor* inputs[4];
  bool differentiated = false;
  for (size_t i = 0; i < 4; ++i) {
    inputs[i] = operands[i].defined() ? &operands[i] : nullptr;
    differentiated = differentiated || wants_gradient(operands[i]);
  }
  const Call call{attention_op, inputs, attrs, {}, differentiated ? 7u : 1u};
  if (differentiated && is_decomposed(call))
    return matmul(attention_weights(composed_scores(operands[0], operands[1], operands[3], attrs)),
                  operands[2]);
  return run_all(call)[0];
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options) try {
  if (const Autocasting cast{"scaled_dot_product_attention", {&query, &key, &value}}) {
    AttentionOptions inner = options;
    inner.attn_mask = cast(options.attn_mask);
    return scaled_dot_product_attention(cast(query), cast(key), cast(value), inner);
  }
  require_defined(kAttention, {{"query", query}, {"key", key}, {"value", value}});
  require_operands(query, key, value);
  const Tensor& mask = options.attn_mask;
  if (mask.defined() && options.is_causal)
    throw ValueError(fmt::format(
        "{}: attn_mask and is_causal cannot be combined; put the causal part into the mask",
        kAttention));
  if (!(options.dropout_p >= 0 && options.dropout_p <= 1))
    throw ValueError(fmt::format("{}: dropout_p must lie in [0, 1], found {}", kAttention,
                                 number_text(options.dropout_p)));
  if (mask.defined() && dtype_of(mask) != boolean && dtype_of(mask) != dtype_of(query))
    throw DTypeError(
        fmt::format("{}: attn_mask is bool or has the dtype of the query, {}; found {}", kAttention,
                    dtype_of(query), dtype_of(mask)));
  const Shape& q = shape_of(query);
  const auto width = static_cast<double>(q[q.size() - 1]);
  Tensor k = key, v = value;
  if (options.enable_gqa) {
    const int64_t heads = q.size() < 3 ? 1 : q[q.size() - 3];
    k = shared_heads(key, heads, "key");
    v = shared_heads(value, heads, "value");
  }
  const auto attrs =
      Attrs()
          .set("is_causal", options.is_causal)
          .set("scale", options.scale.value_or(width > 0 ? 1 / std::sqrt(width) : 1));
  const bool empty =
      shape_of(query).numel() == 0 || shape_of(k).numel() == 0 || shape_of(v).numel() == 0;
  if (options.dropout_p == 0 && !empty) {
    Tensor operands[] = {query, k, v, mask};
    return fused_attention(operands, attrs);
  }
  const Tensor weights = attention_weights(composed_scores(query, k, mask, attrs));
  return matmul(options.dropout_p > 0 ? dropout(weights, options.dropout_p) : weights, v);
} catch (const Error&) {
  rethrow_in(kAttention);
}

}  // namespace tenon
