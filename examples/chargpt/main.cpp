// Trains the small GPT of model.h on the characters of a text, and lets it write some.
#include "chargpt/model.h"
#include "common/text.h"

using namespace tenon;

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
    const auto text = example::load_text(o, CharGpt::kBlock);
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
