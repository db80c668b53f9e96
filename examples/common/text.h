// What the models of characters share: the text, its validation loss, and writing.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <tenon/tenon.h>

#include "common/training.h"

namespace example {

inline const char* const kTextHelp =
    "A file of text; without it tinyshakespeare/input.txt in the folder that TENON_DATA names";

// The first nine tenths of the text are learned, the rest tells how well.
struct Text {
  tenon::data::CharVocabulary vocabulary;
  tenon::data::TextDataset train, valid;
};

inline Text load_text(const Options& o, int64_t block_size) {
  std::string path = o.data;
  if (path.empty()) {
    const char* folder = std::getenv("TENON_DATA");
    if (!folder || !*folder)
      throw std::runtime_error(
          "there is no text to learn: give --data FILE, or set TENON_DATA to a folder that has "
          "tinyshakespeare/input.txt");
    path = std::string(folder) + "/tinyshakespeare/input.txt";
  }
  const std::string text = tenon::data::read_text(path);
  tenon::data::CharVocabulary vocabulary(text);
  const Tensor tokens = vocabulary.encode_tensor(text);
  const int64_t cut = tokens.size(0) * 9 / 10;
  return {vocabulary, tenon::data::TextDataset(tokens.narrow(0, 0, cut), block_size),
          tenon::data::TextDataset(tokens.narrow(0, cut, tokens.size(0) - cut), block_size)};
}

// The cross entropy of scores (n, t, characters) for what follows each character (n, t).
inline Tensor text_loss(const Tensor& scores, const Tensor& next) {
  return tenon::cross_entropy(scores.flatten(0, 1), next.flatten());
}

// The mean loss of a character in `set`, in nats.
template <class Net>
double evaluate_text(Net& net, const tenon::data::TextDataset& set, tenon::Device device) {
  tenon::NoGrad guard;
  net.eval();
  Tensor total = tenon::zeros({}, {.device = device});
  for (auto [x, y] : tenon::data::DataLoader(set, {.batch_size = 64, .shuffle = false}))
    total = total + text_loss(net(x.to(device)), y.to(device)) * static_cast<double>(x.size(0));
  return total.item() / static_cast<double>(set.size());
}

// Prints the prompt and `length` characters that the model draws, one after the other.
template <class Net>
void write_text(Net& net, const Text& text, const std::string& prompt, int64_t length,
                tenon::Device device) {
  tenon::NoGrad guard;
  net.eval();
  std::printf("\n%s", prompt.c_str());
  Tensor tokens = text.vocabulary.encode_tensor(prompt).unsqueeze(0).to(device);  // (1, t)
  for (int64_t i = 0; i < length; ++i) {
    const int64_t read = std::min(tokens.size(1), text.train.block_size());
    const Tensor scores = net(tokens.narrow(1, tokens.size(1) - read, read)).select(1, -1);
    const Tensor next = tenon::multinomial(tenon::softmax(scores, -1), 1);
    std::printf("%s", text.vocabulary.decode(next).c_str());
    tokens = tenon::cat({tokens, next}, 1);
  }
  std::printf("\n");
}

// Trains a model of characters, reports its validation loss and writes text.
template <class Net>
void train_and_write(Net& net, const Text& text, const Options& o, const Recipe& recipe,
                     const std::string& prompt, int64_t length) {
  net.to(o.devices.front());
  load_into(net, o);
  text.vocabulary.encode(prompt);  // throws for what the model cannot read, before it is trained
  if (prompt.empty()) throw std::runtime_error("--prompt is empty; give at least one character");
  tenon::nn::DataParallel shared(net, o.devices);  // the same parameters
  std::printf("%lld parameters, %lld characters to learn\n",
              static_cast<long long>(net.num_parameters()),
              static_cast<long long>(text.train.tokens().size(0)));
  if (o.epochs > 0) {
    tenon::optim::AdamW optimizer(net.parameters(),
                                  {.lr = o.lr, .betas = {0.9, 0.99}, .weight_decay = 0.1});
    train(shared, optimizer, text.train, o, recipe,
          [&](const Tensor& x, const Tensor& y) { return text_loss(shared(x), y); });
  }
  if (!o.save.empty()) tenon::save(o.save, net);
  std::printf("validation loss %.4f\n", evaluate_text(shared, text.valid, o.devices.front()));
  write_text(net, text, prompt, length, o.devices.front());
}

}  // namespace example
