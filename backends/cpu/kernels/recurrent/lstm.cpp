// One step of an LSTM and its gradient.
#include "kernels/recurrent/lstm.h"

namespace tenon::cpu {
namespace {

template <class T>
void lstm(const RecurrentStep& s, const tn_run& run) {
  for_rows_of_batch(s, [&](int64_t row) {
    const T *gates = row_of<const T>(run.inputs[0], s, row, 4),
            *c = row_of<const T>(run.inputs[1], s, row);
    T *h = row_of<T>(run.outputs[0], s, row), *next = row_of<T>(run.outputs[1], s, row);
    for_lanes<T>(s.hidden, [&](int64_t k, auto part) {
      const LstmGates<T> a(gates, s.hidden, k, part);
      const Vec<T> cell = a.cell(load(c + k, part));
      store_if<T>(h, k, a.o * math::tanh<T>(cell), part);
      store_if<T>(next, k, cell, part);
    });
  });
}

template <class T>
void lstm_backward(const RecurrentStep& s, const tn_run& run) {
  for_rows_of_batch(s, [&](int64_t row) {
    const T *gh = row_of<const T>(run.inputs[0], s, row),
            *gc = row_of<const T>(run.inputs[1], s, row),
            *gates = row_of<const T>(run.inputs[2], s, row, 4),
            *c = row_of<const T>(run.inputs[3], s, row);
    T *ggates = row_of<T>(run.outputs[0], s, row, 4), *before = row_of<T>(run.outputs[1], s, row);
    const int64_t n = s.hidden;
    const Vec<T> zero = splat(T(0));
    for_lanes<T>(n, [&](int64_t k, auto part) {
      const LstmGates<T> a(gates, n, k, part);
      const auto g = lstm_gradients<T>(a, load(c + k, part), gh ? load(gh + k, part) : zero,
                                       gc ? load(gc + k, part) : zero);
      store_if<T>(before, k, g.cell, part);
      if (!ggates) return;
      store<T>(ggates + k, g.i, part);
      store<T>(ggates + n + k, g.f, part);
      store<T>(ggates + 2 * n + k, g.g, part);
      store<T>(ggates + 3 * n + k, g.o, part);
    });
  });
}

const sdk::Kernel lstm_step({"lstm_step"}, [](tn_device*, const Request& request) {
  return plan_step(request, []<class T>(T) { return lstm<T>; });
});
const sdk::Kernel lstm_step_backward({"lstm_step_backward"}, [](tn_device*,
                                                                const Request& request) {
  return plan_step(request, []<class T>(T) { return lstm_backward<T>; });
});

}  // namespace
}  // namespace tenon::cpu
