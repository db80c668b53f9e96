// Transformers (Vaswani et al., arXiv:1706.03762), with PyTorch's parameters and their names, so
// that weights can be exchanged:
//   nn::TransformerEncoder encoder(
//       nn::TransformerEncoderLayer(128, 4, {.dim_feedforward = 512, .batch_first = true}), 6);
//   y = encoder(x, nn::TransformerEncoderMasks{.is_causal = true});
// Sequences of length s are (s, batch, d_model), (batch, s, d_model) with batch_first, or
// (s, d_model), and have the dtype of the parameters. Constructors throw a ValueError for an option
// outside its range or unless nhead divides d_model; calls throw the errors of
// multi_head_attention_forward.
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

// The activation that a feed-forward network computes between its two linear layers.
class TENON_API Activation {
 public:
  // Takes the function relu or gelu by its name. Throws a ValueError for another name.
  Activation(const std::string& name);
  // Does the same for a name in quotes.
  Activation(const char* name) : Activation(std::string(name)) {}
  // Takes a function of a tensor, which is no part of the model.
  template <class F>
    requires(std::is_invocable_r_v<Tensor, F&, const Tensor&> && !detail::IsModule<F>)
  Activation(F function) : function_(std::move(function)) {}
  // Takes a module, whose parameters are those of the model then.
  template <detail::IsModule M>
  Activation(M module) : module(std::move(module)) {}

  // Returns the activation of x (…, dim_feedforward), in the shape of x.
  Tensor operator()(const Tensor& x) const {
    return module.module_ref().self ? module(x) : function_(x);
  }

  AnyModule module;  // empty unless it was made from a module

 private:
  std::function<Tensor(const Tensor&)> function_;
};

struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;  // the width between the two linear layers
  // The dropout in training, of attention weights, between the linear layers, and of what each part
  // adds; in [0, 1].
  double dropout = 0.1;
  Activation activation = "relu";  // between the two linear layers
  double layer_norm_eps = 1e-5;    // the eps of each LayerNorm
  bool batch_first = false;  // sequences are (batch, length, d_model), not (length, batch, d_model)
  bool norm_first = false;   // whether each part normalizes its input, instead of the sum after it
  bool bias = true;          // whether linear layers and normalizations add biases
  TensorOptions tensor = {};  // dtype and device of the parameters
};

// Masks are those of multi_head_attention_forward: boolean, where true is left out, or floating and
// added to the scores. An undefined mask leaves nothing out. With is_causal a position attends to
// those up to its own; that needs no mask and is faster than one.

// The masks of an encoder, for a sequence of length s.
struct TransformerEncoderMasks {
  Tensor src_mask = {};              // (s, s) or (batch nhead, s, s)
  Tensor src_key_padding_mask = {};  // (batch, s)
  bool is_causal = false;            // whether each position attends to those up to its own
};
// The masks of a decoder, for a target of length t and a memory of length s.
struct TransformerDecoderMasks {
  Tensor tgt_mask = {};                 // (t, t) or (batch nhead, t, t)
  Tensor memory_mask = {};              // (t, s) or (batch nhead, t, s)
  Tensor tgt_key_padding_mask = {};     // (batch, t)
  Tensor memory_key_padding_mask = {};  // (batch, s)
  // Whether each position attends to those up to its own, in the target and in the memory.
  bool tgt_is_causal = false, memory_is_causal = false;
};

// Computes the attention of a sequence to itself and then a feed-forward network; each part adds to
// its input and is normalized. The result has the shape of the sequence.
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

// Computes the attention of a target sequence to itself, then to `memory`, the encoder's result,
// and then a feed-forward network; each part adds to its input and is normalized. The result has
// the shape of the target.
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

// Applies `num_layers` deep copies of a layer, which therefore start with equal values, one after
// the other, and then `norm`, if it is given. The result has the shape of the sequence. The
// constructor throws a ValueError for negative num_layers.
struct TENON_API TransformerEncoder final : Module<TransformerEncoder> {
  TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers, AnyModule norm = {});
  Tensor forward(const Tensor& src, const TransformerEncoderMasks& masks = {}) const;
  void fields(FieldVisitor& v);

  std::vector<TransformerEncoderLayer> layers;
  AnyModule norm;
};

// Applies the same to decoder layers, each of which reads `memory`. The result has the shape of the
// target.
struct TENON_API TransformerDecoder final : Module<TransformerDecoder> {
  TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers, AnyModule norm = {});
  Tensor forward(const Tensor& tgt, const Tensor& memory,
                 const TransformerDecoderMasks& masks = {}) const;
  void fields(FieldVisitor& v);

  std::vector<TransformerDecoderLayer> layers;
  AnyModule norm;
};

// Applies an encoder to `src` and a decoder, which reads the encoder's result, to `tgt`; each has a
// LayerNorm at its end. The result has the shape of `tgt`. All matrices start Xavier uniform.
struct TENON_API Transformer final : Module<Transformer> {
  explicit Transformer(int64_t d_model = 512, int64_t nhead = 8, int64_t num_encoder_layers = 6,
                       int64_t num_decoder_layers = 6, const TransformerLayerOptions& options = {});
  Tensor forward(const Tensor& src, const Tensor& tgt,
                 const TransformerEncoderMasks& encoder_masks = {},
                 const TransformerDecoderMasks& decoder_masks = {}) const;
  void fields(FieldVisitor& v);
  // Returns the mask (size, size) that is 0 up to the diagonal and -inf above it, so that each
  // position attends to those up to its own. `options` give its dtype, which is floating, and its
  // device.
  static Tensor generate_square_subsequent_mask(int64_t size, const TensorOptions& options = {});

  TransformerEncoder encoder;
  TransformerDecoder decoder;
};

}  // namespace tenon::nn
