// Attention and what it is made of. Every function throws a ValueError for an undefined tensor that
// is not optional, and a ShapeError or DTypeError for tensors that do not fit.
#pragma once

#include <optional>
#include <utility>

#include <tenon/core/tensor.h>

namespace tenon {

// The options of scaled_dot_product_attention.
struct AttentionOptions {
  // What is added to the scores, in the dtype of the query, or, if it is bool, which pairs take
  // part (those where it is true). It broadcasts to (…, l, s).
  Tensor attn_mask = {};
  // The probability with which each weight is set to zero, as dropout does it, in [0, 1].
  double dropout_p = 0;
  // Whether position i attends only to the positions up to i, counted from the beginning of both.
  // It cannot be combined with attn_mask.
  bool is_causal = false;
  // The factor of the scores; by default 1 / sqrt(e).
  std::optional<double> scale = std::nullopt;
  // Whether groups of query heads, dimension -3, share one head of key and value: the number of
  // query heads is then a multiple of theirs.
  bool enable_gqa = false;
};

// Returns softmax(query keyᵀ * scale + mask) value, of shape (…, l, ev), for query (…, l, e), key
// (…, s, e) and value (…, s, ev), all floating and of one dtype; the dimensions before the last two
// broadcast (Vaswani et al., arXiv:1706.03762). A row without any position to attend to is 0, as in
// PyTorch. Throws a ShapeError for other shapes, a DTypeError for other dtypes, and a ValueError if
// both attn_mask and is_causal are given, or dropout_p is outside [0, 1].
TENON_API Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key,
                                              const Tensor& value,
                                              const AttentionOptions& options = {});

// The weights of multi_head_attention_forward, in the dtype of the query.
struct MultiheadAttentionWeights {
  // The weights of query, key and value, one below the other: (3 width, width).
  Tensor in_proj_weight = {};
  Tensor in_proj_bias = {};     // their biases (3 width), or undefined for none
  Tensor out_proj_weight = {};  // the weight of the result (width, width), which is required
  Tensor out_proj_bias = {};    // its bias (width), or undefined for none
  // The weights of query, key and value for keys and values of other widths: (width, width),
  // (width, kdim) and (width, vdim). They replace in_proj_weight, which is undefined then.
  Tensor q_proj_weight = {}, k_proj_weight = {}, v_proj_weight = {};
};

// The options of multi_head_attention_forward. Of a bool mask, what is true is left out; a mask of
// any floating dtype is added to the scores.
struct MultiheadAttentionForwardOptions {
  Tensor key_padding_mask = {};  // says which keys take part: (batch, s)
  Tensor attn_mask = {};         // says which pairs take part: (l, s) or (batch num_heads, l, s)
  // Whether position i attends only to those of the positions up to i that the masks allow. In
  // contrast to PyTorch's hint it needs no mask, and a mask that is given as well counts.
  bool is_causal = false;
  bool need_weights = true;          // whether the weights are returned; without them it is faster
  bool average_attn_weights = true;  // whether they are averaged over the heads
  double dropout_p = 0;  // the probability with which each weight is set to zero, in [0, 1]
};

// Computes attention of `num_heads` heads between projections of query (l, batch, width), key and
// value (s, batch, width), whose last dimension is kdim and vdim where they have weights of their
// own (Vaswani et al., arXiv:1706.03762). Returns the projected result (l, batch, width), and the
// attention weights after dropout, (batch, l, s), (batch, num_heads, l, s) unless they are
// averaged, or undefined without need_weights. Without a batch, the inputs are (l, width) and (s,
// width), the results (l, width) and (l, s) or (num_heads, l, s), and the masks (s) and (l, s) or
// (num_heads, l, s). All tensors but the masks have one floating dtype, which the results have,
// too. Throws a ValueError unless num_heads divides the width, for a dropout_p outside [0, 1], or
// unless there is either in_proj_weight or all three weights that replace it, and a DTypeError for
// weights of another dtype than what they multiply, or a mask that is neither bool nor floating.
TENON_API std::pair<Tensor, Tensor> multi_head_attention_forward(
    const Tensor& query, const Tensor& key, const Tensor& value, int64_t num_heads,
    const MultiheadAttentionWeights& weights, const MultiheadAttentionForwardOptions& options = {});

// Returns x (…, n, d) with each pair (a, b) of its last dimension rotated by the angle
// (p + offset) * base^(-2 i / d) in radians at row p and pair i: (a cos - b sin, a sin + b cos) (Su
// et al., arXiv:2104.09864). Pair i is (x[i], x[i + d/2]), or (x[2i], x[2i + 1]) if interleaved.
// The result has the dtype of x. Throws a ShapeError for less than two dimensions or an odd d, a
// DTypeError unless x is floating, and a ValueError unless base is positive and finite.
TENON_API Tensor rotary_embedding(const Tensor& x, double base = 10000, int64_t offset = 0,
                                  bool interleaved = false);

}  // namespace tenon
