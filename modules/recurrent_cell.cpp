// Single steps of recurrent layers (modules/recurrent.h).
#include <cmath>

#include <tenon/core/format.h>
#include <tenon/core/ops/activation.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/recurrent.h>
#include <tenon/core/ops/shape.h>
#include <tenon/modules/init.h>
#include <tenon/modules/recurrent.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

RecurrentCell::RecurrentCell(const char* layer, int64_t gates, int64_t input, int64_t hidden,
                             const WeightOptions& o)
    : input_size(input), hidden_size(hidden) {
  require(input >= 1, layer, "input_size", static_cast<double>(input), "at least 1");
  require(hidden >= 1, layer, "hidden_size", static_cast<double>(hidden), "at least 1");
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  const auto make = [&](const Shape& shape) {
    return Parameter(init::uniform_(empty(shape, o.tensor), -bound, bound));
  };
  weight_ih = make({gates * hidden, input});
  weight_hh = make({gates * hidden, hidden});
  if (!o.bias) return;
  bias_ih = make({gates * hidden});
  bias_hh = make({gates * hidden});
}

void RecurrentCell::prepare(const char* layer, const Tensor& x,
                            std::initializer_list<Tensor*> states) const {
  const Shape shape = x.shape();
  if (shape.size() < 1 || shape.size() > 2 || shape.back() != input_size)
    throw ShapeError(
        fmt::format("{}: expected an input of shape (N, {}) or ({},), got one of shape {}", layer,
                    input_size, input_size, shape));
  Shape wanted = shape;
  wanted[-1] = hidden_size;
  for (Tensor* state : states) {
    if (!state->defined()) *state = zeros(wanted, {.dtype = x.dtype(), .device = x.device()});
    if (!(state->shape() == wanted))
      throw ShapeError(
          fmt::format("{}: a state has shape {}, but must be {} for an input of shape {}", layer,
                      state->shape(), wanted, shape));
  }
}

void RecurrentCell::visit(FieldVisitor& v) {
  v("weight_ih", weight_ih)("weight_hh", weight_hh)("bias_ih", bias_ih)("bias_hh", bias_hh);
}

std::string RecurrentCell::repr_text() const {
  return fmt::format("{}, {}{}", input_size, hidden_size, bias_ih.defined() ? "" : ", bias=False");
}

RNNCell::RNNCell(int64_t input, int64_t hidden, const WeightOptions& o, std::string kind)
    : RecurrentCell("RNNCell", 1, input, hidden, o), nonlinearity(std::move(kind)) {
  if (nonlinearity != "tanh" && nonlinearity != "relu")
    throw ValueError(
        fmt::format("RNNCell: nonlinearity is \"tanh\" or \"relu\", found \"{}\"", nonlinearity));
}

Tensor RNNCell::forward(const Tensor& x, Tensor h) const {
  prepare("RNNCell", x, {&h});
  const Tensor sum = linear(x, weight_ih, bias_ih) + linear(h, weight_hh, bias_hh);
  return nonlinearity == "relu" ? relu(sum) : tanh(sum);
}

std::string RNNCell::extra_repr() const {
  return repr_text() + (nonlinearity == "relu" ? ", nonlinearity=relu" : "");
}

// The steps take rows, of which one without a batch is the only one.
std::pair<Tensor, Tensor> LSTMCell::forward(const Tensor& x, Tensor h, Tensor c) const {
  prepare("LSTMCell", x, {&h, &c});
  if (x.dim() == 1) {
    const auto [h1, c1] = forward(unsqueeze(x, 0), unsqueeze(h, 0), unsqueeze(c, 0));
    return {squeeze(h1, 0), squeeze(c1, 0)};
  }
  return lstm_step(linear(x, weight_ih, bias_ih) + linear(h, weight_hh, bias_hh), c);
}

Tensor GRUCell::forward(const Tensor& x, Tensor h) const {
  prepare("GRUCell", x, {&h});
  if (x.dim() == 1) return squeeze(forward(unsqueeze(x, 0), unsqueeze(h, 0)), 0);
  return gru_step(linear(x, weight_ih, bias_ih), linear(h, weight_hh, bias_hh), h);
}

}  // namespace tenon::nn
