// multi_head_attention_forward (core/ops/attention.h).
#include <cmath>

#include <tenon/core/base/number_text.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/attention.h>
#include <tenon/core/ops/attention/scores.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

constexpr const char* kMultiHead = "multi_head_attention_forward";

void require_sequences(const Tensor& query, const Tensor& key, const Tensor& value,
                       int64_t num_heads) {
  const Shape &q = shape_of(query), &k = shape_of(key), &v = shape_of(value);
  if (q.size() != 3 || k.size() != 3 || !(k == v) || k[1] != q[1] || k[2] != q[2])
    throw ShapeError(fmt::format(
        "{}: needs a query (l, batch, width), and key and value (s, batch, width); found {}, {} "
        "and {}",
        kMultiHead, q, k, v));
  if (num_heads < 1 || q[2] % num_heads)
    throw ValueError(fmt::format("{}: the width {} cannot be divided into {} heads", kMultiHead,
                                 q[2], num_heads));
}

void require_weights(const MultiHeadAttentionWeights& w, int64_t width) {
  require_tensor(kMultiHead, w.in_proj_weight, 4);
  require_tensor(kMultiHead, w.out_proj_weight, 6);
  const auto require = [&](const Tensor& t, const char* what, const Shape& wanted) {
    if (t.defined() && !(shape_of(t) == wanted))
      throw ShapeError(fmt::format("{}: {} has shape {}, but must be {}", kMultiHead, what,
                                   shape_of(t), wanted));
  };
  require(w.in_proj_weight, "in_proj_weight", {3 * width, width});
  require(w.in_proj_bias, "in_proj_bias", {3 * width});
  require(w.out_proj_weight, "out_proj_weight", {width, width});
  require(w.out_proj_bias, "out_proj_bias", {width});
}

// Part `which` of the three projections.
Tensor projected(const Tensor& x, const MultiHeadAttentionWeights& w, int64_t which,
                 int64_t parts) {
  const int64_t width = shape_of(w.in_proj_weight)[1];
  const Tensor bias =
      w.in_proj_bias.defined() ? w.in_proj_bias.narrow(0, which * width, parts * width) : Tensor();
  return linear(x, w.in_proj_weight.narrow(0, which * width, parts * width), bias);
}

// (length, batch, width) as (batch, heads, length, width / heads).
Tensor by_head(const Tensor& x, int64_t heads) {
  const Shape& s = shape_of(x);
  return x.reshape({s[0], s[1], heads, s[2] / heads}).permute({1, 2, 0, 3});
}

// The masks, of which either may be undefined, so that they broadcast to scores (batch, heads, l,
// s).
struct Masks {
  Tensor attention, padding;

  Masks(const MultiHeadAttentionOptions& options, const Shape& scores)
      : attention(options.attn_mask), padding(options.key_padding_mask) {
    const Shape plain = {scores[2], scores[3]},
                full = {scores[0] * scores[1], scores[2], scores[3]};
    if (attention.defined() && !(shape_of(attention) == plain)) {
      if (!(shape_of(attention) == full))
        throw ShapeError(fmt::format("{}: attn_mask has shape {}, but must be {} or {}", kMultiHead,
                                     shape_of(attention), plain, full));
      attention = attention.reshape(scores);
    }
    if (!padding.defined()) return;
    if (!(shape_of(padding) == Shape{scores[0], scores[3]}))
      throw ShapeError(fmt::format("{}: key_padding_mask has shape {}, but must be {}", kMultiHead,
                                   shape_of(padding), Shape{scores[0], scores[3]}));
    padding = padding.reshape({scores[0], 1, 1, scores[3]});
  }

  Tensor apply(Tensor scores) const {
    if (attention.defined()) scores = masked_scores(scores, attention, false);
    return padding.defined() ? masked_scores(scores, padding, false) : scores;
  }
  // Whether scaled_dot_product_attention takes them, for operands of this dtype.
  bool are_one(DType dtype) const {
    if (attention.defined() && padding.defined())
      return dtype_of(attention) == boolean && dtype_of(padding) == boolean;
    const Tensor& only = attention.defined() ? attention : padding;
    return !only.defined() || dtype_of(only) == boolean || dtype_of(only) == dtype;
  }
  // As it takes them: true takes part.
  Tensor one() const {
    if (attention.defined() && padding.defined())
      return logical_not(logical_or(attention, padding));
    const Tensor& only = attention.defined() ? attention : padding;
    return only.defined() && dtype_of(only) == boolean ? logical_not(only) : only;
  }
};

}  // namespace

std::pair<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key,
                                                       const Tensor& value, int64_t num_heads,
                                                       const MultiHeadAttentionWeights& weights,
                                                       const MultiHeadAttentionOptions& options) {
  const Tensor* all[] = {&query, &key, &value};
  for (size_t i = 0; i < 3; ++i) require_tensor(kMultiHead, *all[i], i);
  require_sequences(query, key, value, num_heads);
  const Shape& shape = shape_of(query);
  const int64_t width = shape[2];
  require_weights(weights, width);
  if (!(options.dropout_p >= 0 && options.dropout_p <= 1))
    throw ValueError(fmt::format("{}: dropout_p must lie in [0, 1], found {}", kMultiHead,
                                 number_text(options.dropout_p)));
  const Tensor q = by_head(projected(query, weights, 0, 1), num_heads),
               k = by_head(projected(key, weights, 1, 1), num_heads),
               v = by_head(projected(value, weights, 2, 1), num_heads);
  const Masks masks(options, {shape[1], num_heads, shape[0], shape_of(key)[0]});
  const auto output = [&](const Tensor& heads) {
    return linear(heads.permute({2, 0, 1, 3}).reshape(shape), weights.out_proj_weight,
                  weights.out_proj_bias);
  };
  if (!options.need_weights && options.dropout_p == 0 && masks.are_one(dtype_of(q)))
    return {output(scaled_dot_product_attention(q, k, v, {.attn_mask = masks.one()})), Tensor()};
  const double scale = std::sqrt(static_cast<double>(num_heads) / static_cast<double>(width));
  Tensor attention = attention_weights(masks.apply(matmul(q * scale, k.transpose(-2, -1))));
  if (options.dropout_p > 0) attention = dropout(attention, options.dropout_p);
  const Tensor y = output(matmul(attention, v));
  if (!options.need_weights) return {y, Tensor()};
  return {y, options.average_attn_weights ? mean(attention, {1}) : attention};
}

}  // namespace tenon
