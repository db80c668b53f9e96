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

BOOST_AUTO_TEST_CASE(bad_input) {
  const Tensor x = zeros({3, 2, 4});
  const auto w = random_weights(4, 4, 5);
  const auto run = [&](const Tensor& input, const Tensor& h, std::vector<Tensor> weights,
                       const RecurrentOptions& options = {}) {
    return [=] { lstm(input, h, Tensor(), weights, options); };
  };
  require_error<ValueError>(run(Tensor(), Tensor(), w), "lstm: argument 0 is an undefined tensor");
  require_error<ShapeError>(run(zeros({3, 4}), Tensor(), w), "(length, batch, width)");
  require_error<ShapeError>(run(zeros({0, 2, 4}), Tensor(), w), "the sequence is empty");
  require_error<DTypeError>(run(x.to(i64), Tensor(), w), "needs a floating input, found i64");
  require_error<ShapeError>(run(x, zeros({1, 2, 4}), w), "must be (1, 2, 5)");
  require_error<ValueError>(run(x, Tensor(), {}), "have 2 weights, or 4 with biases; found 0");
  require_error<ValueError>(run(x, Tensor(), w, {.num_layers = 3}), "found 4");
  require_error<ValueError>(run(x, Tensor(), w, {.num_layers = 0}), "0 layers");
  require_error<ValueError>(run(x, Tensor(), w, {.dropout = 2}), "dropout must lie in [0, 1]");
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
