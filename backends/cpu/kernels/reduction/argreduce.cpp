// Where the largest or smallest element lies along one dimension: the first of equals, and NaN
// before all others.
#include <cmath>
#include <cstring>
#include <type_traits>

#include <Eigen/Core>

#include <tenon/plugins/sdk/requests/reduction.h>

#include "runtime/common.h"

namespace tenon::cpu {
namespace {

template <bool Largest, class T>
bool beats(T x, T best) {
  if constexpr (std::is_floating_point_v<T>)
    return (Largest ? x > best : x < best) | ((x != x) & (best == best));
  return Largest ? x > best : x < best;
}

// Passes NaN on, as beats() does.
template <bool Largest, class T>
using Better =
    std::conditional_t<Largest, Eigen::internal::scalar_max_op<T, T, Eigen::PropagateNaN>,
                       Eigen::internal::scalar_min_op<T, T, Eigen::PropagateNaN>>;

// The best value of a contiguous part, in lanes that vectorise; then its first place.
template <bool Largest, class T>
void best_of_row(const T* x, int64_t begin, int64_t end, T& best, int64_t& where) {
  constexpr bool packets = std::is_floating_point_v<T>;
  constexpr int64_t kBlock = 1024, kLanes = packets ? 256 / sizeof(T) : 32;
  int64_t block = -1;  // where the best value is found at the end
  for (int64_t start = begin; start < end; start += kBlock) {
    int64_t stop = std::min(end, start + kBlock), i = start;
    T top = best;
    if (stop - start >= kLanes) {
      using Lanes = Eigen::Array<T, kLanes, 1>;
      Lanes lanes = Eigen::Map<const Lanes>(x + i);
      for (i += kLanes; i + kLanes <= stop; i += kLanes) {
        if constexpr (packets)
          lanes = lanes.binaryExpr(Eigen::Map<const Lanes>(x + i), Better<Largest, T>());
        else
          for (int64_t k = 0; k < kLanes; ++k)
            lanes[k] = beats<Largest>(x[i + k], lanes[k]) ? x[i + k] : lanes[k];
      }
      for (T lane : lanes) top = beats<Largest>(lane, top) ? lane : top;
    }
    for (; i < stop; ++i) top = beats<Largest>(x[i], top) ? x[i] : top;
    if (!beats<Largest>(top, best)) continue;
    best = top;
    block = start;
  }
  if (block < 0) return;
  for (where = block; x[where] != best && best == best; ++where) {
  }
  while (best != best && x[where] == x[where]) ++where;
}

template <bool Largest, class T>
void rows(const tn_run& run, int64_t outer, int64_t n) {
  auto* x = static_cast<const T*>(run.inputs[0]);
  auto* y = static_cast<int64_t*>(run.outputs[0]);
  parallel_for(outer, std::max<int64_t>(1, kGrain / n), [=](int64_t begin, int64_t end, uint32_t) {
    for (int64_t r = begin; r < end; ++r) {
      T best = x[r * n];
      y[r] = 0;
      best_of_row<Largest>(x + r * n, 1, n, best, y[r]);
    }
  });
}

template <bool Largest, class T>
void columns(const tn_run& run, int64_t outer, int64_t n, int64_t inner) {
  constexpr int64_t kCols = 256;
  auto* x = static_cast<const T*>(run.inputs[0]);
  auto* y = static_cast<int64_t*>(run.outputs[0]);
  int64_t across = (inner + kCols - 1) / kCols;
  parallel_for(outer * across, std::max<int64_t>(1, kGrain / (n * std::min(inner, kCols))),
               [=](int64_t begin, int64_t end, uint32_t) {
                 T best[kCols];
                 int64_t where[kCols];
                 for (int64_t t = begin; t < end; ++t) {
                   int64_t col = t % across * kCols, width = std::min(kCols, inner - col);
                   const T* from = x + t / across * n * inner + col;
                   std::copy_n(from, width, best);
                   std::fill_n(where, width, 0);
                   for (int64_t i = 1; i < n; ++i)
                     for (int64_t k = 0; k < width; ++k) {
                       T value = from[i * inner + k];
                       bool better = beats<Largest>(value, best[k]);
                       best[k] = better ? value : best[k];
                       where[k] = better ? i : where[k];
                     }
                   std::copy_n(where, width, y + t / across * inner + col);
                 }
               });
}

template <bool Largest>
tn_plan* make_argreduce(tn_device*, const Request& request) {
  const auto r = sdk::ArgReduceRequest::from(request);
  require_contiguous(request.input(0));
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_number(sdk::byte_for_bool(r.dtype), [r]<class T>(T) {
    const auto elements = static_cast<double>(r.outer * r.size * r.inner);
    return sdk::make_plan(
        [r](const tn_run& run) {
          r.inner == 1 ? rows<Largest, T>(run, r.outer, r.size)
                       : columns<Largest, T>(run, r.outer, r.size, r.inner);
        },
        {0, 30 + static_cast<uint64_t>((r.inner == 1 ? 0.3 : 1.0) * elements)});
  });
}

const sdk::Kernel largest({"argmax"}, make_argreduce<true>);
const sdk::Kernel smallest({"argmin"}, make_argreduce<false>);

}  // namespace
}  // namespace tenon::cpu
