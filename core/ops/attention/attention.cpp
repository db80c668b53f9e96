// scaled_dot_product_attention (core/ops/attention.h).
#include <cmath>
#include <limits>

#include <tenon/core/base/number_text.h>
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
        "{}: with enable_gqa the {} query heads must be a multiple of the {} heads of {}", kAttention,
        query_heads, heads, what));
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
  const Tensor dead =
      eq(amax(scores.detach(), {-1}, true), -std::numeric_limits<double>::infinity());
  return where(dead, 0.0, softmax(where(dead, 0.0, scores), -1));
}

Tensor masked_scores(const Tensor& scores, const Tensor& mask, bool true_takes_part) {
  if (dtype_of(mask) != boolean) return scores + mask;
  const double out = -std::numeric_limits<double>::infinity();
  return true_takes_part ? where(mask, scores, out) : where(mask, out, scores);
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options) {
  const Tensor* all[] = {&query, &key, &value};
  for (size_t i = 0; i < 3; ++i) require_tensor(kAttention, *all[i], i);
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
  const int64_t l = q[q.size() - 2], s = shape_of(key)[shape_of(key).size() - 2];
  const auto width = static_cast<double>(q[q.size() - 1]);
  Tensor k = key, v = value;
  if (options.enable_gqa) {
    const int64_t heads = q.size() < 3 ? 1 : q[q.size() - 3];
    k = shared_heads(key, heads, "key");
    v = shared_heads(value, heads, "value");
  }
  const double scale = options.scale.value_or(width > 0 ? 1 / std::sqrt(width) : 1);
  Tensor scores = matmul(query * scale, k.transpose(-2, -1));
  if (options.is_causal) scores = masked_scores(scores, causal_mask(l, s, query.device()), true);
  if (mask.defined()) scores = masked_scores(scores, mask, true);
  Tensor weights = attention_weights(scores);
  if (options.dropout_p > 0) weights = dropout(weights, options.dropout_p);
  return matmul(weights, v);
}

}  // namespace tenon
