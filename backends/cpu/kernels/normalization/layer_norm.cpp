// "layer_norm" and "rms_norm", which is the same without a mean.
#include <cmath>

#include <tenon/plugins/sdk/requests/normalization.h>

#include "kernels/normalization/rows.h"
#include "runtime/common.h"
#include "simd/packet.h"

namespace tenon::cpu {
namespace {

struct LayerNorm : sdk::LayerNormRequest {
  explicit LayerNorm(const Request& request) : LayerNormRequest(from(request)) {}

  bool half() const { return has_16_bits(dtype); }
  int64_t grain() const { return std::max<int64_t>(1, kGrain / 2 / std::max<int64_t>(1, size)); }
  uint64_t cost() const {
    return 100 + static_cast<uint64_t>(rows * (size / 8 + 20)) * sdk::dtype_size(dtype) / 4;
  }
};

// Mean, and 1 / sqrt(variance + eps); without a mean, the squares of the elements themselves.
template <class T>
std::pair<T, T> statistics(const LayerNorm& s, const T* x) {
  RowMoments moments{};
  if (s.centered)
    moments = moments_of_row(s.size, x);
  else
    moments.squares = sums_of_row<1, T>(s.size, [&](int64_t i, auto part, Vec<T>(&acc)[1]) {
      const Vec<T> v = load(x + i, part);
      acc[0] += v * v;
    })[0];
  const T variance = static_cast<T>(moments.squares / static_cast<double>(s.size));
  return {static_cast<T>(moments.mean), T(1) / std::sqrt(variance + static_cast<T>(s.eps))};
}

template <class T>
void forward(const LayerNorm& s, const RowBuffers<T>& buffers, const tn_run& run) {
  auto* own = static_cast<T*>(run.workspace);
  auto parameter = [&](bool there, int i, T* buffer) {
    return there ? RowsIn<T>(run.inputs[i], s.parameters).read(0, s.size, buffer) : nullptr;
  };
  const T* weight = parameter(s.weight, 1, own);
  const T* bias = parameter(s.bias, 2, own + (own ? s.size : 0));
  const RowsIn<T> x(run.inputs[0], s.dtype);
  const RowsOut<T> y(run.outputs[0], s.dtype);
  auto *means = s.centered ? static_cast<T*>(run.outputs[1]) : nullptr,
       *invstds = static_cast<T*>(run.outputs[s.centered ? 2 : 1]);
  parallel_for(s.rows, s.grain(), [&](int64_t begin, int64_t end, uint32_t slot) {
    T* buffer = buffers.of(run, slot);
    for (int64_t r = begin; r < end; ++r) {
      const T* xr = x.read(r * s.size, s.size, buffer);
      T* yr = y.place(r * s.size, buffer);
      const auto [mean, invstd] = statistics(s, xr);
      for_lanes<T>(s.size, [&, mean = mean, invstd = invstd](int64_t i, auto part) {
        Vec<T> v = (load(xr + i, part) - mean) * invstd;
        if (weight) v *= load(weight + i, part);
        if (bias) v += load(bias + i, part);
        store<T>(yr + i, v, part);
      });
      y.write(r * s.size, s.size, yr);
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

// One row of g and x, and of gx, which may be null, or the row of g itself.
template <class T>
struct BackwardRow {
  const T *g, *x;
  T mean, invstd;
  T* gx;
};
// Writes gx, and adds what the row adds to gweight and gbias to `gw` and `gb`, which are both there
// or both null.
template <class T>
void backward_row(const LayerNorm& s, const BackwardRow<T>& row, const T* weight, T* gw, T* gb) {
  const auto [g, x, mean, invstd, gx] = row;
  T a = 0, b = 0;
  if (gx) {
    const auto sums = sums_of_row<2, T>(s.size, [&, g = g, x = x, mean = mean, invstd = invstd](
                                                    int64_t i, auto part, Vec<T>(&acc)[2]) {
      Vec<T> k = load(g + i, part);
      if (weight) k *= load(weight + i, part);
      acc[0] += k;
      acc[1] += k * ((load(x + i, part) - mean) * invstd);
    });
    const double size = static_cast<double>(s.size);
    if (s.centered) a = static_cast<T>(sums[0] / size);
    b = static_cast<T>(sums[1] / size);
  }
  for_lanes<T>(s.size,
               [&, g = g, x = x, mean = mean, invstd = invstd, gx = gx](int64_t i, auto part) {
                 const Vec<T> gi = load(g + i, part), h = (load(x + i, part) - mean) * invstd;
                 if (gx) {
                   const Vec<T> k = weight ? gi * load(weight + i, part) : gi;
                   store<T>(gx + i, (k - a - h * b) * invstd, part);
                 }
                 if (!gw) return;
                 store<T>(gw + i, load(gw + i, part) + gi * h, part);
                 if (s.centered) store<T>(gb + i, load(gb + i, part) + gi, part);
               });
}

// Where the parts of the workspace of a gradient begin: sums of gweight and gbias for each chunk of
// rows, in f64 and in T, then weight and rows in T where they are of a half type.
template <class T>
struct BackwardSpace {
  int64_t chunks, size;
  bool half;
  uint64_t totals() const { return static_cast<uint64_t>(chunks * 2 * size) * sizeof(double); }
  uint64_t blocks() const { return static_cast<uint64_t>(chunks * 2 * size) * sizeof(T); }
  RowBuffers<T> buffers() const { return half ? RowBuffers<T>{size, 2 * size} : RowBuffers<T>{}; }
  uint64_t bytes() const { return totals() + blocks() + buffers().bytes(); }
};

// With h = (x - mean) invstd: gweight = sum of g h, gbias = sum of g, gx = invstd (g w - mean of g
// w - h * mean of g w h). Of rms_norm, the mean of g w is not subtracted, as there is no mean of x.
template <class T>
void backward(const LayerNorm& s, const BackwardSpace<T>& space, const tn_run& run) {
  auto* totals = static_cast<double*>(run.workspace);
  auto* blocks = reinterpret_cast<T*>(totals + space.chunks * 2 * s.size);
  tn_run rows = run;
  rows.workspace = blocks + space.chunks * 2 * s.size;
  auto* own = static_cast<T*>(rows.workspace);
  const RowsIn<T> g(run.inputs[0], s.dtype), x(run.inputs[1], s.dtype);
  const T* weight =
      s.weight ? RowsIn<T>(run.inputs[2], s.parameters).read(0, s.size, own) : nullptr;
  auto *means = s.centered ? static_cast<const T*>(run.inputs[3]) : nullptr,
       *invstds = static_cast<const T*>(run.inputs[s.centered ? 4 : 3]);
  const RowsOut<T> gx(run.outputs[0], s.dtype), gweight(run.outputs[1], s.parameters),
      gbias(s.centered ? run.outputs[2] : nullptr, s.parameters);
  const bool sums = gweight || gbias;
  // Each chunk of rows has sums of its own, whichever thread works on it.
  parallel_for(space.chunks, 1, [&](int64_t begin, int64_t end, uint32_t slot) {
    T* buffer = space.buffers().of(rows, slot);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      double* total = totals + chunk * 2 * s.size;
      T *gw = blocks + chunk * 2 * s.size, *gb = gw + s.size;
      if (sums) {
        std::fill_n(total, 2 * s.size, 0.0);
        std::fill_n(gw, 2 * s.size, T(0));
      }
      const int64_t first = chunk * s.rows / space.chunks,
                    last = (chunk + 1) * s.rows / space.chunks;
      for (int64_t r = first; r < last; ++r) {
        const int64_t at = r * s.size;
        BackwardRow<T> row{
            g.read(at, s.size, buffer), x.read(at, s.size, buffer + (buffer ? s.size : 0)),
            means ? means[r] : T(0), invstds[r], gx ? gx.place(at, buffer) : nullptr};
        backward_row(s, row, weight, sums ? gw : nullptr, gb);
        if (gx) gx.write(at, s.size, row.gx);
        if (sums && (r + 1 == last || (r - first) % kRowsOfBlock == kRowsOfBlock - 1))
          settle(2 * s.size, gw, total);
      }
    }
  });
  for (int which = 0; which < 2; ++which)
    if (const auto& out = which ? gbias : gweight) {
      T* to = out.place(0, blocks);
      for (int64_t i = 0; i < s.size; ++i) {
        double sum = 0;
        for (int64_t chunk = 0; chunk < space.chunks; ++chunk)
          sum += totals[(chunk * 2 + which) * s.size + i];
        to[i] = static_cast<T>(sum);
      }
      out.write(0, s.size, to);
    }
}

tn_plan* make_layer_norm(tn_device*, const Request& request) {
  const LayerNorm s(request);
  if (s.rows == 0) return empty_plan();
  return with_float(computed_as(s.dtype), [s]<class T>(T) {
    const auto buffers = s.half() ? RowBuffers<T>{2 * s.size, s.size} : RowBuffers<T>{};
    return sdk::make_plan([=](const tn_run& run) { forward<T>(s, buffers, run); },
                          {buffers.bytes(), s.cost()});
  });
}

tn_plan* make_layer_norm_backward(tn_device*, const Request& request) {
  const LayerNorm s(request);
  const int64_t chunks = std::clamp<int64_t>(s.rows / s.grain(), 1, thread_count());
  return with_float(computed_as(s.dtype), [=]<class T>(T) {
    const BackwardSpace<T> space{chunks, s.size, s.half()};
    return sdk::make_plan([=](const tn_run& run) { backward<T>(s, space, run); },
                          {space.bytes(), 2 * s.cost()});
  });
}

const sdk::Kernel layer_norm({"layer_norm", "rms_norm"}, make_layer_norm);
const sdk::Kernel layer_norm_backward({"layer_norm_backward", "rms_norm_backward"},
                                      make_layer_norm_backward);

}  // namespace
}  // namespace tenon::cpu
