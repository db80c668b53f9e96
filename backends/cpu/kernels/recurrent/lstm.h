// The gates of an LSTM and the gradient of a step, for the lanes of one vector.
#pragma once

#include "kernels/recurrent/steps.h"

namespace tenon::cpu {

// From the sums of a gate each, in the order i, f, g, o.
template <class T>
struct LstmGates {
  Vec<T> i, f, g, o;
  LstmGates(Vec<T> sum_i, Vec<T> sum_f, Vec<T> sum_g, Vec<T> sum_o)
      : i(math::sigmoid<T>(sum_i)),
        f(math::sigmoid<T>(sum_f)),
        g(math::tanh<T>(sum_g)),
        o(math::sigmoid<T>(sum_o)) {}
  // From a row of 4 n sums.
  template <class Part>
  LstmGates(const T* sums, int64_t n, int64_t k, Part part)
      : LstmGates(load(sums + k, part), load(sums + n + k, part), load(sums + 2 * n + k, part),
                  load(sums + 3 * n + k, part)) {}

  Vec<T> cell(Vec<T> before) const { return f * before + i * g; }
};

template <class T>
struct LstmGradients {
  Vec<T> i, f, g, o, cell;  // of the sums, and of the cell before
  Vec<T> h;                 // the hidden state after the step
};
// `gh` and `gc` are those of the results of the step.
template <class T>
LstmGradients<T> lstm_gradients(const LstmGates<T>& a, Vec<T> before, Vec<T> gh, Vec<T> gc) {
  const Vec<T> one = splat(T(1)), t = math::tanh<T>(a.cell(before)),
               d = gc + gh * a.o * (one - t * t);
  return {d * a.g * a.i * (one - a.i),
          d * before * a.f * (one - a.f),
          d * a.i * (one - a.g * a.g),
          gh * t * a.o * (one - a.o),
          d * a.f,
          a.o * t};
}

}  // namespace tenon::cpu
