// One step of recurrent networks and its gradient, a row of each sequence at a time.
#include <tenon/plugins/sdk/requests/recurrent.h>

#include "runtime/common.h"
#include "simd/math.h"

namespace tenon::cpu {
namespace {

using Step = sdk::RecurrentStepRequest;

// body(row) for the rows of the batch.
template <class F>
void for_rows(const Step& s, F&& body) {
  parallel_for(s.batch, std::max<int64_t>(1, kGrain / 16 / std::max<int64_t>(1, s.hidden)),
               [&](int64_t begin, int64_t end, uint32_t) {
                 for (int64_t row = begin; row < end; ++row) body(row);
               });
}

// The tensor's row, of so many values for each hidden one; NULL where there is no tensor.
template <class T, class P>
T* row_of(P* data, const Step& s, int64_t row, int64_t gates = 1) {
  return data ? static_cast<T*>(data) + row * gates * s.hidden : nullptr;
}

template <class T, class Part>
void store_if(T* p, int64_t i, Vec<T> v, Part part) {
  if (p) store<T>(p + i, v, part);
}

// ---- LSTM

template <class T>
struct LstmGates {
  Vec<T> i, f, g, o;
  template <class Part>
  LstmGates(const T* gates, int64_t n, int64_t k, Part part)
      : i(math::sigmoid<T>(load(gates + k, part))),
        f(math::sigmoid<T>(load(gates + n + k, part))),
        g(math::tanh<T>(load(gates + 2 * n + k, part))),
        o(math::sigmoid<T>(load(gates + 3 * n + k, part))) {}
};

template <class T>
void lstm(const Step& s, const tn_run& run) {
  for_rows(s, [&](int64_t row) {
    const T *gates = row_of<const T>(run.inputs[0], s, row, 4),
            *c = row_of<const T>(run.inputs[1], s, row);
    T *h = row_of<T>(run.outputs[0], s, row), *next = row_of<T>(run.outputs[1], s, row);
    for_lanes<T>(s.hidden, [&](int64_t k, auto part) {
      const LstmGates<T> a(gates, s.hidden, k, part);
      const Vec<T> cell = a.f * load(c + k, part) + a.i * a.g;
      store_if<T>(h, k, a.o * math::tanh<T>(cell), part);
      store_if<T>(next, k, cell, part);
    });
  });
}

template <class T>
void lstm_backward(const Step& s, const tn_run& run) {
  for_rows(s, [&](int64_t row) {
    const T *gh = row_of<const T>(run.inputs[0], s, row),
            *gc = row_of<const T>(run.inputs[1], s, row),
            *gates = row_of<const T>(run.inputs[2], s, row, 4),
            *c = row_of<const T>(run.inputs[3], s, row);
    T *ggates = row_of<T>(run.outputs[0], s, row, 4), *before = row_of<T>(run.outputs[1], s, row);
    const int64_t n = s.hidden;
    const Vec<T> one = splat(T(1)), zero = splat(T(0));
    for_lanes<T>(n, [&](int64_t k, auto part) {
      const LstmGates<T> a(gates, n, k, part);
      const Vec<T> cell = load(c + k, part), t = math::tanh<T>(Vec<T>(a.f * cell + a.i * a.g));
      Vec<T> d = gc ? load(gc + k, part) : zero, go = zero;
      if (gh) {
        const Vec<T> g = load(gh + k, part);
        d += g * a.o * (one - t * t);
        go = g * t * a.o * (one - a.o);
      }
      store_if<T>(before, k, d * a.f, part);
      if (!ggates) return;
      store<T>(ggates + k, d * a.g * a.i * (one - a.i), part);
      store<T>(ggates + n + k, d * cell * a.f * (one - a.f), part);
      store<T>(ggates + 2 * n + k, d * a.i * (one - a.g * a.g), part);
      store<T>(ggates + 3 * n + k, go, part);
    });
  });
}

// ---- GRU

template <class T>
struct GruGates {
  Vec<T> r, z, hidden_n, n;
  template <class Part>
  GruGates(const T* input, const T* hidden, int64_t size, int64_t k, Part part)
      : r(math::sigmoid<T>(Vec<T>(load(input + k, part) + load(hidden + k, part)))),
        z(math::sigmoid<T>(Vec<T>(load(input + size + k, part) + load(hidden + size + k, part)))),
        hidden_n(load(hidden + 2 * size + k, part)),
        n(math::tanh<T>(Vec<T>(load(input + 2 * size + k, part) + r * hidden_n))) {}
};

template <class T>
void gru(const Step& s, const tn_run& run) {
  for_rows(s, [&](int64_t row) {
    const T *input = row_of<const T>(run.inputs[0], s, row, 3),
            *hidden = row_of<const T>(run.inputs[1], s, row, 3),
            *h = row_of<const T>(run.inputs[2], s, row);
    T* next = row_of<T>(run.outputs[0], s, row);
    for_lanes<T>(s.hidden, [&](int64_t k, auto part) {
      const GruGates<T> a(input, hidden, s.hidden, k, part);
      store<T>(next + k, a.n + a.z * (load(h + k, part) - a.n), part);
    });
  });
}

template <class T>
void gru_backward(const Step& s, const tn_run& run) {
  for_rows(s, [&](int64_t row) {
    const T *g = row_of<const T>(run.inputs[0], s, row),
            *input = row_of<const T>(run.inputs[1], s, row, 3),
            *hidden = row_of<const T>(run.inputs[2], s, row, 3),
            *h = row_of<const T>(run.inputs[3], s, row);
    T *ginput = row_of<T>(run.outputs[0], s, row, 3),
      *ghidden = row_of<T>(run.outputs[1], s, row, 3), *gh = row_of<T>(run.outputs[2], s, row);
    const int64_t n = s.hidden;
    const Vec<T> one = splat(T(1));
    for_lanes<T>(n, [&](int64_t k, auto part) {
      const GruGates<T> a(input, hidden, n, k, part);
      const Vec<T> d = load(g + k, part), gn = d * (one - a.z) * (one - a.n * a.n),
                   gz = d * (load(h + k, part) - a.n) * a.z * (one - a.z),
                   gr = gn * a.hidden_n * a.r * (one - a.r);
      store_if<T>(gh, k, d * a.z, part);
      const Vec<T> values[] = {gr, gz, gn}, inner[] = {gr, gz, gn * a.r};
      for (int64_t j = 0; j < 3; ++j) {
        store_if<T>(ginput, j * n + k, values[j], part);
        store_if<T>(ghidden, j * n + k, inner[j], part);
      }
    });
  });
}

// ---- Plans

tn_plan* make_step(tn_device*, const Request& request) {
  const Step s = Step::from(request);
  if (s.batch * s.hidden == 0) return empty_plan();
  const auto cost = 50 + static_cast<uint64_t>(4 * s.batch * s.hidden);
  return with_float(s.dtype, [&]<class T>(T) {
    void (*run)(const Step&, const tn_run&) = request.op() == "lstm_step" ? lstm<T>
                                              : request.op() == "lstm_step_backward"
                                                  ? lstm_backward<T>
                                              : request.op() == "gru_step" ? gru<T>
                                                                           : gru_backward<T>;
    return sdk::make_plan([s, run](const tn_run& r) { run(s, r); }, {0, cost});
  });
}
const sdk::Kernel steps({"lstm_step", "lstm_step_backward", "gru_step", "gru_step_backward"},
                        make_step);

}  // namespace
}  // namespace tenon::cpu
