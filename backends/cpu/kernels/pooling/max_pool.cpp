#include "kernels/pooling/channels_last.h"
#include "kernels/pooling/pool.h"

namespace tenon::cpu {
namespace {

// What a slot of the parallel loop needs for one row of outputs.
template <class T>
struct RowBuffers {
  T* best;
  int32_t* index;
  static uint64_t bytes(int64_t n) {
    return (static_cast<uint64_t>(n) * (sizeof(T) + sizeof(int32_t)) + 63) / 64 * 64;
  }
  RowBuffers(void* workspace, uint32_t slot, int64_t n)
      : best(reinterpret_cast<T*>(static_cast<char*>(workspace) + slot * bytes(n))),
        index(reinterpret_cast<int32_t*>(best + n)) {}
};

// One tap of all windows of a row. A NaN always wins, the last of several. `Step` 0 is any stride.
template <class T, int Step, bool Indices>
void take_tap(int64_t first, int64_t last, const T* from, int64_t step, int32_t position, T* best,
              int32_t* index) {
  int64_t s = Step ? Step : step;
  for (int64_t k = first; k < last; ++k) {
    T v = from[k * s];
    bool take = v > best[k] || v != v;
    best[k] = take ? v : best[k];
    if constexpr (Indices) index[k] = take ? position + static_cast<int32_t>(k * s) : index[k];
  }
}

template <class T>
using TakeTap = void (*)(int64_t, int64_t, const T*, int64_t, int32_t, T*, int32_t*);

template <class T, bool Indices>
TakeTap<T> take_tap_for(int64_t step) {
  return step == 1   ? take_tap<T, 1, Indices>
         : step == 2 ? take_tap<T, 2, Indices>
                     : take_tap<T, 0, Indices>;
}

// The first element on the image at or after `at`, in steps of the dilation.
int64_t first_inside(int64_t at, int64_t dilation) {
  return at >= 0 ? at : at + (dilation - 1 - at) / dilation * dilation;
}

template <class T>
void max_plane(const Pool& p, const T* x, T* y, int64_t* indices, RowBuffers<T> row) {
  const auto [left, right] = p.column_taps();
  auto tap = indices ? take_tap_for<T, true>(p.sw) : take_tap_for<T, false>(p.sw);
  for (int64_t r = 0; r < p.oh; ++r) {
    int64_t top = first_inside(r * p.sh - p.ph, p.dh);
    for (int64_t k = 0; k < p.ow; ++k) {
      row.best[k] = -std::numeric_limits<T>::infinity();
      row.index[k] = static_cast<int32_t>(top * p.w + first_inside(k * p.sw - p.pw, p.dw));
    }
    for (int64_t i = top, last = std::min(p.h, r * p.sh - p.ph + (p.kh - 1) * p.dh + 1); i < last;
         i += p.dh)
      for (int64_t j = left; j < right; ++j) {
        auto [first, end] = p.columns(j);
        int64_t position = i * p.w + j * p.dw - p.pw;
        tap(first, end, x + position, p.sw, static_cast<int32_t>(position), row.best, row.index);
      }
    std::copy(row.best, row.best + p.ow, y + r * p.ow);
    if (indices) std::copy(row.index, row.index + p.ow, indices + r * p.ow);
  }
}

template <class T>
void max_halves(const Pool& p, const T* x, T* y) {
  auto larger = [](Vec<T> a, Vec<T> b) { return ((b > a) | (b != b)) ? b : a; };
  for (int64_t r = 0; r < p.oh; ++r) {
    const T *a = x + 2 * r * p.w, *b = a + p.w;
    for_lanes<T>(p.ow, [&](int64_t i, auto part) {
      auto tops =
          split_pairs<T>(larger(first_of_pair(a + 2 * i, part), first_of_pair(b + 2 * i, part)),
                         larger(second_of_pair(a + 2 * i, part), second_of_pair(b + 2 * i, part)));
      store<T>(y + r * p.ow + i, larger(tops.even, tops.odd), part);
    });
  }
}

// The same with indices. `taps` has room for a row of outputs: which of the four each one is.
template <class T>
void max_halves_at(const Pool& p, const T* x, T* y, int64_t* indices, T* taps) {
  for (int64_t r = 0; r < p.oh; ++r) {
    const T *a = x + 2 * r * p.w, *b = a + p.w;
    for_lanes<T>(p.ow, [&](int64_t i, auto part) {
      const auto above =
          split_pairs<T>(first_of_pair(a + 2 * i, part), second_of_pair(a + 2 * i, part));
      const auto below =
          split_pairs<T>(first_of_pair(b + 2 * i, part), second_of_pair(b + 2 * i, part));
      Vec<T> best = above.even, tap{};
      const auto take = [&](Vec<T> v, T number) {
        const auto wins = (v > best) | (v != v);
        best = wins ? v : best;
        tap = wins ? Vec<T>{} + number : tap;
      };
      take(above.odd, 1);
      take(below.even, 2);
      take(below.odd, 3);
      store<T>(y + r * p.ow + i, best, part);
      store<T>(taps + i, tap, part);
    });
    int64_t* row = indices + r * p.ow;
    for (int64_t k = 0; k < p.ow; ++k) {
      const auto tap = static_cast<int32_t>(taps[k]);
      row[k] = (2 * r + (tap >> 1)) * p.w + 2 * k + (tap & 1);
    }
  }
}

tn_plan* make_max(tn_device*, const Request& request) {
  if (pools_channels_last(request)) return make_max_channels_last(request);
  auto &x = request.input(0), &y = request.output(0);
  Pool p(request, x, y, PoolWindows::dilated);
  require_contiguous(x);
  bool indices = request.has_output(1);
  if (indices) sdk::require_indices(request.output(1), y);
  if (p.in_size() > INT32_MAX) sdk::unsupported("a plane of more than 2^31 elements");
  if (sdk::numel(y) == 0) return empty_plan();
  return with_float(x.dtype, [&]<class T>(T) {
    return sdk::make_plan(
        [p, indices](const tn_run& run) {
          auto* x = static_cast<const T*>(run.inputs[0]);
          auto* y = static_cast<T*>(run.outputs[0]);
          auto* at = indices ? static_cast<int64_t*>(run.outputs[1]) : nullptr;
          p.for_planes([&](int64_t i, uint32_t slot) {
            const T* from = x + i * p.in_size();
            T* to = y + i * p.out_size();
            int64_t* at_plane = at ? at + i * p.out_size() : nullptr;
            const RowBuffers<T> row(run.workspace, slot, p.ow);
            if (!p.halves())
              max_plane(p, from, to, at_plane, row);
            else if (at)
              max_halves_at(p, from, to, at_plane, row.best);
            else
              max_halves(p, from, to);
          });
        },
        {RowBuffers<T>::bytes(p.ow) * thread_count(), p.cost(x.dtype)});
  });
}

tn_plan* make_max_backward(tn_device*, const Request& request) {
  if (pools_channels_last(request)) return make_max_backward_channels_last(request);
  auto &g = request.input(0), &indices = request.input(1), &gx = request.output(0);
  Pool p(request, gx, g, PoolWindows::dilated);
  sdk::require_indices(indices, g);
  require_contiguous(g);
  require_contiguous(indices);
  if (sdk::numel(gx) == 0) return empty_plan();
  return with_float(g.dtype, [&]<class T>(T) {
    return sdk::make_plan(
        [p](const tn_run& run) {
          auto* g = static_cast<const T*>(run.inputs[0]);
          auto* indices = static_cast<const int64_t*>(run.inputs[1]);
          auto* gx = static_cast<T*>(run.outputs[0]);
          p.for_planes([&](int64_t i, uint32_t) {
            T* to = gx + i * p.in_size();
            std::fill(to, to + p.in_size(), T(0));
            for (int64_t k = i * p.out_size(); k < (i + 1) * p.out_size(); ++k) {
              require_inside(indices[k], p.in_size());
              to[indices[k]] += g[k];
            }
          });
        },
        {0, p.cost(g.dtype)});
  });
}

const sdk::Kernel max_pool2d({"max_pool2d"}, make_max);
const sdk::Kernel max_pool2d_backward({"max_pool2d_backward"}, make_max_backward);

}  // namespace
}  // namespace tenon::cpu
