// A small GPT (Radford et al., 2018) that learns a text character by character, and then writes
// some: a stack of transformer layers, of which each position sees those before it.
#pragma once

#include <vector>

#include <tenon/tenon.h>

struct CharGpt : tenon::nn::Module<CharGpt> {
  static constexpr int64_t kBlock = 64, kWidth = 128, kHeads = 4, kLayers = 4;
  int64_t characters;
  tenon::nn::Embedding meaning{characters, kWidth}, place{kBlock, kWidth};
  std::vector<tenon::nn::TransformerEncoderLayer> layers = tenon::nn::repeat(kLayers, [] {
    return tenon::nn::TransformerEncoderLayer(kWidth, kHeads,
                                              {.dim_feedforward = 4 * kWidth,
                                               .dropout = 0,
                                               .activation = "gelu",
                                               .batch_first = true,
                                               .norm_first = true});
  });
  tenon::nn::LayerNorm norm{kWidth};
  tenon::nn::Linear score{kWidth, characters};

  // Returns scores (n, t, characters) of what follows each token of (n, t).
  tenon::Tensor forward(const tenon::Tensor& tokens) {
    tenon::Tensor x = meaning(tokens) + place.weight.narrow(0, 0, tokens.size(1));
    for (auto& layer : layers) x = layer(x, tenon::nn::TransformerEncoderMasks{.is_causal = true});
    return score(norm(x));
  }
};
