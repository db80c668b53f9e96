// A recurrent network (long short-term memory) that learns a text character by character, and then
// writes some.
#pragma once

#include <tenon/tenon.h>

struct CharLstm : tenon::nn::Module<CharLstm> {
  static constexpr int64_t kBlock = 64, kWidth = 256;
  int64_t characters;
  tenon::nn::Embedding meaning{characters, 64};
  tenon::nn::LSTM memory{64, kWidth, {.num_layers = 2, .batch_first = true}};
  tenon::nn::Linear score{kWidth, characters};

  // Returns scores (n, t, characters) of what follows each token of (n, t).
  tenon::Tensor forward(const tenon::Tensor& tokens) {
    const auto [states, hidden, cell] = memory(meaning(tokens));
    return score(states);
  }
};
