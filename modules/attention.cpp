#include <tenon/core/format.h>
#include <tenon/core/ops/attention.h>
#include <tenon/core/ops/shape.h>
#include <tenon/modules/attention.h>
#include <tenon/modules/init.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

MultiheadAttention::MultiheadAttention(int64_t width, int64_t heads,
                                       const MultiheadAttentionOptions& o)
    : embed_dim(width),
      num_heads(heads),
      options(o),
      out_proj(width, width, {.bias = o.bias, .tensor = o.tensor}) {
  require(heads >= 1, "MultiheadAttention", "num_heads", static_cast<double>(heads), "at least 1");
  require(width >= 1 && width % heads == 0, "MultiheadAttention", "embed_dim",
          static_cast<double>(width), fmt::format("a multiple of num_heads, {}", heads).c_str());
  require(o.dropout >= 0 && o.dropout <= 1, "MultiheadAttention", "dropout", o.dropout,
          "from 0 to 1");
  const int64_t kdim = o.kdim.value_or(width), vdim = o.vdim.value_or(width);
  require(kdim >= 1, "MultiheadAttention", "kdim", static_cast<double>(kdim), "at least 1");
  require(vdim >= 1, "MultiheadAttention", "vdim", static_cast<double>(vdim), "at least 1");
  const auto made = [&](const Shape& shape) {
    return Parameter(init::xavier_uniform_(empty(shape, o.tensor)));
  };
  if (kdim == width && vdim == width) {
    in_proj_weight = made({3 * width, width});
  } else {
    q_proj_weight = made({width, width});
    k_proj_weight = made({width, kdim});
    v_proj_weight = made({width, vdim});
  }
  if (!o.bias) return;
  in_proj_bias = Parameter(zeros({3 * width}, o.tensor));
  out_proj.bias = Parameter(zeros({width}, o.tensor));
}

std::pair<Tensor, Tensor> MultiheadAttention::forward(const Tensor& query, const Tensor& key,
                                                      const Tensor& value,
                                                      const AttentionMasks& masks) const {
  const auto sequence = [&](const Tensor& x) {
    return options.batch_first && x.defined() && x.dim() == 3 ? x.transpose(0, 1) : x;
  };
  auto [y, weights] =
      multi_head_attention_forward(sequence(query), sequence(key), sequence(value), num_heads,
                                   {.in_proj_weight = in_proj_weight,
                                    .in_proj_bias = in_proj_bias,
                                    .out_proj_weight = out_proj.weight,
                                    .out_proj_bias = out_proj.bias,
                                    .q_proj_weight = q_proj_weight,
                                    .k_proj_weight = k_proj_weight,
                                    .v_proj_weight = v_proj_weight},
                                   {.key_padding_mask = masks.key_padding_mask,
                                    .attn_mask = masks.attn_mask,
                                    .is_causal = masks.is_causal,
                                    .need_weights = masks.need_weights,
                                    .average_attn_weights = masks.average_attn_weights,
                                    .dropout_p = training ? options.dropout : 0});
  return {sequence(y), weights};
}

void MultiheadAttention::fields(FieldVisitor& v) {
  v("in_proj_weight", in_proj_weight)("q_proj_weight", q_proj_weight);
  v("k_proj_weight", k_proj_weight)("v_proj_weight", v_proj_weight);
  v("in_proj_bias", in_proj_bias)("out_proj", out_proj);
  v("training", training);
}

}  // namespace tenon::nn
