// Average pooling over windows, and its gradient.
#include <vector>

#include "kernels/pooling/channels_last.h"
#include "kernels/pooling/pool.h"

namespace tenon::cpu {
namespace {

// One over the number of elements that the windows of each output count. Rows of outputs whose
// windows have one height share a row of the table, unless kernels are taller than there are rows
// of outputs.
template <class T>
class Divisors {
 public:
  explicit Divisors(const Pool& p)
      : ow_(p.ow),
        ph_(p.ph),
        sh_(p.sh),
        kh_(p.kh),
        h_(p.h),
        count_pad_(p.count_pad),
        by_height_(p.kh < p.oh) {
    for (int64_t i = 0, n = by_height_ ? p.kh + 1 : p.oh; i < n; ++i)
      for (int64_t x = 0, rows = by_height_ ? i : height(i); x < p.ow; ++x)
        inverse_.push_back(T(1) / static_cast<T>(rows * extent(x, p.sw, p.kw, p.pw, p.w)));
  }
  const T* row(int64_t y) const { return inverse_.data() + (by_height_ ? height(y) : y) * ow_; }

 private:
  int64_t height(int64_t y) const { return extent(y, sh_, kh_, ph_, h_); }
  int64_t extent(int64_t i, int64_t s, int64_t k, int64_t pad, int64_t n) const {
    int64_t begin = i * s - pad, end = std::min(begin + k, n + pad);
    return count_pad_ ? end - begin
                      : std::max<int64_t>(0, std::min(end, n) - std::max<int64_t>(begin, 0));
  }
  int64_t ow_, ph_, sh_, kh_, h_;
  bool count_pad_, by_height_;
  std::vector<T> inverse_;
};

template <class T>
void average_halves(const Pool& p, const T* x, T* y) {
  for (int64_t r = 0; r < p.oh; ++r) {
    const T *a = x + 2 * r * p.w, *b = a + p.w;
    for_lanes<T>(p.ow, [&](int64_t i, auto part) {
      auto sums = split_pairs<T>(first_of_pair(a + 2 * i, part) + first_of_pair(b + 2 * i, part),
                                 second_of_pair(a + 2 * i, part) + second_of_pair(b + 2 * i, part));
      store<T>(y + r * p.ow + i, (sums.even + sums.odd) * T(0.25), part);
    });
  }
}

// `sums` has room for a row of outputs.
template <class T, class Sum>
void average_plane(const Pool& p, const Divisors<T>& divisors, const T* x, T* y, Sum* sums) {
  const auto [left, right] = p.column_taps();
  for (int64_t r = 0; r < p.oh; ++r, y += p.ow) {
    std::fill(sums, sums + p.ow, Sum(0));
    const auto [top, bottom] = p.row_taps(r);
    for (int64_t i = top; i < bottom; ++i) {
      int64_t row = r * p.sh - p.ph + i;
      for (int64_t j = left; j < right; ++j) {
        auto [first, last] = p.columns(j);
        const T* from = x + row * p.w + j - p.pw;
        if (p.sw == 1) {
          for (int64_t k = first; k < last; ++k) sums[k] += static_cast<Sum>(from[k]);
        } else {
          for (int64_t k = first; k < last; ++k) sums[k] += static_cast<Sum>(from[k * p.sw]);
        }
      }
    }
    const T* inverse = divisors.row(r);
    for (int64_t k = 0; k < p.ow; ++k)
      y[k] = static_cast<T>(sums[k] * static_cast<Sum>(inverse[k]));
  }
}

template <class T>
void average_halves_backward(const Pool& p, const T* g, T* gx) {
  for (int64_t r = 0; r < p.oh; ++r) {
    T *a = gx + 2 * r * p.w, *b = a + p.w;
    for_lanes<T>(p.ow, [&](int64_t i, auto part) {
      Vec<T> v = load(g + r * p.ow + i, part) * T(0.25);
      Vec<T> low = zip_low(v, v), high = zip_high(v, v);
      int64_t n = 2 * kWidth<T>;
      if constexpr (std::is_same_v<decltype(part), Rest>) n = 2 * part.count;
      for (T* to : {a + 2 * i, b + 2 * i}) {
        n >= kWidth<T> ? store(to, low) : store_part(to, low, n);
        if (n == 2 * kWidth<T>) store(to + kWidth<T>, high);
        if (n > kWidth<T> && n < 2 * kWidth<T>) store_part(to + kWidth<T>, high, n - kWidth<T>);
      }
    });
    for (int64_t k = 2 * p.ow; k < p.w; ++k) a[k] = b[k] = 0;
  }
  std::fill(gx + 2 * p.oh * p.w, gx + p.in_size(), T(0));
}

template <class T>
void average_plane_backward(const Pool& p, const Divisors<T>& divisors, const T* g, T* gx,
                            T* scaled) {
  const auto [left, right] = p.column_taps();
  std::fill(gx, gx + p.in_size(), T(0));
  for (int64_t r = 0; r < p.oh; ++r) {
    const T* inverse = divisors.row(r);
    for (int64_t k = 0; k < p.ow; ++k) scaled[k] = g[r * p.ow + k] * inverse[k];
    const auto [top, bottom] = p.row_taps(r);
    for (int64_t i = top; i < bottom; ++i) {
      int64_t row = r * p.sh - p.ph + i;
      for (int64_t j = left; j < right; ++j) {
        auto [first, last] = p.columns(j);
        T* to = gx + row * p.w + j - p.pw;
        if (p.sw == 1) {
          for (int64_t k = first; k < last; ++k) to[k] += scaled[k];
        } else {
          for (int64_t k = first; k < last; ++k) to[k * p.sw] += scaled[k];
        }
      }
    }
  }
}

tn_plan* make_average(tn_device*, const Request& request) {
  bool back = request.op() == "avg_pool2d_backward";
  if (pools_channels_last(request)) return make_average_channels_last(request, false, back);
  auto &in = request.input(0), &out = request.output(0);
  Pool p(request, back ? out : in, back ? in : out, PoolWindows::averaged);
  require_contiguous(in);
  if (sdk::numel(out) == 0) return empty_plan();
  return with_float(in.dtype, [&]<class T>(T) {
    const bool large = p.kh * p.kw > kMaxSummedAsTheyAre;
    const auto row_bytes =
        (static_cast<uint64_t>(p.ow) * (large ? sizeof(double) : sizeof(T)) + 63) / 64 * 64;
    return sdk::make_plan(
        [p, back, large, row_bytes, divisors = Divisors<T>(p)](const tn_run& run) {
          auto* from = static_cast<const T*>(run.inputs[0]);
          auto* to = static_cast<T*>(run.outputs[0]);
          p.for_planes([&](int64_t i, uint32_t slot) {
            char* row = static_cast<char*>(run.workspace) + slot * row_bytes;
            if (back) {
              const T* g = from + i * p.out_size();
              T* gx = to + i * p.in_size();
              return p.halves()
                         ? average_halves_backward(p, g, gx)
                         : average_plane_backward(p, divisors, g, gx, reinterpret_cast<T*>(row));
            }
            const T* x = from + i * p.in_size();
            T* y = to + i * p.out_size();
            if (p.halves())
              average_halves(p, x, y);
            else if (large)
              average_plane(p, divisors, x, y, reinterpret_cast<double*>(row));
            else
              average_plane(p, divisors, x, y, reinterpret_cast<T*>(row));
          });
        },
        {row_bytes * thread_count(), p.cost(in.dtype)});
  });
}

const sdk::Kernel avg_pool2d({"avg_pool2d", "avg_pool2d_backward"}, make_average);

}  // namespace
}  // namespace tenon::cpu
