// Attention and rotary embeddings: one head and many, masks of both kinds, rows that attend to
// nothing.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/core/ops/attention.h>
#include <tenon/core/ops/shape.h>

namespace tenon::conformance {

inline List call_attention(const json& a, const List& in) {
  AttentionOptions options = {.attn_mask = at(in, 3),
                              .is_causal = a.value("is_causal", false),
                              .enable_gqa = a.value("enable_gqa", false)};
  if (a.contains("scale") && !a.at("scale").is_null()) options.scale = a.at("scale").get<double>();
  return {scaled_dot_product_attention(in[0], in[1], in[2], options)};
}

// Without key and value, they are the query.
inline List call_multi_head_attention(const json& a, const List& in) {
  const Tensor key = at(in, 1).defined() ? in[1] : in[0], value = at(in, 2).defined() ? in[2] : key;
  const auto [y, weights] =
      multi_head_attention_forward(in[0], key, value, a.at("num_heads"),
                                   {.in_proj_weight = in[3],
                                    .in_proj_bias = at(in, 4),
                                    .out_proj_weight = in[5],
                                    .out_proj_bias = at(in, 6)},
                                   {.key_padding_mask = at(in, 8),
                                    .attn_mask = at(in, 7),
                                    .is_causal = a.value("is_causal", false),
                                    .need_weights = a.value("need_weights", true),
                                    .average_attn_weights = a.value("average_attn_weights", true)});
  return weights.defined() ? List{y, weights} : List{y};
}

inline List call_rotary_embedding(const json& a, const List& in) {
  return {rotary_embedding(in[0], a.value("base", 10000.0), a.value("offset", int64_t{0}),
                           a.value("interleaved", false))};
}

inline std::vector<Variant> attention_shapes() {
  return {{"", {{2, 3, 4}, {2, 5, 4}, {2, 5, 3}}},
          {"{'is_causal': true}", {{1, 2, 3, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}}},
          {"{'is_causal': true, 'scale': 0.7}", {{2, 5, 8}, {2, 3, 8}, {2, 3, 8}}},
          {"", {{3, 2}, {2, 2}, {2, 2}, flags({3, 2})}},
          {"", {{2, 2, 3, 2}, {2, 1, 2, 2}, {2, 1, 2, 2}, {3, 2}}},
          {"{'enable_gqa': true}", {{1, 4, 3, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}}},
          {"", {{0, 3, 4}, {0, 5, 4}, {0, 5, 3}}},
          {"", {{2, 3, 4}, {2, 0, 4}, {2, 0, 3}}},
          {"{'is_causal': true}", {{2, 4, 65, 16}, {2, 4, 65, 16}, {2, 4, 65, 16}}},
          {"", {{1, 300, 33}, {1, 129, 33}, {1, 129, 7}}},
          {"{'is_causal': true}", {{1, 130, 8}, {1, 300, 8}, {1, 300, 4}}},
          {"", {{3, 70, 4}, {1, 270, 4}, {1, 270, 5}, flags({70, 270})}},
          {"{'scale': 0.3}", {{1, 65, 4}, {1, 257, 4}, {1, 257, 4}, {1, 1, 257}}}};
}
inline std::vector<Variant> multi_head_shapes() {
  const auto with = [](const char* args, int64_t l, int64_t s, int64_t n, int64_t width) {
    return Variant{args,
                   {{l, n, width},
                    {s, n, width},
                    {s, n, width},
                    {3 * width, width},
                    {3 * width},
                    {width, width},
                    {width}}};
  };
  return {with("{'num_heads': 1}", 2, 2, 1, 2), with("{'num_heads': 2}", 3, 4, 2, 4),
          with("{'num_heads': 2, 'is_causal': true, 'need_weights': false}", 4, 3, 2, 4),
          with("{'num_heads': 4, 'average_attn_weights': false}", 17, 9, 3, 32)};
}

inline std::vector<Line> attention_cases() {
  // clang-format off
  return {
      {"scaled_dot_product_attention", call_attention, kReals, attention_shapes(), kLongSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = Values::ordinary, .inputs = "query key value attn_mask"}},
      {"multi_head_attention_forward", call_multi_head_attention, kReals, multi_head_shapes(), kLongSums, {.difference = 1e-5, .values = Values::ordinary, .inputs = "query key value in_proj_weight in_proj_bias out_proj_weight out_proj_bias attn_mask key_padding_mask", .distinct = true}},
      {"rotary_embedding", call_rotary_embedding, kFloats,
          {{"", {{3, 4}}}, {"{'base': 100.0, 'offset': 3, 'interleaved': true}", {{2, 5, 6}}}, {"{'interleaved': true}", {{0, 4}}}, {"", {{2, 3, 70, 64}}}}, kSums, {.values = Values::ordinary}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
