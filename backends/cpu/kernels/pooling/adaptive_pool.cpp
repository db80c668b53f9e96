// Average pooling over windows that follow from the size of the result, and its gradient.
#include "kernels/pooling/channels_last.h"
#include "kernels/pooling/pool.h"

namespace tenon::cpu {
namespace {

// Rows or columns that output i of n covers.
struct Window {
  int64_t begin, end;
  Window(int64_t i, int64_t n, int64_t size)
      : begin(i * size / n), end(((i + 1) * size + n - 1) / n) {}
  int64_t size() const { return end - begin; }
};

// The mean of the whole plane, without the divisions for windows, which take longer than the sum of
// a small plane.
template <class T>
T mean_of_plane(const Pool& p, const T* x) {
  const auto sum = sums_of_row<1, T>(
      p.in_size(), [&](int64_t i, auto part, Vec<T>(&acc)[1]) { acc[0] += load(x + i, part); });
  return static_cast<T>(sum[0] / static_cast<double>(p.in_size()));
}

// Means of planes of at most kSumBlock elements, a packet of them at once; of fewer too, so that a
// plane has the bits that it has among others.
template <class T>
void means_of_planes(int64_t planes, int64_t n, const T* x, T* y) {
  constexpr int64_t w = kWidth<T>;
  for (int64_t i = 0; i < planes; i += w, x += w * n, y += w) {
    const int64_t some = std::min(w, planes - i);
    Vec<T> lanes[w]{};
    for (int64_t k = 0; k < some; ++k) {
      const T* const plane = x + k * n;
      Vec<T> sum[1];
      sum_block<1, T>(
          0, n,
          [plane](int64_t at, auto part, Vec<T>(&acc)[1]) { acc[0] += load(plane + at, part); },
          sum);
      lanes[k] = sum[0];
    }
    transpose<T>(lanes);
    for (int64_t half = w / 2; half > 0; half /= 2)
      for (int64_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
    T means[w];
    store(means, lanes[0]);
    for (T& mean : means) mean = static_cast<T>(static_cast<double>(mean) / static_cast<double>(n));
    std::copy_n(means, some, y);
  }
}

template <class T>
void adaptive_plane(const Pool& p, const T* x, T* y) {
  if (p.out_size() == 1) {
    *y = mean_of_plane(p, x);
    return;
  }
  for (int64_t r = 0; r < p.oh; ++r) {
    Window rows(r, p.oh, p.h);
    for (int64_t k = 0; k < p.ow; ++k) {
      Window columns(k, p.ow, p.w);
      double sum = 0;
      if (columns.size() == p.w) {
        sum = static_cast<double>(sum_row<T>(rows.size() * p.w, [&](int64_t i, auto part) {
          return load(x + rows.begin * p.w + i, part);
        }));
      } else {
        for (int64_t i = rows.begin; i < rows.end; ++i)
          for (int64_t j = columns.begin; j < columns.end; ++j)
            sum += static_cast<double>(x[i * p.w + j]);
      }
      y[r * p.ow + k] = static_cast<T>(sum / static_cast<double>(rows.size() * columns.size()));
    }
  }
}

template <class T>
void adaptive_plane_backward(const Pool& p, const T* g, T* gx) {
  if (p.out_size() == 1) {
    std::fill_n(gx, p.in_size(), *g / static_cast<T>(p.in_size()));
    return;
  }
  std::fill(gx, gx + p.in_size(), T(0));
  for (int64_t r = 0; r < p.oh; ++r) {
    Window rows(r, p.oh, p.h);
    for (int64_t k = 0; k < p.ow; ++k) {
      Window columns(k, p.ow, p.w);
      T share = g[r * p.ow + k] / static_cast<T>(rows.size() * columns.size());
      for (int64_t i = rows.begin; i < rows.end; ++i)
        for (int64_t j = columns.begin; j < columns.end; ++j) gx[i * p.w + j] += share;
    }
  }
}

tn_plan* make_adaptive(tn_device*, const Request& request) {
  bool back = request.op() == "adaptive_avg_pool2d_backward";
  if (pools_channels_last(request)) return make_average_channels_last(request, true, back);
  auto &in = request.input(0), &out = request.output(0);
  Pool p(request, back ? out : in, back ? in : out, PoolWindows::none);
  require_contiguous(in);
  if (sdk::numel(out) == 0) return empty_plan();
  return with_float(in.dtype, [&]<class T>(T) {
    return sdk::make_plan(
        [p, back](const tn_run& run) {
          auto* from = static_cast<const T*>(run.inputs[0]);
          auto* to = static_cast<T*>(run.outputs[0]);
          if (!back && p.out_size() == 1 && p.in_size() <= kSumBlock<T>)
            return p.for_ranges([&](int64_t begin, int64_t end, uint32_t) {
              means_of_planes(end - begin, p.in_size(), from + begin * p.in_size(), to + begin);
            });
          p.for_planes([&](int64_t i, uint32_t) {
            back ? adaptive_plane_backward(p, from + i * p.out_size(), to + i * p.in_size())
                 : adaptive_plane(p, from + i * p.in_size(), to + i * p.out_size());
          });
        },
        {0, p.cost(in.dtype)});
  });
}

const sdk::Kernel adaptive_avg_pool2d({"adaptive_avg_pool2d", "adaptive_avg_pool2d_backward"},
                                      make_adaptive);

}  // namespace
}  // namespace tenon::cpu
