#include <cmath>

#include <tenon/plugins/sdk/requests/normalization.h>

#include "runtime/common.h"
#include "simd/packet.h"

namespace tenon::cpu {
namespace {

struct LayerNorm : sdk::LayerNormRequest {
  explicit LayerNorm(const Request& request) : LayerNormRequest(from(request)) {}

  int64_t grain() const { return std::max<int64_t>(1, kGrain / 2 / std::max<int64_t>(1, size)); }
  uint64_t cost() const {
    return 100 + static_cast<uint64_t>(rows * (size / 8 + 20)) * sdk::dtype_size(dtype) / 4;
  }
};

template <class T>
void forward(const LayerNorm& s, const tn_run& run) {
  auto* x = static_cast<const T*>(run.inputs[0]);
  auto* weight = s.weight ? static_cast<const T*>(run.inputs[1]) : nullptr;
  auto* bias = s.bias ? static_cast<const T*>(run.inputs[2]) : nullptr;
  auto *y = static_cast<T*>(run.outputs[0]), *means = static_cast<T*>(run.outputs[1]),
       *invstds = static_cast<T*>(run.outputs[2]);
  parallel_for(s.rows, s.grain(), [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t r = begin; r < end; ++r) {
      const T* xr = x + r * s.size;
      T* yr = y + r * s.size;
      const RowMoments moments = moments_of_row(s.size, xr);
      const T mean = static_cast<T>(moments.mean),
              variance = static_cast<T>(moments.squares / static_cast<double>(s.size)),
              invstd = T(1) / std::sqrt(variance + static_cast<T>(s.eps));
      for_lanes<T>(s.size, [&](int64_t i, auto part) {
        Vec<T> v = (load(xr + i, part) - mean) * invstd;
        if (weight) v *= load(weight + i, part);
        if (bias) v += load(bias + i, part);
        store<T>(yr + i, v, part);
      });
      if (means) means[r] = mean;
      if (invstds) invstds[r] = invstd;
    }
  });
}

// The gradients of weight and bias are added up for so many rows, and then in f64.
constexpr int64_t kRowsOfBlock = 256;

template <class T>
void settle(int64_t n, T* block, double* total) {
  for (int64_t i = 0; i < n; ++i) total[i] += static_cast<double>(block[i]), block[i] = 0;
}

// Writes row r of gx, and adds what the row adds to gweight and gbias to `gw` and `gb`; either may
// be null.
template <class T>
void backward_row(const LayerNorm& s, int64_t r, const T* g, const T* x, const T* weight, T mean,
                  T invstd, T* gx, T* gw, T* gb) {
  const T *gr = g + r * s.size, *xr = x + r * s.size;
  T scale = T(1) / static_cast<T>(s.size), a = 0, b = 0;
  auto scaled = [&](int64_t i, auto part) {
    return weight ? load(gr + i, part) * load(weight + i, part) : load(gr + i, part);
  };
  if (gx) {
    a = scale * sum_row<T>(s.size, [&](int64_t i, auto part) { return scaled(i, part); });
    b = scale * sum_row<T>(s.size, [&](int64_t i, auto part) {
          return scaled(i, part) * ((load(xr + i, part) - mean) * invstd);
        });
  }
  for_lanes<T>(s.size, [&](int64_t i, auto part) {
    Vec<T> h = (load(xr + i, part) - mean) * invstd;
    if (gx) store<T>(gx + r * s.size + i, (scaled(i, part) - a - h * b) * invstd, part);
    if (!gw) return;
    Vec<T> gi = load(gr + i, part);
    store<T>(gw + i, load(gw + i, part) + gi * h, part);
    store<T>(gb + i, load(gb + i, part) + gi, part);
  });
}

// With h = (x - mean) invstd: gweight = sum of g h, gbias = sum of g, gx = invstd (g w - mean of g
// w - h * mean of g w h).
template <class T>
void backward(const LayerNorm& s, int64_t chunks, const tn_run& run) {
  auto *g = static_cast<const T*>(run.inputs[0]), *x = static_cast<const T*>(run.inputs[1]);
  auto* weight = s.weight ? static_cast<const T*>(run.inputs[2]) : nullptr;
  auto *means = static_cast<const T*>(run.inputs[3]),
       *invstds = static_cast<const T*>(run.inputs[4]);
  auto *gx = static_cast<T*>(run.outputs[0]), *gweight = static_cast<T*>(run.outputs[1]),
       *gbias = static_cast<T*>(run.outputs[2]);
  bool sums = gweight || gbias;
  auto* totals = static_cast<double*>(run.workspace);
  auto* blocks = reinterpret_cast<T*>(totals + chunks * 2 * s.size);
  // Each chunk of rows has sums of its own, whichever thread works on it.
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      double* total = totals + chunk * 2 * s.size;
      T *gw = blocks + chunk * 2 * s.size, *gb = gw + s.size;
      if (sums) {
        std::fill_n(total, 2 * s.size, 0.0);
        std::fill_n(gw, 2 * s.size, T(0));
      }
      const int64_t first = chunk * s.rows / chunks, last = (chunk + 1) * s.rows / chunks;
      for (int64_t r = first; r < last; ++r) {
        backward_row(s, r, g, x, weight, means[r], invstds[r], gx, sums ? gw : nullptr, gb);
        if (sums && (r + 1 == last || (r - first) % kRowsOfBlock == kRowsOfBlock - 1))
          settle(2 * s.size, gw, total);
      }
    }
  });
  for (int which = 0; which < 2; ++which)
    if (T* out = which ? gbias : gweight)
      for (int64_t i = 0; i < s.size; ++i) {
        double sum = 0;
        for (int64_t chunk = 0; chunk < chunks; ++chunk)
          sum += totals[(chunk * 2 + which) * s.size + i];
        out[i] = static_cast<T>(sum);
      }
}

tn_plan* make_forward(tn_device*, const Request& request) {
  const LayerNorm s(request);
  if (s.rows == 0) return empty_plan();
  return with_float(s.dtype, [s]<class T>(T) {
    return sdk::make_plan([s](const tn_run& run) { forward<T>(s, run); }, {0, s.cost()});
  });
}

tn_plan* make_backward(tn_device*, const Request& request) {
  const LayerNorm s(request);
  const int64_t chunks = std::clamp<int64_t>(s.rows / s.grain(), 1, thread_count());
  return with_float(s.dtype, [=]<class T>(T) {
    return sdk::make_plan(
        [=](const tn_run& run) { backward<T>(s, chunks, run); },
        {static_cast<uint64_t>(chunks * 2 * s.size) * (sizeof(double) + sizeof(T)), 2 * s.cost()});
  });
}

const sdk::Kernel registration({"layer_norm"}, make_forward);
const sdk::Kernel backward_registration({"layer_norm_backward"}, make_backward);

}  // namespace
}  // namespace tenon::cpu
