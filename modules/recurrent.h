// Recurrent layers over sequences, and single steps of them.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tenon/modules/module.h>

namespace tenon::nn {

struct RecurrentLayerOptions {
  int64_t num_layers = 1;    // at least 1
  bool bias = true;          // whether to add biases
  bool batch_first = false;  // inputs and results are (batch, length, …), not (length, batch, …)
  // The dropout, in training, of the outputs of all layers but the last; in [0, 1].
  double dropout = 0;
  bool bidirectional = false;  // whether a second network reads the sequence from its end
  // The width, below hidden_size, to which an LSTM projects its outputs and hidden states; 0 means
  // that it does not. Other layers take only 0.
  int64_t proj_size = 0;
  TensorOptions tensor = {};  // dtype and device of the parameters
};

namespace detail {
inline RecurrentLayerOptions with_layers(RecurrentLayerOptions options, int64_t num_layers) {
  options.num_layers = num_layers;
  return options;
}
}  // namespace detail

// The part that all recurrent layers have: the weights by PyTorch's names, "weight_ih_l0",
// "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "…_l0_reverse", "…_l1", all of which start uniform in
// (-k, k) with k = 1 / sqrt(hidden_size). An input is (length, batch, input_size), a state
// (layers directions, batch, hidden_size), and the result (length, batch, directions hidden_size);
// all of them may come without a batch, and have the dtype of the weights. States that are not
// given are zeros. Each layer has a constructor that takes num_layers behind the sizes, as in
// PyTorch: nn::LSTM(16, 32, 2, {.batch_first = true}). Constructors throw a ValueError for an
// option outside its range; calls throw a ShapeError or DTypeError for tensors that do not fit.
struct TENON_API RecurrentState {
  // Makes the weights for `gates` times hidden_size rows; errors begin with `layer`.
  RecurrentState(const char* layer, int64_t gates, int64_t input_size, int64_t hidden_size,
                 const RecurrentLayerOptions& options);

  int64_t input_size, hidden_size;
  RecurrentLayerOptions options;
  std::vector<Parameter> weights;  // those named above, in that order, layer by layer
  bool training = true;

 protected:
  std::vector<Tensor> tensors() const;
  void visit(FieldVisitor& v);
  std::string repr_text() const;
};

// Computes h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or with relu instead of tanh, at each place of
// a sequence (Elman 1990). The constructor throws a ValueError for another `nonlinearity`.
struct TENON_API RNN final : Module<RNN>, RecurrentState {
  RNN(int64_t input_size, int64_t hidden_size, const RecurrentLayerOptions& options = {},
      std::string nonlinearity = "tanh");
  // Makes the layer with num_layers, whatever the options say.
  template <std::integral N>
  RNN(int64_t input_size, int64_t hidden_size, N num_layers,
      const RecurrentLayerOptions& options = {}, std::string nonlinearity = "tanh")
      : RNN(input_size, hidden_size, detail::with_layers(options, num_layers),
            std::move(nonlinearity)) {}
  // Returns the result (length, batch, directions hidden_size) and the last state, of the shape of
  // h0: (layers directions, batch, hidden_size).
  std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& h0 = Tensor());
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const;

  std::string nonlinearity;  // "tanh" or "relu"
};

// Computes long short-term memory (Hochreiter and Schmidhuber, 1997), by tenon::lstm. With
// proj_size the result and the hidden states are that wide, "weight_hh_l0" is (4 hidden_size,
// proj_size), and there are "weight_hr_l0" (proj_size, hidden_size), … (Sak et al.,
// arXiv:1402.1128).
struct TENON_API LSTM final : Module<LSTM>, RecurrentState {
  LSTM(int64_t input_size, int64_t hidden_size, const RecurrentLayerOptions& options = {});
  // Makes the layer with num_layers, whatever the options say.
  template <std::integral N>
  LSTM(int64_t input_size, int64_t hidden_size, N num_layers,
       const RecurrentLayerOptions& options = {})
      : LSTM(input_size, hidden_size, detail::with_layers(options, num_layers)) {}
  // Returns the result (length, batch, directions hidden_size), the last hidden state and the last
  // cell, of the shapes of h0 and c0: (layers directions, batch, hidden_size).
  std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& x, const Tensor& h0 = Tensor(),
                                             const Tensor& c0 = Tensor());
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Computes gated recurrent units (Cho et al., arXiv:1406.1078), by tenon::gru.
struct TENON_API GRU final : Module<GRU>, RecurrentState {
  GRU(int64_t input_size, int64_t hidden_size, const RecurrentLayerOptions& options = {});
  // Makes the layer with num_layers, whatever the options say.
  template <std::integral N>
  GRU(int64_t input_size, int64_t hidden_size, N num_layers,
      const RecurrentLayerOptions& options = {})
      : GRU(input_size, hidden_size, detail::with_layers(options, num_layers)) {}
  // Returns the result (length, batch, directions hidden_size) and the last state, of the shape of
  // h0: (layers directions, batch, hidden_size).
  std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& h0 = Tensor());
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// ---- one step ----

// The part that all cells have: the parameters "weight_ih" (gates hidden_size, input_size),
// "weight_hh" (gates hidden_size, hidden_size), "bias_ih" and "bias_hh" (gates hidden_size), which
// start as those of the layers. An input is (batch, input_size) or (input_size), and a state
// (batch, hidden_size) or (hidden_size); a state that is not given is zeros. Constructors throw a
// ValueError for a size below 1; calls throw a ShapeError or DTypeError for tensors that do not
// fit.
struct TENON_API RecurrentCell {
  // Makes the parameters for `gates` times hidden_size rows; errors begin with `layer`.
  RecurrentCell(const char* layer, int64_t gates, int64_t input_size, int64_t hidden_size,
                const WeightOptions& options);

  int64_t input_size, hidden_size;
  Parameter weight_ih, weight_hh, bias_ih,
      bias_hh;  // the biases are undefined without options.bias

 protected:
  // Checks the input and the states, and makes zeros of states that are undefined.
  void prepare(const char* layer, const Tensor& x, std::initializer_list<Tensor*> states) const;
  void visit(FieldVisitor& v);
  std::string repr_text() const;
};

// Returns the next state h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or with relu instead of tanh, of
// shape (batch, hidden_size) or (hidden_size). The constructor throws a ValueError for another
// `nonlinearity`.
struct TENON_API RNNCell final : Module<RNNCell>, RecurrentCell {
  RNNCell(int64_t input_size, int64_t hidden_size, const WeightOptions& options = {},
          std::string nonlinearity = "tanh");
  Tensor forward(const Tensor& x, Tensor h = Tensor()) const;
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const;

  std::string nonlinearity;  // "tanh" or "relu"
};

// Returns the hidden state and the cell after one step of an LSTM, each of shape
// (batch, hidden_size) or (hidden_size).
struct TENON_API LSTMCell final : Module<LSTMCell>, RecurrentCell {
  LSTMCell(int64_t input_size, int64_t hidden_size, const WeightOptions& options = {})
      : RecurrentCell("LSTMCell", 4, input_size, hidden_size, options) {}
  std::pair<Tensor, Tensor> forward(const Tensor& x, Tensor h = Tensor(),
                                    Tensor c = Tensor()) const;
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

// Returns the hidden state after one step of a GRU, of shape (batch, hidden_size) or (hidden_size).
struct TENON_API GRUCell final : Module<GRUCell>, RecurrentCell {
  GRUCell(int64_t input_size, int64_t hidden_size, const WeightOptions& options = {})
      : RecurrentCell("GRUCell", 3, input_size, hidden_size, options) {}
  Tensor forward(const Tensor& x, Tensor h = Tensor()) const;
  void fields(FieldVisitor& v) { visit(v); }
  std::string extra_repr() const { return repr_text(); }
};

}  // namespace tenon::nn
