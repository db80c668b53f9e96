#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/recurrent.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(recurrent)

using namespace tenon;
using namespace tenon::test;

namespace {

std::vector<Tensor> random_weights(int64_t gates, int64_t width, int64_t hidden) {
  return {rand({gates * hidden, width}) - 0.5, rand({gates * hidden, hidden}) - 0.5,
          rand({gates * hidden}) - 0.5, rand({gates * hidden}) - 0.5};
}

}  // namespace

BOOST_AUTO_TEST_CASE(states_that_are_not_given_are_zero) {
  const Tensor x = rand({3, 2, 4}), zero = zeros({1, 2, 5});
  const auto w = random_weights(4, 4, 5);
  const auto [y, h, c] = lstm(x, Tensor(), Tensor(), w);
  const auto [y0, h0, c0] = lstm(x, zero, zero, w);
  BOOST_TEST((y.to_vector<float>() == y0.to_vector<float>()));
  BOOST_TEST((c.to_vector<float>() == c0.to_vector<float>()));
  BOOST_TEST((h.select(0, 0).to_vector<float>() == y.select(0, 2).to_vector<float>()));
}

// A sequence may go on where it ended.
BOOST_AUTO_TEST_CASE(two_halves_are_the_whole) {
  const Tensor x = rand({6, 2, 4});
  const auto w = random_weights(3, 4, 5);
  const auto [y, h] = gru(x, Tensor(), w);
  const auto [y1, h1] = gru(x.narrow(0, 0, 2), Tensor(), w);
  const auto [y2, h2] = gru(x.narrow(0, 2, 4), h1, w);
  const Tensor joined = cat({y1, y2});
  BOOST_TEST(amax(abs(joined - y)).item<float>() < 1e-5);
  BOOST_TEST(amax(abs(h2 - h)).item<float>() < 1e-5);
}

BOOST_AUTO_TEST_CASE(dropout_is_for_training_and_between_layers) {
  const Tensor x = rand({3, 2, 5});
  auto w = random_weights(1, 5, 5);
  const auto one = rnn(x, Tensor(), w).first.to_vector<float>();
  const RecurrentOptions trains = {.dropout = 0.9, .training = true};
  BOOST_TEST((rnn(x, Tensor(), w, "tanh", trains).first.to_vector<float>() == one));
  const auto again = random_weights(1, 5, 5);
  w.insert(w.end(), again.begin(), again.end());
  const auto two = rnn(x, Tensor(), w, "tanh", {.num_layers = 2}).first.to_vector<float>();
  BOOST_TEST(
      (rnn(x, Tensor(), w, "tanh", {.num_layers = 2, .dropout = 0.9}).first.to_vector<float>() ==
       two));
  BOOST_TEST((rnn(x, Tensor(), w, "tanh", {.num_layers = 2, .dropout = 0.9, .training = true})
                  .first.to_vector<float>() != two));
}

namespace {

using Tensors = std::vector<Tensor>;

// Both directions of one layer, made of recorded single steps. `args`: x, the states, then the
// weights of both directions.
struct ByHand {
  size_t states;
  bool gru;

  Tensors direction(const Tensor& x, Tensors state, const Tensor* w, bool reverse) const {
    const int64_t length = x.size(0);
    Tensors outputs(static_cast<size_t>(length));
    for (int64_t i = 0; i < length; ++i) {
      const int64_t t = reverse ? length - 1 - i : i;
      const Tensor input = linear(x.select(0, t), w[0], w[2]),
                   hidden = linear(state[0], w[1], w[3]);
      if (gru) {
        state = {gru_step(input, hidden, state[0])};
      } else if (states == 2) {
        const auto [h, c] = lstm_step(input + hidden, state[1]);
        state = {h, c};
      } else {
        state = {relu(input + hidden)};
      }
      outputs[static_cast<size_t>(t)] = state[0];
    }
    state.insert(state.begin(), stack(outputs));
    return state;
  }
  Tensors operator()(const Tensors& args) const {
    Tensors first, second;
    for (size_t s = 0; s < states; ++s) {
      first.push_back(args[1 + s].select(0, 0));
      second.push_back(args[1 + s].select(0, 1));
    }
    const Tensors a = direction(args[0], first, &args[1 + states], false),
                  b = direction(args[0], second, &args[5 + states], true);
    Tensors result = {cat({a[0], b[0]}, -1)};
    for (size_t s = 0; s < states; ++s) result.push_back(stack({a[1 + s], b[1 + s]}));
    return result;
  }
};

Tensors call(const ByHand& kind, const Tensors& args) {
  const RecurrentOptions both = {.bidirectional = true};
  const Tensors weights(args.begin() + 1 + static_cast<std::ptrdiff_t>(kind.states), args.end());
  if (kind.gru) {
    const auto [y, h] = gru(args[0], args[1], weights, both);
    return {y, h};
  }
  if (kind.states == 1) {
    const auto [y, h] = rnn(args[0], args[1], weights, "relu", both);
    return {y, h};
  }
  const auto [y, h, c] = lstm(args[0], args[1], args[2], weights, both);
  return {y, h, c};
}

// Weighted sums of the results that `chosen` has a bit for.
Tensor loss_of(const Tensors& results, unsigned chosen) {
  Tensor loss;
  for (size_t i = 0; i < results.size(); ++i)
    if (chosen >> i & 1) {
      const Tensor part =
          sum(results[i] *
              cos(arange(0, results[i].numel(), 1, {.dtype = f64}).reshape(results[i].shape())));
      loss = loss.defined() ? loss + part : part;
    }
  return loss;
}

void require_close(const Tensors& a, const Tensors& b) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const double off = amax(abs(a[i] - b[i])).item<double>(), most = amax(abs(b[i])).item<double>();
    BOOST_TEST(off < 1e-12 * (1 + most), "tensor " << i << " is off by " << off << " of " << most);
  }
}

}  // namespace

namespace {

// Compares a network over `batch` sequences with single steps, with `hidden` values each.
void check_gradients(const ByHand& kind, int64_t batch, int64_t hidden, double scale) {
  const int64_t gates = kind.gru ? 3 : kind.states == 2 ? 4 : 1;
  Tensors args = {randn({4, batch, 5}, {.dtype = f64})};
  for (size_t s = 0; s < kind.states; ++s) args.push_back(randn({2, batch, hidden}, f64));
  for (int direction = 0; direction < 2; ++direction)
    for (const Shape& shape : {Shape{gates * hidden, 5}, Shape{gates * hidden, hidden},
                               Shape{gates * hidden}, Shape{gates * hidden}})
      args.push_back(randn(shape, {.dtype = f64}) * scale);
  for (auto& a : args) a.requires_grad_();
  for (unsigned chosen = 1; chosen < 2u << kind.states; ++chosen) {
    Tensors first[2], second[2];
    for (int by_hand = 0; by_hand < 2; ++by_hand) {
      const Tensors results = by_hand ? kind(args) : call(kind, args);
      const Tensor loss = loss_of(results, chosen);
      first[by_hand] = grad(std::span(&loss, 1), args, {}, {.create_graph = true});
      Tensor squares = sum(square(first[by_hand][0]));
      for (auto& g : first[by_hand]) squares = squares + sum(square(g));
      second[by_hand] = grad(std::span(&squares, 1), args);
      const Tensor again = loss_of(by_hand ? kind(args) : call(kind, args), chosen);
      require_close(grad(std::span(&again, 1), args), first[by_hand]);  // without a graph of it
    }
    require_close(first[0], first[1]);
    require_close(second[0], second[1]);
  }
}

}  // namespace

// A sequence is recorded as a whole; its gradients are those of the steps, of first and second
// order, whichever results have one.
BOOST_AUTO_TEST_CASE(gradients_are_those_of_single_steps) {
  for (const ByHand& kind : {ByHand{1, false}, ByHand{1, true}, ByHand{2, false}})
    check_gradients(kind, 2, 3, 1);
}

// More sequences and values than a kernel has in registers at a time, and not a multiple of them.
BOOST_AUTO_TEST_CASE(gradients_of_wide_sequences) { check_gradients({2, false}, 9, 37, 0.2); }

// A small batch of a large network is computed step by step, and a large one all at once.
BOOST_AUTO_TEST_CASE(few_sequences_of_a_large_network) {
  const Tensor x = rand({2, 16, 3});
  std::vector<Tensor> w = random_weights(4, 3, 368);
  for (auto& t : w) t = (t * 0.2).requires_grad_();
  const auto result = [&](const Tensor& input) { return std::get<0>(lstm(input, {}, {}, w)); };
  const Tensor all = result(x), few = result(x.narrow(1, 0, 2));
  BOOST_TEST(amax(abs(all.narrow(1, 0, 2) - few)).item<float>() < 1e-5);
  const Tensor losses[] = {sum(square(all.narrow(1, 0, 2))), sum(square(few))};
  const auto a = grad(std::span(&losses[0], 1), w), b = grad(std::span(&losses[1], 1), w);
  for (size_t i = 0; i < w.size(); ++i)
    BOOST_TEST(amax(abs(a[i] - b[i])).item<float>() < 1e-4, "weight " << i);
}

// A small network is computed all at once, and the large one step by step.
BOOST_AUTO_TEST_CASE(outputs_may_change_before_the_gradient) {
  for (int64_t hidden : {5, 368}) {
    const Tensor x = rand({3, 2, 4});
    std::vector<Tensor> w = random_weights(4, 4, hidden);
    for (auto& t : w) t = (t * 0.2).requires_grad_();
    std::vector<Tensor> gradients[2];
    for (bool changes : {false, true}) {
      const Tensor y = std::get<0>(lstm(x, {}, {}, w)), of_y = cos(y.detach());
      if (changes) y.detach().zero_();
      gradients[changes] = grad(std::span(&y, 1), w, std::span(&of_y, 1));
    }
    for (size_t i = 0; i < w.size(); ++i) require_equal(gradients[1][i], gradients[0][i]);
  }
}

BOOST_AUTO_TEST_CASE(a_sequence_without_a_batch_is_a_batch_of_one) {
  const Tensor x = rand({3, 4}), h = rand({2, 5}), c = rand({2, 5});
  auto w = random_weights(4, 4, 5);
  for (auto& reverse : random_weights(4, 4, 5)) w.push_back(reverse);
  for (bool batch_first : {false, true}) {
    const RecurrentOptions options = {.bidirectional = true, .batch_first = batch_first};
    const int64_t batch = batch_first ? 0 : 1;
    const auto [y, hn, cn] = lstm(x, h, c, w, options);
    const auto [ys, hs, cs] = lstm(x.unsqueeze(batch), h.unsqueeze(1), c.unsqueeze(1), w, options);
    require_equal(y.detach(), ys.detach().squeeze(batch));
    require_equal(hn.detach(), hs.detach().squeeze(1));
    require_equal(cn.detach(), cs.detach().squeeze(1));
  }
  BOOST_TEST((gru(x, Tensor(), random_weights(3, 4, 5)).first.shape() == Shape{3, 5}));
}

BOOST_AUTO_TEST_CASE(bad_input) {
  const Tensor x = zeros({3, 2, 4});
  const auto w = random_weights(4, 4, 5);
  const auto run = [&](const Tensor& input, const Tensor& h, std::vector<Tensor> weights,
                       const RecurrentOptions& options = {}) {
    return [=] { lstm(input, h, Tensor(), weights, options); };
  };
  require_error<ValueError>(run(Tensor(), Tensor(), w), "lstm: x is an undefined tensor");
  require_error<ShapeError>(run(zeros({4}), Tensor(), w), "(length, batch, width), or (length, w");
  require_error<ShapeError>(run(zeros({3, 4}), zeros({1, 1, 5}), w),
                            "an input without a batch, (3, 4), needs an initial state (layers");
  require_error<ShapeError>(run(zeros({0, 4}), Tensor(), w), "the sequence is empty");
  require_error<ShapeError>(run(zeros({0, 2, 4}), Tensor(), w), "the sequence is empty");
  require_error<DTypeError>(run(x.to(i64), Tensor(), w), "needs a floating input, found i64");
  require_error<ShapeError>(run(x, zeros({1, 2, 4}), w), "must be (1, 2, 5)");
  require_error<DTypeError>(run(x, zeros({1, 2, 5}, f64), w),
                            "lstm: the input is f32, the initial state f64; convert the state");
  require_error<DTypeError>(run(x.to(f64), Tensor(), w),
                            "lstm: the input is f64, a weight f32; convert the input");
  require_error<ValueError>(run(x, Tensor(), {}), "have 2 weights, or 4 with biases; found 0");
  require_error<ValueError>(run(x, Tensor(), w, {.num_layers = 3}), "found 4");
  require_error<ValueError>(run(x, Tensor(), w, {.num_layers = 0}), "num_layers is 0");
  require_error<ValueError>(run(x, Tensor(), w, {.dropout = 2}), "dropout must lie in [0, 1]");
  require_error<ShapeError>(
      run(zeros({3, 2, 7}), Tensor(), w),
      "the input has 7 features a step, but weight_ih of layer 0, of shape (20, 4), takes 4");
  require_error<ShapeError>(run(x, Tensor(), random_weights(3, 4, 5)),
                            "weight_ih of layer 0 has shape (15, 4), but must be (20, 4)");
  require_error<ValueError>([&] { rnn(x, Tensor(), w, "sigmoid"); }, "\"tanh\" or \"relu\"");
  require_error<ShapeError>([] { lstm_step(zeros({2, 8}), zeros({2, 3})); }, "(batch, 4 hidden)");
  require_error<ShapeError>(
      [] {
        gru_step(zeros({2, 9}), zeros({2, 8}), zeros({2, 3}));
      },
      "(batch, 3 hidden)");
}

BOOST_AUTO_TEST_SUITE_END()
