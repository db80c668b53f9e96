#include <cmath>

#include <tenon/core/format.h>
#include <tenon/core/ops/recurrent.h>
#include <tenon/modules/init.h>
#include <tenon/modules/recurrent.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

namespace {

// "weight_ih_l0", …, in the order in which PyTorch lists them.
std::vector<std::string> names_of(const RecurrentLayerOptions& o) {
  std::vector<std::string> names;
  for (int64_t layer = 0; layer < o.num_layers; ++layer)
    for (const char* direction : {"", "_reverse"}) {
      if (*direction && !o.bidirectional) continue;
      std::vector<const char*> kinds = {"weight_ih", "weight_hh"};
      if (o.bias) kinds.insert(kinds.end(), {"bias_ih", "bias_hh"});
      if (o.proj_size > 0) kinds.push_back("weight_hr");
      for (const char* kind : kinds)
        names.push_back(fmt::format("{}_l{}{}", kind, layer, direction));
    }
  return names;
}

tenon::RecurrentOptions options_of(const RecurrentLayerOptions& o, bool training) {
  return {.num_layers = o.num_layers,
          .bidirectional = o.bidirectional,
          .batch_first = o.batch_first,
          .dropout = o.dropout,
          .training = training};
}

}  // namespace

RecurrentState::RecurrentState(const char* layer, int64_t gates, int64_t input, int64_t hidden,
                               const RecurrentLayerOptions& o)
    : input_size(input), hidden_size(hidden), options(o) {
  require(input >= 1, layer, "input_size", static_cast<double>(input), "at least 1");
  require(hidden >= 1, layer, "hidden_size", static_cast<double>(hidden), "at least 1");
  require(o.num_layers >= 1, layer, "num_layers", static_cast<double>(o.num_layers), "at least 1");
  require(o.dropout >= 0 && o.dropout <= 1, layer, "dropout", o.dropout, "from 0 to 1");
  if (gates != 4 && o.proj_size != 0)
    throw ValueError(fmt::format("{}: proj_size is {}, but only an LSTM projects its outputs",
                                 layer, o.proj_size));
  require(o.proj_size >= 0 && o.proj_size < hidden, layer, "proj_size",
          static_cast<double>(o.proj_size), "at least 0 and less than hidden_size");
  const int64_t output = o.proj_size > 0 ? o.proj_size : hidden;
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  const int64_t directions = o.bidirectional ? 2 : 1;
  const auto add = [&](const Shape& shape) {
    weights.push_back(Parameter(init::uniform_(empty(shape, o.tensor), -bound, bound)));
  };
  weights.reserve(static_cast<size_t>(o.num_layers * directions * 5));
  for (int64_t i = 0; i < o.num_layers * directions; ++i) {
    add({gates * hidden, i < directions ? input : directions * output});
    add({gates * hidden, output});
    for (int bias = 0; o.bias && bias < 2; ++bias) add({gates * hidden});
    if (o.proj_size > 0) add({output, hidden});
  }
}

std::vector<Tensor> RecurrentState::tensors() const {
  return std::vector<Tensor>(weights.begin(), weights.end());
}

void RecurrentState::visit(FieldVisitor& v) {
  const auto names = names_of(options);
  for (size_t i = 0; i < weights.size(); ++i) v(names[i], weights[i]);
  v("training", training);
}

std::string RecurrentState::repr_text() const {
  std::string text = fmt::format("{}, {}", input_size, hidden_size);
  if (options.proj_size != 0) text += fmt::format(", proj_size={}", options.proj_size);
  if (options.num_layers != 1) text += fmt::format(", num_layers={}", options.num_layers);
  if (!options.bias) text += ", bias=False";
  if (options.batch_first) text += ", batch_first=True";
  if (options.dropout > 0) text += fmt::format(", dropout={}", repr(options.dropout));
  if (options.bidirectional) text += ", bidirectional=True";
  return text;
}

RNN::RNN(int64_t input, int64_t hidden, const RecurrentLayerOptions& o, std::string kind)
    : RecurrentState("RNN", 1, input, hidden, o), nonlinearity(std::move(kind)) {
  if (nonlinearity != "tanh" && nonlinearity != "relu")
    throw ValueError(
        fmt::format("RNN: nonlinearity is \"tanh\" or \"relu\", found \"{}\"", nonlinearity));
}

std::pair<Tensor, Tensor> RNN::forward(const Tensor& x, const Tensor& h0) {
  return rnn(x, h0, tensors(), nonlinearity, options_of(options, training));
}

std::string RNN::extra_repr() const {
  return repr_text() + (nonlinearity == "relu" ? ", nonlinearity=relu" : "");
}

LSTM::LSTM(int64_t input, int64_t hidden, const RecurrentLayerOptions& o)
    : RecurrentState("LSTM", 4, input, hidden, o) {}

std::tuple<Tensor, Tensor, Tensor> LSTM::forward(const Tensor& x, const Tensor& h0,
                                                 const Tensor& c0) {
  return lstm(x, h0, c0, tensors(), options_of(options, training));
}

GRU::GRU(int64_t input, int64_t hidden, const RecurrentLayerOptions& o)
    : RecurrentState("GRU", 3, input, hidden, o) {}

std::pair<Tensor, Tensor> GRU::forward(const Tensor& x, const Tensor& h0) {
  return gru(x, h0, tensors(), options_of(options, training));
}

}  // namespace tenon::nn
