// Connectionist temporal classification: each sequence has a block, and each state a thread of it.
// The steps of a sequence follow one another.
#include <tenon/plugins/sdk/requests/ctc.h>

#include "device/launch.h"
#include "runtime/common.h"

namespace tenon::cuda {
namespace {

constexpr unsigned kThreads = 256;

template <class T>
struct CtcOperands {
  const T* x;
  const int64_t *targets, *input_lengths, *target_lengths;
  Fault* fault;

  CtcOperands(const tn_run& run, size_t first)
      : x(static_cast<const T*>(run.inputs[first])),
        targets(static_cast<const int64_t*>(run.inputs[first + 1])),
        input_lengths(static_cast<const int64_t*>(run.inputs[first + 2])),
        target_lengths(static_cast<const int64_t*>(run.inputs[first + 3])),
        fault(run.stream->fault) {}

  // The sequence of this block; of no steps and no labels where a label or a length is wrong. All
  // threads of the block come to the same result.
  __device__ sdk::CtcSequence<T> sequence(const sdk::CtcRequest& c, bool* wrong) const {
    const int64_t i = blockIdx.x;
    sdk::CtcSequence<T> q{x + i * c.c,       targets + i * c.s, input_lengths[i],
                          target_lengths[i], c.n * c.c,         c.blank};
    *wrong = true;
    if (q.steps < 0 || q.steps > c.t)
      report(i, q.steps, c.t + 1);
    else if (q.count < 0 || q.count > c.s)
      report(i, q.count, c.s + 1);
    else
      *wrong = has_wrong_label(q, c);
    if (*wrong) q.steps = q.count = 0;
    return q;
  }

 private:
  __device__ void report(int64_t row, int64_t value, int64_t bound) const {
    if (threadIdx.x == 0) file_fault(fault, FaultSite::ctc_loss, row, value, bound);
  }
  __device__ bool has_wrong_label(const sdk::CtcSequence<T>& q, const sdk::CtcRequest& c) const {
    for (int64_t k = 0; k < q.count; ++k)
      if (q.labels[k] < 0 || q.labels[k] >= c.c) {
        report(blockIdx.x, q.labels[k], c.c);
        return true;
      }
    return false;
  }
};

template <class T>
__global__ void __launch_bounds__(256)
    ctc_forward(sdk::CtcRequest c, CtcOperands<T> o, T* losses, T* alphas) {
  bool wrong = false;
  const auto q = o.sequence(c, &wrong);
  T* row = alphas + blockIdx.x * c.t * c.states();
  for (int64_t step = 0; step < c.t; ++step) {
    T* now = row + step * c.states();
    for (int64_t state = threadIdx.x; state < c.states(); state += blockDim.x) {
      T value = -T(INFINITY);
      if (step < q.steps && state < q.states())
        value = step == 0 ? q.first_alpha(state) : q.alpha(now - c.states(), step, state);
      now[state] = value;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0)
    losses[blockIdx.x] = wrong ? T(NAN) : q.loss(row + (q.steps - 1) * c.states());
}

// `betas` has two steps a sequence.
template <class T>
__global__ void __launch_bounds__(256)
    ctc_backward(sdk::CtcRequest c, CtcOperands<T> o, const T* gs, const T* losses, const T* alphas,
                 T* gx, T* betas) {
  bool wrong = false;
  const auto q = o.sequence(c, &wrong);
  const int64_t i = blockIdx.x;
  const T g = gs[i], loss = losses[i];
  const T* row = alphas + i * c.t * c.states();
  T* two = betas + i * 2 * c.states();
  for (int64_t step = c.t; step-- > 0;) {
    T* to = gx + i * c.c + step * q.stride;
    const bool counts = step < q.steps && g != T(0);
    T *now = two + step % 2 * c.states(), *behind = two + (step + 1) % 2 * c.states();
    if (counts)
      for (int64_t state = threadIdx.x; state < q.states(); state += blockDim.x)
        now[state] = step == q.steps - 1 ? q.last_beta(state) : q.beta(behind, step, state);
    __syncthreads();
    // A class is a thread's, so that its states are added in one order.
    for (int64_t k = threadIdx.x; k < c.c; k += blockDim.x) {
      T through = -T(INFINITY);
      for (int64_t state = k == q.blank ? 0 : 1; counts && state < q.states(); state += 2)
        if (q.label(state) == k)
          through = sdk::log_add(
              through, q.through(row[step * c.states() + state], now[state], step, state));
      to[k] = counts ? q.gradient(g, q.x[step * q.stride + k], through, loss) : T(0);
    }
    __syncthreads();
  }
}

template <class T>
tn_plan* plan_ctc_forward(const sdk::CtcRequest& c) {
  return make_plan([c](const tn_run& run) {
    launch(run.stream, dim3(static_cast<unsigned>(c.n)), kThreads, ctc_forward<T>, c,
           CtcOperands<T>(run, 0), static_cast<T*>(run.outputs[0]),
           static_cast<T*>(run.outputs[1]));
  });
}
template <class T>
tn_plan* plan_ctc_backward(const sdk::CtcRequest& c) {
  const auto bytes = static_cast<uint64_t>(c.n * 2 * c.states()) * sizeof(T);
  return make_plan(
      [c](const tn_run& run) {
        launch(run.stream, dim3(static_cast<unsigned>(c.n)), kThreads, ctc_backward<T>, c,
               CtcOperands<T>(run, 1), static_cast<const T*>(run.inputs[0]),
               static_cast<const T*>(run.inputs[5]), static_cast<const T*>(run.inputs[6]),
               static_cast<T*>(run.outputs[0]), static_cast<T*>(run.workspace));
      },
      bytes);
}

const sdk::Kernel ctc_losses({"ctc_loss"}, [](tn_device*, const Request& request) {
  const auto c = sdk::CtcRequest::from(request);
  if (c.n == 0) return empty_plan();
  return with_float(c.dtype, [&c]<class T>(T) { return plan_ctc_forward<T>(c); });
});
const sdk::Kernel ctc_gradients({"ctc_loss_backward"}, [](tn_device*, const Request& request) {
  const auto c = sdk::CtcRequest::from(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_float(c.dtype, [&c]<class T>(T) { return plan_ctc_backward<T>(c); });
});

}  // namespace
}  // namespace tenon::cuda
