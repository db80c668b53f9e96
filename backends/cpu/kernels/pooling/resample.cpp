// Each element of the result is a sum of a few elements of x along one dimension, with weights.
#include <tenon/plugins/sdk/requests/resample.h>

#include "kernels/indexing/index.h"
#include "simd/packet.h"

namespace tenon::cpu {
namespace {

using Resample = sdk::ResampleRequest;

// Columns of `inner` that are one task of a gradient, whose rows are added up in order.
constexpr int64_t kColumns = 512;

int64_t elements(const Resample& r) { return r.outer * r.count * r.inner; }

void check_places(const Resample& r, const int64_t* place) {
  for (int64_t i = 0; i < r.taps * r.count; ++i) checked(place[i], r.size, i);
}

// A line where neighbours along the dimension lie side by side.
template <class T>
void resample_line(const Resample& r, const T* x, const int64_t* place, const T* weight, T* y) {
  std::fill_n(y, r.count, T(0));
  for (int64_t k = 0; k < r.taps; ++k, place += r.count, weight += r.count)
    for (int64_t i = 0; i < r.count; ++i) y[i] += weight[i] * x[place[i]];
}

// Result `i` of a block of rows of `inner` elements.
template <class T>
void resample_row(const Resample& r, int64_t i, const T* x, const int64_t* place, const T* weight,
                  T* y) {
  for_lanes<T>(r.inner, [&](int64_t at, auto part) {
    Vec<T> sum{};
    for (int64_t k = i; k < r.taps * r.count; k += r.count)
      sum += splat(weight[k]) * load(x + place[k] * r.inner + at, part);
    store<T>(y + at, sum, part);
  });
}

template <class T>
void forward(const Resample& r, const tn_run& run) {
  auto *x = static_cast<const T*>(run.inputs[0]), *weight = static_cast<const T*>(run.inputs[2]);
  auto* place = static_cast<const int64_t*>(run.inputs[1]);
  auto* y = static_cast<T*>(run.outputs[0]);
  check_places(r, place);
  if (r.inner == 1)
    return parallel_for(r.outer, std::max<int64_t>(1, kGrain / (1 + 2 * r.taps * r.count)),
                        [&](int64_t begin, int64_t end, uint32_t) {
                          for (int64_t o = begin; o < end; ++o)
                            resample_line(r, x + o * r.size, place, weight, y + o * r.count);
                        });
  parallel_for(r.outer * r.count, std::max<int64_t>(1, kGrain / (1 + r.taps * r.inner)),
               [&](int64_t begin, int64_t end, uint32_t) {
                 for (int64_t t = begin; t < end; ++t)
                   resample_row(r, t % r.count, x + t / r.count * r.size * r.inner, place, weight,
                                y + t * r.inner);
               });
}

// Adds what `n` columns of g, in rows of `inner`, give to those of gx.
template <class T>
void add_columns(const Resample& r, int64_t n, const T* g, const int64_t* place, const T* weight,
                 T* gx) {
  for (int64_t i = 0; i < r.size; ++i) std::fill_n(gx + i * r.inner, n, T(0));
  for (int64_t k = 0; k < r.taps; ++k, place += r.count, weight += r.count)
    for (int64_t i = 0; i < r.count; ++i) {
      T* to = gx + place[i] * r.inner;
      const T *from = g + i * r.inner, factor = weight[i];
      if (n == 1) {
        *to += factor * *from;
        continue;
      }
      for_lanes<T>(n, [&](int64_t at, auto part) {
        store<T>(to + at, load(to + at, part) + factor * load(from + at, part), part);
      });
    }
}

template <class T>
void backward(const Resample& r, const tn_run& run) {
  auto *g = static_cast<const T*>(run.inputs[0]), *weight = static_cast<const T*>(run.inputs[2]);
  auto* place = static_cast<const int64_t*>(run.inputs[1]);
  auto* gx = static_cast<T*>(run.outputs[0]);
  check_places(r, place);
  const int64_t blocks = (r.inner + kColumns - 1) / kColumns,
                work = r.taps * r.count * std::min(r.inner, kColumns);
  parallel_for(r.outer * blocks, std::max<int64_t>(1, kGrain / (1 + work)),
               [&](int64_t begin, int64_t end, uint32_t) {
                 for (int64_t t = begin; t < end; ++t) {
                   const int64_t o = t / blocks, first = t % blocks * kColumns;
                   add_columns(r, std::min(kColumns, r.inner - first),
                               g + o * r.count * r.inner + first, place, weight,
                               gx + o * r.size * r.inner + first);
                 }
               });
}

tn_plan* make_resample(tn_device*, const Request& request) {
  const auto r = Resample::from(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  const auto cost = 100 + static_cast<uint64_t>(elements(r) / 4 * r.taps);
  return with_float(r.dtype, [&]<class T>(T) {
    const bool back = request.op() == "resample_backward";
    return sdk::make_plan(
        [r, back](const tn_run& run) { back ? backward<T>(r, run) : forward<T>(r, run); },
        {0, cost});
  });
}
const sdk::Kernel resample({"resample", "resample_backward"}, make_resample);

}  // namespace
}  // namespace tenon::cpu
