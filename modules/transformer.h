// Transformers (Vaswani et al., arXiv:1706.03762), with PyTorch's parameters and their names, so
// that weights can be carried over:
//   nn::TransformerEncoder encoder(
//       nn::TransformerEncoderLayer(128, 4, {.dim_feedforward = 512, .batch_first = true}), 6);
//   y = encoder(x, nn::TransformerEncoderMasks{.is_causal = true});
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/modules/attention.h>
#include <tenon/modules/dropout.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/norm.h>
#include <tenon/modules/sequential.h>

namespace tenon::nn {

// What a feed-forward network computes between its two linear layers: "relu", "gelu", a function of
// a tensor, or a module. Another name is a ValueError.
class TENON_API Activation {
 public:
  Activation(const std::string& name);
  Activation(const char* name) : Activation(std::string(name)) {}
  template <class F>
    requires(std::is_invocable_r_v<Tensor, F&, const Tensor&> && !detail::IsModule<F>)
  Activation(F function) : function_(std::move(function)) {}
  template <detail::IsModule M>
  Activation(M module) : module(std::move(module)) {}

  Tensor operator()(const Tensor& x) const {
    return module.module_ref().self ? module(x) : function_(x);
  }

  AnyModule module;  // where it is one

 private:
  std::function<Tensor(const Tensor&)> function_;
};

struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;  // the width between the two linear layers
  double dropout = 0.1;  // in training, of attention weights and of what each part adds; in [0, 1]
  Activation activation = "relu";
  double layer_norm_eps = 1e-5;
  bool batch_first = false;  // sequences are (batch, length, d_model), not (length, batch, d_model)
  bool norm_first = false;   // normalises what each part reads, not what it leaves
  bool bias = true;          // whether linear layers and normalisations add biases
  TensorOptions tensor = {};  // dtype and device of the parameters
};

// Masks are those of multi_head_attention_forward: boolean, true being left out, or floating and
// added to the scores. An undefined one leaves nothing out. With is_causal a position attends to
// those up to its own; that needs no mask and is faster than one.
struct TransformerEncoderMasks {
  Tensor src_mask = {};              // (s, s) or (batch nhead, s, s)
  Tensor src_key_padding_mask = {};  // (batch, s)
  bool is_causal = false;
};
struct TransformerDecoderMasks {
  Tensor tgt_mask = {};                 // (t, t) or (batch nhead, t, t)
  Tensor memory_mask = {};              // (t, s) or (batch nhead, t, s)
  Tensor tgt_key_padding_mask = {};     // (batch, t)
  Tensor memory_key_padding_mask = {};  // (batch, s)
  bool tgt_is_causal = false, memory_is_causal = false;
};

// Attention of a sequence to itself, then a feed-forward network; each part adds to what it reads
// and is normalised. Sequences are (s, batch, d_model), (batch, s, d_model) with batch_first, or
// (s, d_model); the result has the same shape. Constructors of all layers here throw a ValueError
// for an option outside its range or unless nhead divides d_model; calls throw what
// multi_head_attention_forward throws.
struct TENON_API TransformerEncoderLayer final : Module<TransformerEncoderLayer> {
  TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                          const TransformerLayerOptions& options = {});
  Tensor forward(const Tensor& src, const TransformerEncoderMasks& masks = {}) const;
  void fields(FieldVisitor& v);

  MultiheadAttention self_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2;
  Dropout dropout1, dropout2;
  Activation activation;
  bool norm_first;
};

// Attention of a target sequence to itself, then to `memory`, the encoder's result, then a
// feed-forward network. Shapes are those of TransformerEncoderLayer.
struct TENON_API TransformerDecoderLayer final : Module<TransformerDecoderLayer> {
  TransformerDecoderLayer(int64_t d_model, int64_t nhead,
                          const TransformerLayerOptions& options = {});
  Tensor forward(const Tensor& tgt, const Tensor& memory,
                 const TransformerDecoderMasks& masks = {}) const;
  void fields(FieldVisitor& v);

  MultiheadAttention self_attn, multihead_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout1, dropout2, dropout3;
  Activation activation;
  bool norm_first;
};

// `num_layers` deep copies of a layer, which therefore start with equal values, one after the
// other, and then `norm`, where one is given.
struct TENON_API TransformerEncoder final : Module<TransformerEncoder> {
  TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers, AnyModule norm = {});
  Tensor forward(const Tensor& src, const TransformerEncoderMasks& masks = {}) const;
  void fields(FieldVisitor& v);

  std::vector<TransformerEncoderLayer> layers;
  AnyModule norm;
};

// The same of decoder layers, each of which reads `memory`.
struct TENON_API TransformerDecoder final : Module<TransformerDecoder> {
  TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers, AnyModule norm = {});
  Tensor forward(const Tensor& tgt, const Tensor& memory,
                 const TransformerDecoderMasks& masks = {}) const;
  void fields(FieldVisitor& v);

  std::vector<TransformerDecoderLayer> layers;
  AnyModule norm;
};

// An encoder and a decoder that reads its result, each with a LayerNorm at its end. All matrices
// start Xavier uniform.
struct TENON_API Transformer final : Module<Transformer> {
  explicit Transformer(int64_t d_model = 512, int64_t nhead = 8, int64_t num_encoder_layers = 6,
                       int64_t num_decoder_layers = 6, const TransformerLayerOptions& options = {});
  Tensor forward(const Tensor& src, const Tensor& tgt,
                 const TransformerEncoderMasks& encoder_masks = {},
                 const TransformerDecoderMasks& decoder_masks = {}) const;
  void fields(FieldVisitor& v);
  // Returns the mask (size, size) that is 0 up to the diagonal and -inf above it: each position
  // attends to those up to its own.
  static Tensor generate_square_subsequent_mask(int64_t size, const TensorOptions& options = {});

  TransformerEncoder encoder;
  TransformerDecoder decoder;
};

}  // namespace tenon::nn
