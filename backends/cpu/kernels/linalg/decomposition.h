// What the plans of decompositions share. Small matrices of a batch are shared out over the
// threads; of large ones, the products within each are, except in qr, eigh and svd, where each
// matrix stays on one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <tenon/plugins/sdk/requests/decomposition.h>

#include "kernels/linalg/factor.h"
#include "runtime/common.h"

namespace tenon::cpu {

using DecompositionRequest = sdk::DecompositionRequest;

template <class T>
MatrixView<T> row_major(T* data, int64_t columns) {
  return {data, columns, 1};
}

// What may go wrong with a matrix: the number of a pivot, or one of these.
inline constexpr int64_t kFine = -1, kNotFinite = -2, kNoConvergence = -3;

// Throws for the first matrix that has failed.
void require_fine(const std::string& op, const DecompositionRequest& r,
                  const std::vector<int64_t>& outcomes);

// A plan that runs body(run, i, threads) for each matrix i, which takes about `work` multiply-adds
// and returns its outcome. Where the body has a use for threads, `threaded`, large matrices go one
// after the other.
template <class Body>
tn_plan* plan_matrices(const Request& request, const DecompositionRequest& r, double work,
                       bool threaded, Body body) {
  const auto ns = static_cast<uint64_t>(std::min(1e15, 0.5 * work * static_cast<double>(r.count)));
  return sdk::make_plan(
      [op = std::string(request.op()), r, work, threaded, body](const tn_run& run) {
        std::vector<int64_t> outcomes(static_cast<size_t>(r.count), kFine);
        const bool side_by_side = !threaded || (r.count >= thread_count() && work < (1 << 26));
        const auto part = [&](int64_t begin, int64_t end, uint32_t threads) {
          for (int64_t i = begin; i < end; ++i)
            outcomes[static_cast<size_t>(i)] = body(run, i, threads);
        };
        if (side_by_side) {
          const auto grain = std::max<int64_t>(1, static_cast<int64_t>((1 << 16) / (work + 1)));
          parallel_for(r.count, grain,
                       [&](int64_t begin, int64_t end, uint32_t) { part(begin, end, 1); });
        } else {
          part(0, r.count, thread_count());
        }
        require_fine(op, r, outcomes);
      },
      {0, 200 + ns});
}

template <class T>
const T* input_of(const tn_run& run, size_t i, int64_t begin) {
  return static_cast<const T*>(run.inputs[i]) + begin;
}
// NULL where nobody wants it.
template <class T>
T* output_of(const tn_run& run, size_t i, int64_t begin) {
  auto* const whole = static_cast<T*>(run.outputs[i]);
  return whole ? whole + begin : nullptr;
}

inline double cube(int64_t n) {
  const auto size = static_cast<double>(n);
  return size * size * size;
}
inline double volume(int64_t m, int64_t n, int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

// The plan of an operator, which for elements of T is Plan::make<T>(request, r).
template <class Plan>
tn_plan* make_decomposition(tn_device*, const Request& request) {
  const auto r = DecompositionRequest::from(request);
  bool nothing = true;
  for (size_t i = 0; i < request.num_outputs(); ++i)
    nothing = nothing && (!request.has_output(i) || sdk::numel(request.output(i)) == 0);
  if (nothing) return empty_plan();
  return with_float(r.dtype, [&]<class T>(T) { return Plan::template make<T>(request, r); });
}

}  // namespace tenon::cpu
