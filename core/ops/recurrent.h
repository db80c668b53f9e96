// Recurrent networks over sequences. All tensors of a call have one floating dtype, which the
// results have, too. Every function throws a ValueError for an undefined tensor that is not
// optional, and a ShapeError or DTypeError for tensors that do not fit.
#pragma once

#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon {

// The options of rnn, lstm and gru.
struct RecurrentOptions {
  int64_t num_layers = 1;  // how many layers there are, each reading the outputs of the one before
  // Whether a second network of each layer reads the sequence from its end; its outputs follow
  // those of the first in the last dimension.
  bool bidirectional = false;
  // Whether x and the result are (batch, length, …) instead of (length, batch, …).
  bool batch_first = false;
  // The probability with which each output of all layers but the last is set to zero in training,
  // as dropout does it, in [0, 1].
  double dropout = 0;
  bool training = false;  // whether dropout is applied
};

// rnn, lstm and gru list the weights as PyTorch does, for each layer and each of its directions:
// weight_ih (gates hidden, input), weight_hh (gates hidden, hidden), and, if there are biases,
// bias_ih and bias_hh (gates hidden), where an rnn has one gate, an lstm four and a gru three.
// `input` is the width of x in the first layer, and hidden times the number of directions in the
// others.
//
// x is (length, batch, width). The states are (layers directions, batch, hidden); undefined ones
// are zeros. The result is (length, batch, directions hidden), from the last layer, and with it
// come the states after the last step. Without a batch, x is (length, width), the result (length,
// directions hidden), and the states are (layers directions, hidden).
//
// They throw a ShapeError for an empty sequence, and a ValueError for a num_layers below 1, another
// number of weights than the layers have, or a dropout outside [0, 1].

// Runs a network with h = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh), or relu instead of
// tanh (Elman, 1990), over x, and returns the result and the last h. Throws a ValueError unless
// `nonlinearity` is "tanh" or "relu".
TENON_API std::pair<Tensor, Tensor> rnn(const Tensor& x, const Tensor& h0,
                                        const std::vector<Tensor>& weights,
                                        std::string_view nonlinearity = "tanh",
                                        const RecurrentOptions& options = {});

// Runs a network of long short-term memory (Hochreiter and Schmidhuber, 1997) over x and returns
// the result, the last h and the last c. The gates are in the order i, f, g, o: c = sigmoid(f) c +
// sigmoid(i) tanh(g), h = sigmoid(o) tanh(c). With a weight_hr (proj, hidden) as the last weight of
// each direction, the output and h are weight_hr h of width proj (Sak et al., arXiv:1402.1128),
// which weight_hh (4 hidden, proj) and the next layer read; c keeps its width.
TENON_API std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& x, const Tensor& h0,
                                                  const Tensor& c0,
                                                  const std::vector<Tensor>& weights,
                                                  const RecurrentOptions& options = {});

// Runs a network of gated recurrent units (Cho et al., arXiv:1406.1078) over x and returns the
// result and the last h. The gates are in the order r, z, n: n = tanh(n_x + sigmoid(r) n_h), h = (1
// - sigmoid(z)) n + sigmoid(z) h, where n_x comes from x and n_h from h.
TENON_API std::pair<Tensor, Tensor> gru(const Tensor& x, const Tensor& h0,
                                        const std::vector<Tensor>& weights,
                                        const RecurrentOptions& options = {});

// Takes one step of an LSTM from its gates (batch, 4 hidden), before their sigmoid and tanh, in the
// order i, f, g, o, and the cell (batch, hidden). Returns h and the new cell, both (batch, hidden).
TENON_API std::pair<Tensor, Tensor> lstm_step(const Tensor& gates, const Tensor& c);

// Takes one step of a GRU from what its gates get from the input and from the hidden state, both
// (batch, 3 hidden) in the order r, z, n, and the hidden state (batch, hidden). Returns the new
// hidden state (batch, hidden).
TENON_API Tensor gru_step(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& h);

}  // namespace tenon
