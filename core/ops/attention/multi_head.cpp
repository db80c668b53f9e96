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
                       int64_t num_heads, bool one_width) {
  const Shape &q = shape_of(query), &k = shape_of(key), &v = shape_of(value);
  if (q.size() != 3 || k.size() != 3 || v.size() != 3 || k[0] != v[0] || k[1] != q[1] ||
      v[1] != q[1] || (one_width && (k[2] != q[2] || v[2] != q[2])))
    throw ShapeError(fmt::format(
        "{}: needs a query (l, batch, width), and key and value {}; found {}, {} and {}",
        kMultiHead, one_width ? "(s, batch, width)" : "(s, batch, kdim) and (s, batch, vdim)", q, k,
        v));
  if (num_heads < 1 || q[2] % num_heads)
    throw ValueError(fmt::format("{}: the width {} cannot be divided into num_heads = {}",
                                 kMultiHead, q[2], num_heads));
}

void require_weights(const MultiheadAttentionWeights& w, int64_t width, int64_t kdim,
                     int64_t vdim) {
  require_tensor(kMultiHead, w.out_proj_weight, "out_proj_weight");
  const auto require = [&](const Tensor& t, const char* what, const Shape& wanted) {
    if (t.defined() && !(shape_of(t) == wanted))
      throw ShapeError(fmt::format("{}: {} has shape {}, but must be {}", kMultiHead, what,
                                   shape_of(t), wanted));
  };
  const Tensor* separate[] = {&w.q_proj_weight, &w.k_proj_weight, &w.v_proj_weight};
  for (auto* each : separate)
    if (each->defined() == w.in_proj_weight.defined())
      throw ValueError(
          fmt::format("{}: needs either in_proj_weight or all of q_proj_weight, k_proj_weight and "
                      "v_proj_weight",
                      kMultiHead));
  const auto require_takes = [&](const Tensor& t, const char* what, const char* input,
                                 int64_t found) {
    if (t.defined() && shape_of(t).size() == 2 && shape_of(t)[0] == width &&
        shape_of(t)[1] != found)
      throw ShapeError(fmt::format("{}: the {} is {} wide, but {}, of shape {}, takes {}",
                                   kMultiHead, input, found, what, shape_of(t), shape_of(t)[1]));
  };
  require_takes(w.k_proj_weight, "k_proj_weight", "key", kdim);
  require_takes(w.v_proj_weight, "v_proj_weight", "value", vdim);
  require(w.in_proj_weight, "in_proj_weight", {3 * width, width});
  require(w.q_proj_weight, "q_proj_weight", {width, width});
  require(w.k_proj_weight, "k_proj_weight", {width, kdim});
  require(w.v_proj_weight, "v_proj_weight", {width, vdim});
  require(w.in_proj_bias, "in_proj_bias", {3 * width});
  require(w.out_proj_weight, "out_proj_weight", {width, width});
  require(w.out_proj_bias, "out_proj_bias", {width});
}

// Whether a sequence (l, batch, width) lies in memory with the batch first. Products of it are
// computed the way it lies, because (l, batch, width) would have to be copied for each of them.
bool lies_by_batch(const Tensor& x) {
  return !x.is_contiguous() && x.transpose(0, 1).is_contiguous();
}

// Part `which` of the three projections of (length, batch, width), as (batch, heads, length, width
// / heads). The heads are split where the product lies, so that its gradient is copied once.
Tensor heads_of(const Tensor& x, const MultiheadAttentionWeights& w, int64_t which, int64_t heads) {
  const int64_t width = shape_of(w.out_proj_weight)[0];
  const Tensor* separate[] = {&w.q_proj_weight, &w.k_proj_weight, &w.v_proj_weight};
  const Tensor weight = w.in_proj_weight.defined()
                            ? w.in_proj_weight.narrow(0, which * width, width)
                            : *separate[which];
  const Tensor bias =
      w.in_proj_bias.defined() ? w.in_proj_bias.narrow(0, which * width, width) : Tensor();
  const bool by_batch = lies_by_batch(x);
  const Tensor y = linear(by_batch ? x.transpose(0, 1) : x, weight, bias);
  const Shape& s = shape_of(y);
  const Tensor split = y.reshape({s[0], s[1], heads, s[2] / heads});
  return by_batch ? split.permute({0, 2, 1, 3}) : split.permute({1, 2, 0, 3});
}

// All masks as one that is added and one that leaves pairs out, of which either may be undefined.
// They broadcast to scores (batch, heads, l, s).
struct Masks {
  Tensor added, left_out;

  // `dtype`: of the scores, to which floating masks are converted.
  Masks(const MultiheadAttentionForwardOptions& options, const Shape& scores, DType dtype) {
    const Shape plain = {scores[2], scores[3]}, rows = {scores[0], scores[3]},
                full = {scores[0] * scores[1], scores[2], scores[3]};
    const Tensor &mask = options.attn_mask, &padding = options.key_padding_mask;
    if (mask.defined() && !(shape_of(mask) == plain) && !(shape_of(mask) == full))
      throw ShapeError(fmt::format("{}: attn_mask has shape {}, but must be {} or {}", kMultiHead,
                                   shape_of(mask), plain, full));
    if (padding.defined() && !(shape_of(padding) == rows))
      throw ShapeError(fmt::format("{}: key_padding_mask has shape {}, but must be {}", kMultiHead,
                                   shape_of(padding), rows));
    require_type(mask, "attn_mask");
    require_type(padding, "key_padding_mask");
    if (mask.defined()) add(shape_of(mask) == plain ? mask : mask.reshape(scores), dtype);
    if (padding.defined()) add(padding.reshape({scores[0], 1, 1, scores[3]}), dtype);
  }

  // Numbers 0 and 1 would be added to the scores, which nobody means.
  static void require_type(const Tensor& mask, const char* what) {
    if (mask.defined() && dtype_of(mask) != boolean && !is_floating_point(dtype_of(mask)))
      throw DTypeError(
          fmt::format("{}: {} is bool, where true is left out, or floating and added to the "
                      "scores; found {}; {}",
                      kMultiHead, what, dtype_of(mask), conversion_to(boolean)));
  }

  void add(const Tensor& mask, DType dtype) {
    if (dtype_of(mask) == boolean)
      left_out = left_out.defined() ? logical_or(left_out, mask) : mask;
    else
      added = added.defined() ? added + mask.to(dtype) : mask.to(dtype);
  }
  bool empty() const { return !added.defined() && !left_out.defined(); }

  Tensor apply(Tensor scores) const {
    if (added.defined()) scores = masked_scores(scores, added, false);
    return left_out.defined() ? masked_scores(scores, left_out, false) : scores;
  }
  // As scaled_dot_product_attention takes them: true takes part.
  Tensor one() const {
    if (!added.defined()) return left_out.defined() ? logical_not(left_out) : Tensor();
    return left_out.defined() ? masked_scores(added, left_out, false) : added;
  }
};

// One sequence without a batch: (l, width), (s, width).
std::pair<Tensor, Tensor> attend_unbatched(const Tensor& query, const Tensor& key,
                                           const Tensor& value, int64_t num_heads,
                                           const MultiheadAttentionWeights& weights,
                                           MultiheadAttentionForwardOptions options) {
  if (options.key_padding_mask.defined())
    options.key_padding_mask = unsqueeze(options.key_padding_mask, 0);
  const auto [y, w] = multi_head_attention_forward(
      unsqueeze(query, 1), unsqueeze(key, 1), unsqueeze(value, 1), num_heads, weights, options);
  return {squeeze(y, 1), w.defined() ? squeeze(w, 0) : w};
}

}  // namespace

std::pair<Tensor, Tensor> multi_head_attention_forward(
    const Tensor& query, const Tensor& key, const Tensor& value, int64_t num_heads,
    const MultiheadAttentionWeights& weights, const MultiheadAttentionForwardOptions& options) try {
  require_defined(kMultiHead, {{"query", query}, {"key", key}, {"value", value}});
  if (query.dim() == 2 && key.dim() == 2 && value.dim() == 2)
    return attend_unbatched(query, key, value, num_heads, weights, options);
  require_sequences(query, key, value, num_heads, weights.in_proj_weight.defined());
  const Shape& shape = shape_of(query);
  const int64_t width = shape[2];
  require_weights(weights, width, shape_of(key)[2], shape_of(value)[2]);
  if (!(options.dropout_p >= 0 && options.dropout_p <= 1))
    throw ValueError(fmt::format("{}: dropout_p must lie in [0, 1], found {}", kMultiHead,
                                 number_text(options.dropout_p)));
  const Tensor q = heads_of(query, weights, 0, num_heads), k = heads_of(key, weights, 1, num_heads),
               v = heads_of(value, weights, 2, num_heads);
  const auto output = [&](const Tensor& heads) {
    if (!lies_by_batch(query))
      return linear(heads.permute({2, 0, 1, 3}).reshape(shape), weights.out_proj_weight,
                    weights.out_proj_bias);
    const Tensor by_batch = heads.permute({0, 2, 1, 3}).reshape({shape[1], shape[0], width});
    return linear(by_batch, weights.out_proj_weight, weights.out_proj_bias).transpose(0, 1);
  };
  const int64_t s = shape_of(key)[0];
  Masks masks(options, {shape[1], num_heads, shape[0], s}, dtype_of(q));
  const bool fused = !options.need_weights && options.dropout_p == 0;
  if (fused && options.is_causal && masks.empty())
    return {output(scaled_dot_product_attention(q, k, v, {.is_causal = true})), Tensor()};
  if (options.is_causal) masks.add(logical_not(causal_mask(shape[0], s, q.device())), boolean);
  if (fused)
    return {output(scaled_dot_product_attention(q, k, v, {.attn_mask = masks.one()})), Tensor()};
  const double scale = std::sqrt(static_cast<double>(num_heads) / static_cast<double>(width));
  Tensor attention = attention_weights(masks.apply(matmul(q * scale, k.transpose(-2, -1))));
  if (options.dropout_p > 0) attention = dropout(attention, options.dropout_p);
  const Tensor y = output(matmul(attention, v));
  if (!options.need_weights) return {y, Tensor()};
  return {y, options.average_attn_weights ? mean(attention, {1}) : attention};
} catch (const Error&) {
  rethrow_in("multi_head_attention_forward");
}

}  // namespace tenon
