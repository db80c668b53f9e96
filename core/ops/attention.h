// Attention and what it is made of. Every function throws a ValueError for an undefined tensor that
// is not optional, and a ShapeError or DTypeError for tensors that do not fit.
#pragma once

#include <optional>
#include <utility>

#include <tenon/core/tensor.h>

namespace tenon {

struct AttentionOptions {
  // What is added to the scores, or, if it is boolean, which pairs take part (true: they do). It
  // broadcasts to (…, l, s).
  Tensor attn_mask = {};
  // The share of the weights that are set to zero at random; the others are scaled up.
  double dropout_p = 0;
  // Position i attends to the positions up to i, counted from the beginning of both. It cannot be
  // combined with attn_mask.
  bool is_causal = false;
  // The factor of the scores; 1 / sqrt(e) unless it is given.
  std::optional<double> scale = std::nullopt;
  // Lets groups of query heads, dimension -3, share one head of key and value: the number of query
  // heads is then a multiple of theirs.
  bool enable_gqa = false;
};

// Returns softmax(query keyᵀ * scale + mask) value, of shape (…, l, ev), for query (…, l, e), key
// (…, s, e) and value (…, s, ev), all floating and of one dtype; the dimensions before the last two
// broadcast (Vaswani et al., arXiv:1706.03762). A row without any position to attend to is 0, as in
// PyTorch. Throws a ValueError if both attn_mask and is_causal are given, or dropout_p is outside
// [0, 1].
TENON_API Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key,
                                              const Tensor& value,
                                              const AttentionOptions& options = {});

struct MultiheadAttentionWeights {
  Tensor in_proj_weight = {};   // (3 width, width): of query, key and value, one below the other
  Tensor in_proj_bias = {};     // (3 width); undefined: none
  Tensor out_proj_weight = {};  // (width, width)
  Tensor out_proj_bias = {};    // (width); undefined: none
  // In place of in_proj_weight, which is undefined then, for keys and values of other widths:
  // (width, width), (width, kdim) and (width, vdim).
  Tensor q_proj_weight = {}, k_proj_weight = {}, v_proj_weight = {};
};

struct MultiheadAttentionForwardOptions {
  Tensor key_padding_mask = {};  // (batch, s); boolean: true is left out; floating: is added
  // (l, s) or (batch num_heads, l, s); boolean: true is left out; floating: is added to the scores.
  Tensor attn_mask = {};
  // Position i attends to the positions up to i, of those that the masks allow. In contrast to
  // PyTorch's hint it needs no mask, and a mask that is given as well counts.
  bool is_causal = false;
  bool need_weights = true;          // otherwise the second result is undefined
  bool average_attn_weights = true;  // over the heads; otherwise one for each head
  double dropout_p = 0;              // of the attention weights
};

// Attention of `num_heads` heads between projections of query (l, batch, width), key and value
// (s, batch, width), or (l, width) and (s, width) (kdim and vdim with weights of their own), whose
// results and masks have no batch either. Without weights to return and dropout it is
// scaled_dot_product_attention. Returns the projected result (l, batch, width) and the weights,
// averaged over the heads (batch, l, s), or (batch, num_heads, l, s). Throws a ValueError unless
// num_heads divides the width.
TENON_API std::pair<Tensor, Tensor> multi_head_attention_forward(
    const Tensor& query, const Tensor& key, const Tensor& value, int64_t num_heads,
    const MultiheadAttentionWeights& weights, const MultiheadAttentionForwardOptions& options = {});

// Returns x (…, n, d), d even, with each pair (a, b) of its last dimension rotated by the angle
// (p + offset) * base^(-2 i / d) at row p and pair i: (a cos - b sin, a sin + b cos) (Su et al.,
// arXiv:2104.09864). Pair i is (x[i], x[i + d/2]), or (x[2i], x[2i + 1]) if interleaved.
TENON_API Tensor rotary_embedding(const Tensor& x, double base = 10000, int64_t offset = 0,
                                  bool interleaved = false);

}  // namespace tenon
