// One step of a GRU and its gradient.
#include "kernels/recurrent/steps.h"

namespace tenon::cpu {
namespace {

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
void gru(const RecurrentStep& s, const tn_run& run) {
  for_rows_of_batch(s, [&](int64_t row) {
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
void gru_backward(const RecurrentStep& s, const tn_run& run) {
  for_rows_of_batch(s, [&](int64_t row) {
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

const sdk::Kernel gru_step({"gru_step"}, [](tn_device*, const Request& request) {
  return plan_step(request, []<class T>(T) { return gru<T>; });
});
const sdk::Kernel gru_step_backward({"gru_step_backward"}, [](tn_device*, const Request& request) {
  return plan_step(request, []<class T>(T) { return gru_backward<T>; });
});

}  // namespace
}  // namespace tenon::cpu
