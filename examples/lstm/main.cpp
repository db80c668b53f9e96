// A recurrent network (long short-term memory) that learns a text character by character, and then
// writes some.
#include "common/text.h"

using namespace tenon;

constexpr int64_t kBlock = 64, kWidth = 256;

struct CharLstm : nn::Module<CharLstm> {
  int64_t characters;
  nn::Embedding meaning{characters, 64};
  nn::LSTM memory{64, kWidth, {.num_layers = 2, .batch_first = true}};
  nn::Linear score{kWidth, characters};

  // Returns scores (n, t, characters) of what follows each token of (n, t).
  Tensor forward(const Tensor& tokens) {
    const auto [states, hidden, cell] = memory(meaning(tokens));
    return score(states);
  }
};

int main(int argc, char** argv) {
  std::string prompt = "ROMEO:";
  int64_t length = 500;
  const example::Program program = {
      .description = "Trains an LSTM on the characters of a text, and lets it write",
      .data = example::kTextHelp,
      .generates = false,
      .extras = {{"--prompt", &prompt, "What it goes on from"},
                 {"--length", &length, "How many characters it writes"}}};
  const example::Options defaults = {.epochs = 2, .batch_size = 32, .lr = 4e-3};
  return example::run(argc, argv, program, defaults, [&](const example::Options& o) {
    const auto text = example::load_text(o, kBlock);
    CharLstm net{{}, text.vocabulary.size()};
    example::train_and_write(net, text, o, {.unit = "windows", .by_step = true, .max_norm = 1},
                             prompt, length);
  });
}
