#include <limits>

#include <tenon/core/format.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/shape.h>
#include <tenon/modules/init.h>
#include <tenon/modules/repr.h>
#include <tenon/modules/transformer.h>

namespace tenon::nn {

namespace {

using LayerOptions = TransformerLayerOptions;

MultiheadAttention attention_of(int64_t width, int64_t heads, const LayerOptions& o) {
  return {width,
          heads,
          {.dropout = o.dropout, .bias = o.bias, .batch_first = o.batch_first, .tensor = o.tensor}};
}
Linear linear_of(int64_t in, int64_t out, const LayerOptions& o) {
  return {in, out, {.bias = o.bias, .tensor = o.tensor}};
}
LayerNorm norm_of(int64_t width, const LayerOptions& o) {
  return {width, {.eps = o.layer_norm_eps, .bias = o.bias, .tensor = o.tensor}};
}

template <class Layer>
std::vector<Layer> copies_of(const Layer& layer, int64_t count, const char* stack) {
  require(count >= 0, stack, "num_layers", static_cast<double>(count), "at least 0");
  return repeat(count, [&] { return clone(layer); });
}

}  // namespace

Activation::Activation(const std::string& name) {
  if (name == "relu")
    function_ = [](const Tensor& x) { return relu(x); };
  else if (name == "gelu")
    function_ = [](const Tensor& x) { return gelu(x); };
  else
    throw ValueError(fmt::format(
        "activation is \"{}\"; it has to be \"relu\", \"gelu\", a function or a module", name));
}

TransformerEncoderLayer::TransformerEncoderLayer(int64_t width, int64_t heads,
                                                 const LayerOptions& o)
    : self_attn(attention_of(width, heads, o)),
      linear1(linear_of(width, o.dim_feedforward, o)),
      dropout(o.dropout),
      linear2(linear_of(o.dim_feedforward, width, o)),
      norm1(norm_of(width, o)),
      norm2(norm_of(width, o)),
      dropout1(o.dropout),
      dropout2(o.dropout),
      activation(o.activation),
      norm_first(o.norm_first) {}

Tensor TransformerEncoderLayer::forward(const Tensor& src,
                                        const TransformerEncoderMasks& masks) const {
  const auto attend = [&](const Tensor& x) {
    const AttentionMasks own = {.key_padding_mask = masks.src_key_padding_mask,
                                .attn_mask = masks.src_mask,
                                .is_causal = masks.is_causal,
                                .need_weights = false};
    return dropout1(self_attn(x, x, x, own).first);
  };
  const auto feed = [&](const Tensor& x) {
    return dropout2(linear2(dropout(activation(linear1(x)))));
  };
  if (norm_first) {
    const Tensor x = src + attend(norm1(src));
    return x + feed(norm2(x));
  }
  const Tensor x = norm1(src + attend(src));
  return norm2(x + feed(x));
}

void TransformerEncoderLayer::fields(FieldVisitor& v) {
  v("self_attn", self_attn)("linear1", linear1)("dropout", dropout)("linear2", linear2);
  v("norm1", norm1)("norm2", norm2)("dropout1", dropout1)("dropout2", dropout2);
  v("activation", activation.module);
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t width, int64_t heads,
                                                 const LayerOptions& o)
    : self_attn(attention_of(width, heads, o)),
      multihead_attn(attention_of(width, heads, o)),
      linear1(linear_of(width, o.dim_feedforward, o)),
      dropout(o.dropout),
      linear2(linear_of(o.dim_feedforward, width, o)),
      norm1(norm_of(width, o)),
      norm2(norm_of(width, o)),
      norm3(norm_of(width, o)),
      dropout1(o.dropout),
      dropout2(o.dropout),
      dropout3(o.dropout),
      activation(o.activation),
      norm_first(o.norm_first) {}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory,
                                        const TransformerDecoderMasks& masks) const {
  const auto attend = [&](const Tensor& x) {
    const AttentionMasks own = {.key_padding_mask = masks.tgt_key_padding_mask,
                                .attn_mask = masks.tgt_mask,
                                .is_causal = masks.tgt_is_causal,
                                .need_weights = false};
    return dropout1(self_attn(x, x, x, own).first);
  };
  const auto recall = [&](const Tensor& x) {
    const AttentionMasks own = {.key_padding_mask = masks.memory_key_padding_mask,
                                .attn_mask = masks.memory_mask,
                                .is_causal = masks.memory_is_causal,
                                .need_weights = false};
    return dropout2(multihead_attn(x, memory, memory, own).first);
  };
  const auto feed = [&](const Tensor& x) {
    return dropout3(linear2(dropout(activation(linear1(x)))));
  };
  if (norm_first) {
    const Tensor x = tgt + attend(norm1(tgt)), y = x + recall(norm2(x));
    return y + feed(norm3(y));
  }
  const Tensor x = norm1(tgt + attend(tgt)), y = norm2(x + recall(x));
  return norm3(y + feed(y));
}

void TransformerDecoderLayer::fields(FieldVisitor& v) {
  v("self_attn", self_attn)("multihead_attn", multihead_attn);
  v("linear1", linear1)("dropout", dropout)("linear2", linear2);
  v("norm1", norm1)("norm2", norm2)("norm3", norm3);
  v("dropout1", dropout1)("dropout2", dropout2)("dropout3", dropout3);
  v("activation", activation.module);
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers,
                                       AnyModule last)
    : layers(copies_of(layer, num_layers, "TransformerEncoder")), norm(std::move(last)) {}

Tensor TransformerEncoder::forward(const Tensor& src, const TransformerEncoderMasks& masks) const {
  Tensor x = src;
  for (auto& layer : layers) x = layer(x, masks);
  return norm.module_ref().self ? norm(x) : x;
}

void TransformerEncoder::fields(FieldVisitor& v) { v("layers", layers)("norm", norm); }

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers,
                                       AnyModule last)
    : layers(copies_of(layer, num_layers, "TransformerDecoder")), norm(std::move(last)) {}

Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory,
                                   const TransformerDecoderMasks& masks) const {
  Tensor x = tgt;
  for (auto& layer : layers) x = layer(x, memory, masks);
  return norm.module_ref().self ? norm(x) : x;
}

void TransformerDecoder::fields(FieldVisitor& v) { v("layers", layers)("norm", norm); }

Transformer::Transformer(int64_t width, int64_t heads, int64_t num_encoder_layers,
                         int64_t num_decoder_layers, const LayerOptions& o)
    : encoder(TransformerEncoderLayer(width, heads, o), num_encoder_layers, norm_of(width, o)),
      decoder(TransformerDecoderLayer(width, heads, o), num_decoder_layers, norm_of(width, o)) {
  for (const Tensor& p : parameters())
    if (p.dim() > 1) init::xavier_uniform_(p);
}

Tensor Transformer::forward(const Tensor& src, const Tensor& tgt,
                            const TransformerEncoderMasks& encoder_masks,
                            const TransformerDecoderMasks& decoder_masks) const {
  return decoder(tgt, encoder(src, encoder_masks), decoder_masks);
}

void Transformer::fields(FieldVisitor& v) { v("encoder", encoder)("decoder", decoder); }

Tensor Transformer::generate_square_subsequent_mask(int64_t size, const TensorOptions& options) {
  return triu(full({size, size}, -std::numeric_limits<double>::infinity(), options), 1);
}

}  // namespace tenon::nn
