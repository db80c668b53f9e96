// "ctc_loss" and its gradient, read and checked once for every plugin, and the recursions of which
// they are made (Graves et al., ICML 2006). All tensors are contiguous.
#pragma once

#include <cmath>
#include <cstdint>

#include <tenon/plugins/sdk/host_device.h>
#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// A request of a CTC loss: log-probabilities (t, n, c) and labels (n, s), of which each sequence
// has its own lengths. Between, before and behind its labels are blanks: 2 s + 1 states at most.
struct CtcRequest {
  tn_dtype dtype;
  int64_t t, n, c, s, blank;

  // Returns the most states of a sequence.
  TN_HD int64_t states() const { return 2 * s + 1; }

  // Reads "ctc_loss" (log_probs, targets, input_lengths, target_lengths -> losses (n), alphas (n,
  // t, states)) or "ctc_loss_backward" (g, the four, losses, alphas -> glog_probs). A plan checks
  // labels and lengths when it runs.
  static CtcRequest from(const Request& request) {
    require_op(request, {"ctc_loss", "ctc_loss_backward"});
    const bool backward = request.op() == "ctc_loss_backward";
    const size_t first = backward ? 1 : 0;
    auto &x = request.input(first), &targets = request.input(first + 1);
    if (x.rank != 3 || targets.rank != 2)
      invalid("log_probs have 3 dimensions and targets 2, found {} and {}", x.rank, targets.rank);
    const CtcRequest r{x.dtype,    x.shape[0],       x.shape[1],
                       x.shape[2], targets.shape[1], request.get_int("blank")};
    if (r.blank < 0 || r.blank >= r.c) invalid("blank {} lies outside [0, {})", r.blank, r.c);
    require_contiguous(x);
    require_elements(targets, r.n * r.s, TN_I64, "targets");
    require_elements(request.input(first + 2), r.n, TN_I64, "input_lengths");
    require_elements(request.input(first + 3), r.n, TN_I64, "target_lengths");
    require_elements(backward ? request.input(5) : request.output(0), r.n, r.dtype, "losses");
    require_elements(backward ? request.input(6) : request.output(1), r.n * r.t * r.states(),
                     r.dtype, "alphas");
    if (backward) {
      require_elements(request.input(0), r.n, r.dtype, "the gradient");
      require_elements(request.output(0), r.t * r.n * r.c, r.dtype, "the output");
    }
    return r;
  }
};

// Returns log(exp(a) + exp(b)), where both may be -infinity.
template <class T>
TN_HD T log_add(T a, T b) {
  const T top = a > b ? a : b;
  if (top == -T(INFINITY)) return top;
  return top + std::log1p(std::exp((a > b ? b : a) - top));
}

// One sequence: its labels, and its steps in the tensor (t, n, c).
template <class T>
struct CtcSequence {
  // The log-probabilities of its step 0, and its `count` labels.
  const T* x;
  const int64_t* labels;
  // The numbers of steps and labels, the elements between two steps, and the class of the blank.
  int64_t steps, count, stride, blank;

  // Returns its number of states.
  TN_HD int64_t states() const { return 2 * count + 1; }
  // Returns the class of a state.
  TN_HD int64_t label(int64_t state) const { return state % 2 ? labels[state / 2] : blank; }
  // Returns the log-probability of the class of a state at a step.
  TN_HD T probability(int64_t step, int64_t state) const { return x[step * stride + label(state)]; }
  // Returns whether a path may go from state - 2 to state: past a blank between two unlike labels.
  TN_HD bool skips(int64_t state) const {
    return state >= 2 && state % 2 && labels[state / 2] != labels[state / 2 - 1];
  }
  // Returns the log-probability of the paths to a state at step 0.
  TN_HD T first_alpha(int64_t state) const {
    return state < 2 ? probability(0, state) : -T(INFINITY);
  }
  // Returns the log-probability of all paths to a state, from the alphas of the step before.
  TN_HD T alpha(const T* before, int64_t step, int64_t state) const {
    T sum = before[state];
    if (state >= 1) sum = log_add(sum, before[state - 1]);
    if (skips(state)) sum = log_add(sum, before[state - 2]);
    return sum + probability(step, state);
  }
  // Returns the log-probability of the paths from a state at the last step.
  TN_HD T last_beta(int64_t state) const {
    return state >= states() - 2 ? probability(steps - 1, state) : -T(INFINITY);
  }
  // Returns the log-probability of all paths from a state, from the betas of the step behind.
  TN_HD T beta(const T* behind, int64_t step, int64_t state) const {
    T sum = behind[state];
    if (state + 1 < states()) sum = log_add(sum, behind[state + 1]);
    if (state + 2 < states() && skips(state + 2)) sum = log_add(sum, behind[state + 2]);
    return sum + probability(step, state);
  }
  // Returns the loss from the alphas of the last step; infinity if no path fits.
  TN_HD T loss(const T* last) const {
    if (steps == 0) return count == 0 ? T(0) : T(INFINITY);
    const T blank_last = last[states() - 1];
    return -(count == 0 ? blank_last : log_add(blank_last, last[states() - 2]));
  }
  // Returns the log-probability of all paths through a state. Both alpha and beta contain that of
  // the step.
  TN_HD T through(T alpha, T beta, int64_t step, int64_t state) const {
    const T both = alpha + beta - probability(step, state);
    return both == both ? both : -T(INFINITY);
  }
  // Returns the gradient of one log-probability; `through` is that of all states of its class.
  TN_HD static T gradient(T g, T x, T through, T loss) {
    const T share = through == -T(INFINITY) ? T(0) : std::exp(through + loss);
    return g * (std::exp(x) - share);
  }
};

}  // namespace tenon::sdk
