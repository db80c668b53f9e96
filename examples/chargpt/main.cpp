// A small GPT (Radford et al., 2018) that learns a text character by character, and then writes
// some: a stack of transformer layers, of which each position sees those before it.
#include "common/text.h"

using namespace tenon;

constexpr int64_t kBlock = 64, kWidth = 128, kHeads = 4, kLayers = 4;

struct CharGpt : nn::Module<CharGpt> {
  int64_t characters;
  nn::Embedding meaning{characters, kWidth}, place{kBlock, kWidth};
  std::vector<nn::TransformerEncoderLayer> layers = nn::repeat(kLayers, [] {
    return nn::TransformerEncoderLayer(kWidth, kHeads,
                                       {.dim_feedforward = 4 * kWidth,
                                        .dropout = 0,
                                        .activation = "gelu",
                                        .batch_first = true,
                                        .norm_first = true});
  });
  nn::LayerNorm norm{kWidth};
  nn::Linear score{kWidth, characters};

  // Returns scores (n, t, characters) of what follows each token of (n, t).
  Tensor forward(const Tensor& tokens) {
    Tensor x = meaning(tokens) + place.weight.narrow(0, 0, tokens.size(1));
    for (auto& layer : layers) x = layer(x, nn::TransformerEncoderMasks{.is_causal = true});
    return score(norm(x));
  }
};

int main(int argc, char** argv) {
  std::string prompt = "ROMEO:";
  int64_t length = 500;
  bool half = false;
  const example::Program program = {
      .description = "Trains a small GPT on the characters of a text, and lets it write",
      .data = example::kTextHelp,
      .generates = false,
      .extras = {{"--prompt", &prompt, "What it goes on from"},
                 {"--length", &length, "How many characters it writes"},
                 {"--bf16", &half, "Train in mixed precision"}}};
  const example::Options defaults = {.epochs = 4, .batch_size = 32, .lr = 2e-3};
  return example::run(argc, argv, program, defaults, [&](const example::Options& o) {
    const auto text = example::load_text(o, kBlock);
    CharGpt net{{}, text.vocabulary.size()};
    // The usual small start: matrices from a normal distribution of width 0.02.
    for (auto& [name, p] : net.named_parameters())
      if (p.dim() > 1) nn::init::normal_(p, 0, 0.02);
    example::train_and_write(
        net, text, o,
        {.unit = "windows", .by_step = true, .warmup = 100, .max_norm = 1, .bf16 = half}, prompt,
        length);
  });
}
