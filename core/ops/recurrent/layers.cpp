#include <algorithm>

#include <tenon/core/base/number_text.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/recurrent/layers.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// The weights of one direction of one layer.
struct Weights {
  Tensor ih, hh, bias_ih, bias_hh;
};

// The list of weights, checked.
class AllWeights {
 public:
  AllWeights(const RecurrentKind& kind, const std::vector<Tensor>& list,
             const RecurrentOptions& options, int64_t width)
      : kind_(kind), list_(list), directions_(options.bidirectional ? 2 : 1) {
    const auto count = static_cast<size_t>(options.num_layers * directions_);
    if (options.num_layers < 1 || (list.size() != 2 * count && list.size() != 4 * count))
      throw ValueError(fmt::format(
          "{}: {} layers of {} directions have {} weights, or {} with biases; found {}", kind.name,
          options.num_layers, directions_, 2 * count, 4 * count, list.size()));
    each_ = list.size() / count;
    for (size_t i = 0; i < list.size(); ++i) require_tensor(kind.name, list[i], 3 + i);
    if (shape_of(list[1]).size() != 2)
      throw ShapeError(fmt::format("{}: weight_hh has two dimensions, found shape {}", kind.name,
                                   shape_of(list[1])));
    hidden_ = shape_of(list[1])[1];
    for (size_t i = 0; i < count; ++i)
      require(at(i), i < static_cast<size_t>(directions_) ? width : directions_ * hidden_, i);
  }

  int64_t hidden() const { return hidden_; }
  int64_t directions() const { return directions_; }
  Weights at(size_t i) const {
    const Tensor* w = &list_[i * each_];
    return {w[0], w[1], each_ == 4 ? w[2] : Tensor(), each_ == 4 ? w[3] : Tensor()};
  }

 private:
  void require(const Weights& w, int64_t width, size_t i) const {
    const auto one = [&](const Tensor& t, const char* what, const Shape& wanted) {
      if (t.defined() && !(shape_of(t) == wanted))
        throw ShapeError(fmt::format("{}: {} of layer {}{} has shape {}, but must be {}",
                                     kind_.name, what, i / static_cast<size_t>(directions_),
                                     i % static_cast<size_t>(directions_) ? " (reverse)" : "",
                                     shape_of(t), wanted));
    };
    const int64_t rows = kind_.gates * hidden_;
    const Shape& first = shape_of(w.ih);
    if (i < static_cast<size_t>(directions_) && first.size() == 2 && first[0] == rows &&
        first[1] != width)
      throw ShapeError(fmt::format(
          "{}: the input has {} features a step, but weight_ih of layer 0, of shape {}, takes {}",
          kind_.name, width, first, first[1]));
    one(w.ih, "weight_ih", {rows, width});
    one(w.hh, "weight_hh", {rows, hidden_});
    one(w.bias_ih, "bias_ih", {rows});
    one(w.bias_hh, "bias_hh", {rows});
  }

  const RecurrentKind& kind_;
  const std::vector<Tensor>& list_;
  int64_t directions_, hidden_ = 0;
  size_t each_ = 0;
};

void require_options(const RecurrentKind& kind, const Tensor& x, const RecurrentOptions& options) {
  require_tensor(kind.name, x);
  if (shape_of(x).size() != 3)
    throw ShapeError(fmt::format(
        "{}: needs an input {}, or (length, width) without a batch; found shape {}", kind.name,
        options.batch_first ? "(batch, length, width)" : "(length, batch, width)", shape_of(x)));
  if (!is_floating_point(dtype_of(x)))
    throw DTypeError(fmt::format("{}: needs a floating input, found {}; {}", kind.name, dtype_of(x),
                                 conversion_to(f32)));
  if (shape_of(x)[options.batch_first ? 1 : 0] == 0)
    throw ShapeError(fmt::format("{}: the sequence is empty: {}", kind.name, shape_of(x)));
  if (!(options.dropout >= 0 && options.dropout <= 1))
    throw ValueError(fmt::format("{}: dropout must lie in [0, 1], found {}", kind.name,
                                 number_text(options.dropout)));
}

// A sequence (length, width) is a batch of one.
RecurrentResult run_unbatched(const RecurrentKind& kind, const Tensor& x,
                              std::span<const Tensor> initial, const std::vector<Tensor>& weights,
                              const RecurrentOptions& options) {
  std::vector<Tensor> states;
  for (auto& s : initial) {
    if (s.defined() && shape_of(s).size() != 2)
      throw ShapeError(fmt::format(
          "{}: an input without a batch, {}, needs an initial state (layers directions, hidden); "
          "found {}",
          kind.name, shape_of(x), shape_of(s)));
    states.push_back(s.defined() ? s.unsqueeze(1) : s);
  }
  const int64_t batch = options.batch_first ? 0 : 1;
  auto result = run_layers(kind, x.unsqueeze(batch), states, weights, options);
  result.y = result.y.squeeze(batch);
  for (auto& s : result.states) s = s.squeeze(1);
  return result;
}

}  // namespace

RecurrentResult run_layers(const RecurrentKind& kind, Tensor x, std::span<const Tensor> initial,
                           const std::vector<Tensor>& weights, const RecurrentOptions& options) {
  if (x.defined() && x.dim() == 2) return run_unbatched(kind, x, initial, weights, options);
  require_options(kind, x, options);
  if (options.batch_first) x = x.transpose(0, 1);
  const int64_t batch = shape_of(x)[1];
  const AllWeights all(kind, weights, options, shape_of(x)[2]);
  const int64_t count = options.num_layers * all.directions();
  const Shape state_shape = {count, batch, all.hidden()};
  for (auto& s : initial)
    if (s.defined() && !(shape_of(s) == state_shape))
      throw ShapeError(fmt::format("{}: the initial state has shape {}, but must be {}", kind.name,
                                   shape_of(s), state_shape));
  for (auto& s : initial)
    if (s.defined() && dtype_of(s) != dtype_of(x))
      throw DTypeError(fmt::format("{}: the input is {}, the initial state {}; {}", kind.name,
                                   dtype_of(x), dtype_of(s),
                                   conversion_to(dtype_of(x), "the state")));
  for (auto& w : weights)
    if (dtype_of(w) != dtype_of(x))
      throw DTypeError(fmt::format("{}: the input is {}, a weight {}; {}", kind.name, dtype_of(x),
                                   dtype_of(w), conversion_to(dtype_of(w), "the input")));
  const Tensor zero = zeros({batch, all.hidden()}, {.dtype = dtype_of(x), .device = x.device()});
  std::vector<std::vector<Tensor>> last(kind.states);
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < all.directions(); ++d) {
      const int64_t i = layer * all.directions() + d;
      std::vector<Tensor> states;
      for (size_t s = 0; s < kind.states; ++s)
        states.push_back(initial[s].defined() ? initial[s].select(0, i) : zero);
      const Weights w = all.at(static_cast<size_t>(i));
      // What comes from the input is one product for all steps.
      outputs.push_back(
          run_sequence(kind, linear(x, w.ih, w.bias_ih), w.hh, w.bias_hh, d == 1, states));
      for (size_t s = 0; s < kind.states; ++s) last[s].push_back(states[s]);
    }
    x = outputs.size() == 1 ? outputs[0] : cat(outputs, -1);
    if (options.training && options.dropout > 0 && layer + 1 < options.num_layers)
      x = dropout(x, options.dropout);
  }
  RecurrentResult result{options.batch_first ? x.transpose(0, 1) : x, {}};
  for (auto& s : last) result.states.push_back(stack(s));
  return result;
}

}  // namespace tenon
