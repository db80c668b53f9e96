// Recurrent networks over sequences. Every function throws a ValueError for an undefined tensor
// that is not optional, and a ShapeError or DTypeError for tensors that do not fit.
#pragma once

#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon {

struct RecurrentOptions {
  int64_t num_layers = 1;
  // A second network reads the sequence from its end, and its outputs are appended.
  bool bidirectional = false;
  bool batch_first = false;  // x and the result are (batch, length, …), not (length, batch, …)
  double dropout = 0;        // of the outputs of all layers but the last, while training
  bool training = false;
};

// The weights are listed as PyTorch does, for each layer and each of its directions: weight_ih
// (gates hidden, input), weight_hh (gates hidden, hidden), and, if there are biases, bias_ih and
// bias_hh (gates hidden). `input` is the width of x in the first layer, and hidden times the number
// of directions in the others.
//
// x is (length, batch, width). The states are (layers directions, batch, hidden); undefined ones
// are zeros. The result is (length, batch, directions hidden), from the last layer, and with it
// come the states after the last step. Without a batch, x is (length, width), the states are
// (layers directions, hidden), and so are those that are returned.

// h = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh), or relu instead of tanh (Elman, 1990).
// Returns the result and h.
TENON_API std::pair<Tensor, Tensor> rnn(const Tensor& x, const Tensor& h0,
                                        const std::vector<Tensor>& weights,
                                        std::string_view nonlinearity = "tanh",
                                        const RecurrentOptions& options = {});

// Long short-term memory (Hochreiter and Schmidhuber, 1997), gates in the order i, f, g, o:
// c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c). Returns the result, h and c. With
// a weight_hr (proj, hidden) as the last weight of each direction, the output and h are weight_hr h
// of width proj (Sak et al., arXiv:1402.1128), which weight_hh (4 hidden, proj) and the next layer
// read; c keeps its width.
TENON_API std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& x, const Tensor& h0,
                                                  const Tensor& c0,
                                                  const std::vector<Tensor>& weights,
                                                  const RecurrentOptions& options = {});

// Gated recurrent units (Cho et al., arXiv:1406.1078), gates in the order r, z, n:
// n = tanh(n_x + sigmoid(r) n_h), h = (1 - sigmoid(z)) n + sigmoid(z) h. Returns the result and h.
TENON_API std::pair<Tensor, Tensor> gru(const Tensor& x, const Tensor& h0,
                                        const std::vector<Tensor>& weights,
                                        const RecurrentOptions& options = {});

// One step of an LSTM from its gates (batch, 4 hidden), in the order i, f, g, o, and the cell
// (batch, hidden). Returns h and the new cell.
TENON_API std::pair<Tensor, Tensor> lstm_step(const Tensor& gates, const Tensor& c);

// One step of a GRU from what its gates get from the input and from the hidden state, both
// (batch, 3 hidden) in the order r, z, n, and the hidden state (batch, hidden). Returns the new
// one.
TENON_API Tensor gru_step(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& h);

}  // namespace tenon
