// Recurrent networks: one layer and several, both directions, with and without biases, and their
// steps.
#pragma once

#include <tenon/conformance/case.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/recurrent.h>

namespace tenon::conformance {

inline RecurrentOptions recurrent_options(const json& a) {
  return {.num_layers = a.value("num_layers", int64_t{1}),
          .bidirectional = a.value("bidirectional", false),
          .batch_first = a.value("batch_first", false)};
}
// With large weights a network is chaotic, and the order of sums decides what it does.
inline std::vector<Tensor> weights_from(const json& a, const List& in, size_t first) {
  std::vector<Tensor> weights;
  for (size_t i = first; i < in.size(); ++i)
    if (in[i].defined())
      weights.push_back(a.contains("scale") ? in[i] * a.at("scale").get<double>() : in[i]);
  return weights;
}
inline List call_rnn(const json& a, const List& in) {
  const auto [y, h] = rnn(in[0], in[1], weights_from(a, in, 2), a.value("nonlinearity", "tanh"),
                          recurrent_options(a));
  return {y, h};
}
inline List call_lstm(const json& a, const List& in) {
  const auto [y, h, c] = lstm(in[0], in[1], in[2], weights_from(a, in, 3), recurrent_options(a));
  return {y, h, c};
}
inline List call_gru(const json& a, const List& in) {
  const auto [y, h] = gru(in[0], in[1], weights_from(a, in, 2), recurrent_options(a));
  return {y, h};
}
inline List call_lstm_step(const json&, const List& in) {
  const auto [h, c] = lstm_step(in[0], in[1]);
  return {h, c};
}
inline List call_gru_step(const json&, const List& in) { return {gru_step(in[0], in[1], in[2])}; }

// Two small networks and a larger one; `gates` rows of the weights for each hidden value.
inline std::vector<Variant> networks(int64_t gates, size_t states) {
  const auto network = [&](std::string args, int64_t length, int64_t batch, int64_t width,
                           int64_t hidden, int64_t layers, int64_t directions, bool biases) {
    std::vector<In> in = {In(Shape{length, batch, width})};
    for (size_t s = 0; s < states; ++s) in.push_back(In(Shape{layers * directions, batch, hidden}));
    for (int64_t i = 0; i < layers * directions; ++i) {
      const int64_t from = i < directions ? width : directions * hidden;
      in.push_back(In(Shape{gates * hidden, from}));
      in.push_back(In(Shape{gates * hidden, hidden}));
      if (!biases) continue;
      in.push_back(In(Shape{gates * hidden}));
      in.push_back(In(Shape{gates * hidden}));
    }
    return Variant{std::move(args), std::move(in)};
  };
  return {network("{'scale': 0.02}", 2, 1, 2, 2, 1, 1, false),
          network("{'num_layers': 2, 'bidirectional': true, 'scale': 0.5}", 2, 1, 1, 1, 2, 2, true),
          network("{'scale': 0.02}", 5, 3, 20, 33, 1, 1, true)};
}

inline std::vector<Line> recurrent_cases() {
  // clang-format off
  return {
      {"RNN", call_rnn, kReals, networks(1, 1), kLongSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"LSTM", call_lstm, kReals, networks(4, 2), kLongSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = Values::ordinary, .op = "lstm_sequence"}},
      {"GRU", call_gru, kReals, networks(3, 1), kLongSums, {.difference = 1e-5, .types_of_cpu = kHalves, .values = Values::ordinary}},
      {"lstm_step", call_lstm_step, kFloats, {{"", {{2, 8}, {2, 2}}}, {"", {{0, 8}, {0, 2}}}, {"", {{33, 260}, {33, 65}}}}, kSums, {.difference = 1e-5, .values = Values::ordinary, .no_reference = "the cases of LSTM run it"}},
      {"gru_step", call_gru_step, kFloats, {{"", {{2, 6}, {2, 6}, {2, 2}}}, {"", {{0, 6}, {0, 6}, {0, 2}}}, {"", {{33, 195}, {33, 195}, {33, 65}}}}, kSums, {.difference = 1e-5, .values = Values::ordinary, .no_reference = "the cases of GRU run it"}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
