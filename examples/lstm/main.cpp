// Trains the recurrent network of model.h on the characters of a text, and lets it write some.
#include "common/text.h"
#include "lstm/model.h"

using namespace tenon;

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
    const auto text = example::load_text(o, CharLstm::kBlock);
    CharLstm net{{}, text.vocabulary.size()};
    example::train_and_write(net, text, o, {.unit = "windows", .by_step = true, .max_norm = 1},
                             prompt, length);
  });
}
