#include <algorithm>
#include <utility>

#include <tenon/core/base/number_text.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/recurrent/layers.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// The weights of one direction of one layer.
struct Weights {
  Tensor ih, hh, bias_ih, bias_hh, hr;
};

// The list of weights, checked.
class AllWeights {
 public:
  AllWeights(const RecurrentKind& kind, const std::vector<Tensor>& list,
             const RecurrentOptions& options, int64_t width)
      : kind_(kind), list_(list), directions_(options.bidirectional ? 2 : 1) {
    const bool too_many = options.num_layers > 1 && std::cmp_less(list.size(), options.num_layers);
    if (options.num_layers < 1 || too_many)
      throw ValueError(fmt::format(
          "{}: num_layers is {}; it must be at least 1, and each layer has two weights or more. "
          "Found {} weights",
          kind.name, options.num_layers, list.size()));
    const auto count = static_cast<size_t>(options.num_layers * directions_);
    each_ = list.size() % count ? 0 : list.size() / count;
    projected_ = kind.projects && (each_ == 3 || each_ == 5);
    if (!projected_ && each_ != 2 && each_ != 4)
      throw ValueError(fmt::format(
          "{}: {} layers of {} directions have {} weights, or {} with biases; found {}{}",
          kind.name, options.num_layers, directions_, 2 * count, 4 * count, list.size(),
          kind.projects ? fmt::format(" (with projections there are {} more)", count) : ""));
    for (size_t i = 0; i < list.size(); ++i) require_tensor(kind.name, list[i], "weights", i);
    for (size_t i : {size_t{0}, size_t{1}})
      if (shape_of(list[i]).size() != 2)
        throw ShapeError(fmt::format("{}: {} has two dimensions, found shape {}", kind.name,
                                     i ? "weight_hh" : "weight_ih", shape_of(list[i])));
    output_ = shape_of(list[1])[1];
    hidden_ = projected_ ? shape_of(list[0])[0] / kind.gates : output_;
    for (size_t i = 0; i < count; ++i)
      require(at(i), i < static_cast<size_t>(directions_) ? width : directions_ * output_, i);
  }

  // The width of state `i`, of which the first is the output.
  int64_t width_of_state(size_t i) const { return i == 0 ? output_ : hidden_; }
  int64_t directions() const { return directions_; }
  Weights at(size_t i) const {
    const Tensor* w = &list_[i * each_];
    const bool biased = each_ >= 4;
    return {w[0], w[1], biased ? w[2] : Tensor(), biased ? w[3] : Tensor(),
            projected_ ? w[each_ - 1] : Tensor()};
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
    one(w.hh, "weight_hh", {rows, output_});
    one(w.bias_ih, "bias_ih", {rows});
    one(w.bias_hh, "bias_hh", {rows});
    one(w.hr, "weight_hr", {output_, hidden_});
  }

  const RecurrentKind& kind_;
  const std::vector<Tensor>& list_;
  int64_t directions_, output_ = 0, hidden_ = 0;
  size_t each_ = 0;
  bool projected_ = false;
};

// One direction of one layer over its input, as run_sequence.
Tensor run_direction(const RecurrentKind& kind, const Tensor& x, const Weights& w, bool reverse,
                     std::vector<Tensor>& states) {
  // What comes from the input is one product for all steps.
  const Tensor gates = linear(x, w.ih, w.bias_ih);
  if (!w.hr.defined()) return run_sequence(kind, gates, w.hh, w.bias_hh, reverse, states);
  return run_projected(w.bias_hh.defined() ? add(gates, w.bias_hh) : gates, w.hh, w.hr, reverse,
                       states);
}

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

std::vector<Tensor> in_order(const Tensor& x, bool reverse) {
  std::vector<Tensor> steps = unbind(x);
  if (reverse) std::reverse(steps.begin(), steps.end());
  return steps;
}

Tensor by_time(std::vector<Tensor> steps, bool reverse) {
  if (reverse) std::reverse(steps.begin(), steps.end());
  return stack(steps);
}

RecurrentResult run_layers(const RecurrentKind& kind, Tensor x, std::span<const Tensor> initial,
                           const std::vector<Tensor>& weights, const RecurrentOptions& options) {
  if (x.defined() && x.dim() == 2) return run_unbatched(kind, x, initial, weights, options);
  require_options(kind, x, options);
  if (options.batch_first) x = x.transpose(0, 1);
  const int64_t batch = shape_of(x)[1];
  const AllWeights all(kind, weights, options, shape_of(x)[2]);
  const int64_t count = options.num_layers * all.directions();
  const auto shape_of_state = [&](size_t i) { return Shape{count, batch, all.width_of_state(i)}; };
  for (size_t i = 0; i < initial.size(); ++i)
    if (initial[i].defined() && !(shape_of(initial[i]) == shape_of_state(i)))
      throw ShapeError(fmt::format("{}: the initial state has shape {}, but must be {}", kind.name,
                                   shape_of(initial[i]), shape_of_state(i)));
  for (auto& s : initial)
    if (s.defined() && dtype_of(s) != dtype_of(x))
      throw DTypeError(fmt::format("{}: the input is {}, the initial state {}; {}", kind.name,
                                   dtype_of(x), dtype_of(s),
                                   conversion_to(dtype_of(x), "the state")));
  for (auto& w : weights)
    if (dtype_of(w) != dtype_of(x))
      throw DTypeError(fmt::format("{}: the input is {}, a weight {}; {}", kind.name, dtype_of(x),
                                   dtype_of(w), conversion_to(dtype_of(w), "the input")));
  std::vector<Tensor> zero;
  for (size_t i = 0; i < kind.states; ++i)
    zero.push_back(
        zeros({batch, all.width_of_state(i)}, {.dtype = dtype_of(x), .device = x.device()}));
  std::vector<std::vector<Tensor>> last(kind.states);
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < all.directions(); ++d) {
      const int64_t i = layer * all.directions() + d;
      std::vector<Tensor> states;
      for (size_t s = 0; s < kind.states; ++s)
        states.push_back(initial[s].defined() ? initial[s].select(0, i) : zero[s]);
      outputs.push_back(run_direction(kind, x, all.at(static_cast<size_t>(i)), d == 1, states));
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
