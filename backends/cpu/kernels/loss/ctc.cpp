// Connectionist temporal classification: each sequence has a thread, which goes over its steps
// forwards for the loss, and backwards for the gradient.
#include <tenon/plugins/sdk/requests/ctc.h>

#include "runtime/common.h"

namespace tenon::cpu {
namespace {

struct Ctc : sdk::CtcRequest {
  explicit Ctc(const Request& request) : CtcRequest(from(request)) {}

  sdk::PlanOptions options() const {
    return {0, 200 + static_cast<uint64_t>(n * t * states() * 15)};
  }

  // Sequence i, whose lengths and labels are checked.
  template <class T>
  sdk::CtcSequence<T> sequence(const void* const* in, int64_t i) const {
    const int64_t steps = length(in[2], i, t, "input"), count = length(in[3], i, s, "target");
    const auto* labels = static_cast<const int64_t*>(in[1]) + i * s;
    for (int64_t k = 0; k < count; ++k)
      if (labels[k] < 0 || labels[k] >= c) {
        const auto row = std::to_string(i), label = std::to_string(labels[k]),
                   classes = std::to_string(c);
        throw sdk::Error(TN_CODE_OUT_OF_RANGE,
                         sdk::text("label {} in row {} lies outside [0, {})", label, row, classes),
                         {{"row", row}, {"label", label}, {"classes", classes}});
      }
    return {static_cast<const T*>(in[0]) + i * c, labels, steps, count, n * c, blank};
  }

 private:
  static int64_t length(const void* lengths, int64_t i, int64_t most, const char* what) {
    const int64_t value = static_cast<const int64_t*>(lengths)[i];
    if (value >= 0 && value <= most) return value;
    const auto row = std::to_string(i), found = std::to_string(value), limit = std::to_string(most);
    throw sdk::Error(TN_CODE_OUT_OF_RANGE,
                     sdk::text("{}_lengths has {} for sequence {}, which lies outside "
                               "[0, {}]",
                               what, found, row, limit));
  }
};

template <class T>
void forward(const Ctc& c, const tn_run& run) {
  auto *losses = static_cast<T*>(run.outputs[0]), *alphas = static_cast<T*>(run.outputs[1]);
  for (int64_t i = 0; i < c.n; ++i) c.sequence<T>(run.inputs, i);  // before a thread writes
  parallel_for(c.n, 1, [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t i = begin; i < end; ++i) {
      const auto q = c.sequence<T>(run.inputs, i);
      T* row = alphas + i * c.t * c.states();
      std::fill(row, row + c.t * c.states(), -std::numeric_limits<T>::infinity());
      for (int64_t step = 0; step < q.steps; ++step) {
        T* now = row + step * c.states();
        for (int64_t state = 0; state < q.states(); ++state)
          now[state] = step == 0 ? q.first_alpha(state) : q.alpha(now - c.states(), step, state);
      }
      losses[i] = q.loss(row + (q.steps - 1) * c.states());
    }
  });
}

// The gradients of one sequence. `betas` has room for two steps, `through` for one value per class.
template <class T>
void go_back(const Ctc& c, const sdk::CtcSequence<T>& q, T g, T loss, const T* alphas, T* gx,
             std::vector<T>& betas, std::vector<T>& through) {
  for (int64_t step = c.t; step-- > 0;) {
    T* to = gx + step * q.stride;
    if (step >= q.steps || g == 0) {
      std::fill(to, to + c.c, T(0));
      continue;
    }
    T *now = betas.data() + step % 2 * c.states(),
      *behind = betas.data() + (step + 1) % 2 * c.states();
    std::fill(through.begin(), through.end(), -std::numeric_limits<T>::infinity());
    for (int64_t state = 0; state < q.states(); ++state) {
      now[state] = step == q.steps - 1 ? q.last_beta(state) : q.beta(behind, step, state);
      T& sum = through[static_cast<size_t>(q.label(state))];
      sum =
          sdk::log_add(sum, q.through(alphas[step * c.states() + state], now[state], step, state));
    }
    for (int64_t k = 0; k < c.c; ++k) {
      const T x = q.x[step * q.stride + k];
      to[k] = q.gradient(g, x, through[static_cast<size_t>(k)], loss);
    }
  }
}

template <class T>
void backward(const Ctc& c, const tn_run& run) {
  auto *g = static_cast<const T*>(run.inputs[0]), *losses = static_cast<const T*>(run.inputs[5]),
       *alphas = static_cast<const T*>(run.inputs[6]);
  auto* gx = static_cast<T*>(run.outputs[0]);
  parallel_for(c.n, 1, [&](int64_t begin, int64_t end, uint32_t) {
    std::vector<T> betas(static_cast<size_t>(2 * c.states())), through(static_cast<size_t>(c.c));
    for (int64_t i = begin; i < end; ++i)
      go_back(c, c.sequence<T>(run.inputs + 1, i), g[i], losses[i], alphas + i * c.t * c.states(),
              gx + i * c.c, betas, through);
  });
}

const sdk::Kernel ctc_loss({"ctc_loss"}, [](tn_device*, const Request& request) {
  return with_float(request.input(0).dtype, [c = Ctc(request)]<class T>(T) {
    return sdk::make_plan([c](const tn_run& run) { forward<T>(c, run); }, c.options());
  });
});
const sdk::Kernel ctc_loss_backward({"ctc_loss_backward"}, [](tn_device*, const Request& request) {
  return with_float(request.input(0).dtype, [c = Ctc(request)]<class T>(T) {
    return sdk::make_plan([c](const tn_run& run) { backward<T>(c, run); }, c.options());
  });
});

}  // namespace
}  // namespace tenon::cpu
