// What all optimizer steps share: one pass over the memory of all parameters at once, shared out by
// elements, whatever tensor they are in.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include <tenon/plugins/sdk/optimizer_steps.h>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cpu {

// The n parameters laid end to end.
class Segments {
 public:
  Segments(const Request& request, size_t n) : starts_(1, 0) {
    for (size_t i = 0; i < n; ++i) starts_.push_back(starts_.back() + sdk::numel(request.input(i)));
  }
  int64_t total() const { return starts_.back(); }

  // f(tensor, begin, end) for each piece of [begin, end), in parallel.
  template <class F>
  void each(F&& f) const {
    parallel_for(total(), kGrain / 2, [&](int64_t begin, int64_t end, uint32_t) {
      size_t i = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) -
                                     starts_.begin()) -
                 1;
      for (; begin < end; ++i) {
        int64_t stop = std::min(end, starts_[i + 1]);
        if (begin < stop) f(i, begin - starts_[i], stop - starts_[i]);
        begin = std::max(begin, stop);
      }
    });
  }

 private:
  std::vector<int64_t> starts_;
};

// The elements of a parameter's tensors that `memory` points to, as f32: brought there and back
// tile by tile. All but the gradient, tensor 1, are changed.
template <class Step>
void step_in_f32(tn_dtype dtype, char* const* memory, size_t tensors, int64_t n, Step&& step) {
  constexpr int64_t kTile = 1024;
  const ConvertRow widen = convert_row(TN_F32, dtype), round = convert_row(dtype, TN_F32);
  alignas(64) float tiles[5][kTile];
  float* const x[] = {tiles[0], tiles[1], tiles[2], tiles[3], tiles[4]};
  for (int64_t begin = 0; begin < n; begin += kTile) {
    const int64_t count = std::min(kTile, n - begin), at = begin * 2;
    for (size_t t = 0; t < tensors; ++t) widen(count, x[t], memory[t] + at);
    step(x, count);
    for (size_t t = 0; t < tensors; ++t)
      if (t != 1) round(count, memory[t] + at, x[t]);
  }
}

// Applies a step to n elements; x[0] is a part of a parameter, x[1] of its gradient, then of its
// state. `step` is a copy, so that no store to a tensor can change its numbers.
template <class Step, class T = typename Step::T>
void step_row(Step step, T* const* x, int64_t n) {
  T* at[Step::kTensors];
  std::copy_n(x, Step::kTensors, at);
  TN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    T one[Step::kTensors];
#pragma GCC unroll 5
    for (int t = 0; t < Step::kTensors; ++t) one[t] = at[t][i];
    step(one);
#pragma GCC unroll 5
    for (int t = 0; t < Step::kTensors; ++t)
      if (t != 1) at[t][i] = one[t];
  }
}

// The plan of Step for all parameters. `ns` is the time of an element on one core while the tensors
// are in its cache.
template <class Step, class R>
tn_plan* plan_of(const Request& request, const R& r, double ns) {
  using T = typename Step::T;
  const Segments segments(request, r.n);
  const size_t tensors = request.num_inputs() / r.n;
  const auto cost =
      50 + 5 * r.n + static_cast<uint64_t>(ns * static_cast<double>(segments.total()));
  auto run = [=](const tn_run& run) {
    const Step step{r.template numbers<T>(run.scalars)};
    const auto size = static_cast<int64_t>(sdk::dtype_size(r.dtype));
    segments.each([&](size_t i, int64_t begin, int64_t end) {
      char* memory[5];
      for (size_t t = 0; t < tensors; ++t)
        memory[t] = static_cast<char*>(run.inputs[t * r.n + i]) + begin * size;
      if constexpr (std::is_same_v<T, float>) {
        if (has_16_bits(r.dtype))
          return step_in_f32(r.dtype, memory, tensors, end - begin,
                             [&](float* const* x, int64_t n) { step_row(step, x, n); });
      }
      T* x[5];
      for (size_t t = 0; t < tensors; ++t) x[t] = reinterpret_cast<T*>(memory[t]);
      step_row(step, x, end - begin);
    });
  };
  return sdk::make_plan(std::move(run), {0, cost});
}

}  // namespace tenon::cpu
