// The layer of multi-head attention.
#pragma once

#include <optional>
#include <utility>

#include <tenon/modules/linear.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;  // the dropout of the attention weights in training; in [0, 1]
  bool bias = true;    // whether the projections add biases
  bool batch_first =
      false;  // inputs and results are (batch, length, width), not (length, batch, …)
  std::optional<int64_t> kdim = std::nullopt;  // width of the keys; by default embed_dim
  std::optional<int64_t> vdim = std::nullopt;  // width of the values; by default embed_dim
  TensorOptions tensor = {};                   // dtype and device of the parameters
};

struct AttentionMasks {
  Tensor key_padding_mask = {};  // (batch, s); boolean: true is left out; floating: is added
  Tensor attn_mask = {};         // (l, s) or (batch num_heads, l, s); the same
  // Whether position i attends only to those of the positions up to i that the masks allow.
  bool is_causal = false;
  bool need_weights = true;          // otherwise the second result is undefined; that is faster
  bool average_attn_weights = true;  // whether the weights are averaged over the heads
};

// Computes attention of `num_heads` heads between learned projections (Vaswani et al.,
// arXiv:1706.03762), with PyTorch's names: "in_proj_weight" (3 embed_dim, embed_dim), or where kdim
// or vdim is another width than embed_dim "q_proj_weight", "k_proj_weight" (embed_dim, kdim) and
// "v_proj_weight" (embed_dim, vdim); "in_proj_bias", "out_proj.weight", "out_proj.bias". The
// weights of the inputs start Xavier uniform, biases at 0. The constructor throws a ValueError for
// an option outside its range or unless num_heads divides embed_dim; calls throw as
// multi_head_attention_forward does.
struct TENON_API MultiheadAttention final : Module<MultiheadAttention> {
  MultiheadAttention(int64_t embed_dim, int64_t num_heads,
                     const MultiheadAttentionOptions& options = {});
  // Returns the result (l, batch, embed_dim) and the weights, averaged over the heads (batch, l, s)
  // or (batch, num_heads, l, s), for query (l, batch, embed_dim), key (s, batch, kdim) and value
  // (s, batch, vdim). With batch_first the batch is dimension 0; all may come without a batch.
  std::pair<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionMasks& masks = {}) const;
  void fields(FieldVisitor& v);

  int64_t embed_dim, num_heads;
  MultiheadAttentionOptions options;
  Parameter in_proj_weight;  // undefined where the next three are defined
  Parameter q_proj_weight, k_proj_weight, v_proj_weight;
  Parameter in_proj_bias;  // (3 embed_dim); undefined without options.bias
  Linear out_proj;
  bool training = true;
};

}  // namespace tenon::nn
