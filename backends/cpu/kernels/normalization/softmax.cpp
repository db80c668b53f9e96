#include <cmath>

#include <tenon/plugins/sdk/requests/normalization.h>

#include "runtime/common.h"
#include "simd/math.h"

namespace tenon::cpu {
namespace {

// Rows along the last dimension.
template <class T>
void softmax_row(int64_t n, const T* x, T* y) {
  T top = max_row(n, x);
  T sum = sum_row<T>(n, [&](int64_t i, auto part) {
    Vec<T> e = math::exp<T>(load(x + i, part) - top);
    store(y + i, e, part);
    return keep<T>(e, part);
  });
  T scale = T(1) / sum;
  for_lanes<T>(n, [&](int64_t i, auto part) { store<T>(y + i, load(y + i, part) * scale, part); });
}

template <class T>
void log_softmax_row(int64_t n, const T* x, T* y) {
  T top = max_row(n, x);
  T sum = sum_row<T>(n, [&](int64_t i, auto part) {
    return keep<T>(math::exp<T>(load(x + i, part) - top), part);
  });
  T log_sum = std::log(sum);
  for_lanes<T>(
      n, [&](int64_t i, auto part) { store<T>(y + i, load(x + i, part) - top - log_sum, part); });
}

template <class T>
void softmax_backward_row(int64_t n, const T* g, const T* y, T* gx) {
  T dot =
      sum_row<T>(n, [&](int64_t i, auto part) { return load(g + i, part) * load(y + i, part); });
  for_lanes<T>(n, [&](int64_t i, auto part) {
    store<T>(gx + i, (load(g + i, part) - dot) * load(y + i, part), part);
  });
}

template <class T>
void log_softmax_backward_row(int64_t n, const T* g, const T* y, T* gx) {
  T sum = sum_row<T>(n, [&](int64_t i, auto part) { return load(g + i, part); });
  for_lanes<T>(n, [&](int64_t i, auto part) {
    store<T>(gx + i, load(g + i, part) - math::exp<T>(load(y + i, part)) * sum, part);
  });
}

// Along any other dimension: one vector of neighbours at a time, `step` from element to element.
template <class T, class Part>
void softmax_columns(int64_t n, int64_t step, const T* x, T* y, Part part, bool logarithm) {
  Vec<T> top = load(x, part);
  for (int64_t i = 1; i < n; ++i) top = max_vec<T>(load(x + i * step, part), top);
  const Vec<T> sum = sums_of_lanes<1, T>(n, [&](int64_t i, Vec<T>(&acc)[1]) {
                       Vec<T> e = math::exp<T>(load(x + i * step, part) - top);
                       if (!logarithm) store<T>(y + i * step, e, part);
                       acc[0] += e;
                     }).packet(0);
  if (logarithm) {
    Vec<T> log_sum{};
    for (int k = 0; k < kWidth<T>; ++k) log_sum[k] = std::log(sum[k]);
    for (int64_t i = 0; i < n; ++i)
      store<T>(y + i * step, load(x + i * step, part) - top - log_sum, part);
  } else {
    for (int64_t i = 0; i < n; ++i) store<T>(y + i * step, load(y + i * step, part) / sum, part);
  }
}

template <class T, class Part>
void softmax_backward_columns(int64_t n, int64_t step, const T* g, const T* y, T* gx, Part part,
                              bool logarithm) {
  const Vec<T> sum = sums_of_lanes<1, T>(n, [&](int64_t i, Vec<T>(&acc)[1]) {
                       const Vec<T> v = load(g + i * step, part);
                       acc[0] += logarithm ? v : v * load(y + i * step, part);
                     }).packet(0);
  for (int64_t i = 0; i < n; ++i) {
    Vec<T> gi = load(g + i * step, part), yi = load(y + i * step, part);
    store<T>(gx + i * step, logarithm ? gi - math::exp<T>(yi) * sum : (gi - sum) * yi, part);
  }
}

// Calls row(offset) for each row, or column(offset, Full{} or Rest{}) for each vector of columns.
template <class T, class Row, class Column>
void for_each_line(const Lines& s, Row&& row, Column&& column) {
  if (s.inner == 1) {
    parallel_for(s.outer, std::max<int64_t>(1, kGrain / 4 / s.size),
                 [&](int64_t begin, int64_t end, uint32_t) {
                   for (int64_t i = begin; i < end; ++i) row(i * s.size);
                 });
    return;
  }
  constexpr int64_t w = kWidth<T>;
  int64_t vectors = (s.inner + w - 1) / w;
  parallel_for(s.outer * vectors, std::max<int64_t>(1, kGrain / 4 / (s.size * w)),
               [&](int64_t begin, int64_t end, uint32_t) {
                 for (int64_t k = begin; k < end; ++k) {
                   int64_t column_index = k % vectors * w,
                           at = k / vectors * s.size * s.inner + column_index;
                   if (column_index + w <= s.inner) {
                     column(at, Full{});
                   } else {
                     column(at, Rest{s.inner - column_index});
                   }
                 }
               });
}

template <class T>
void run_softmax(const sdk::SoftmaxRequest& s, const tn_run& run) {
  auto* x = static_cast<const T*>(run.inputs[0]);
  auto* y = static_cast<T*>(run.outputs[0]);
  for_each_line<T>(
      s,
      [&](int64_t at) {
        s.logarithm ? log_softmax_row(s.size, x + at, y + at) : softmax_row(s.size, x + at, y + at);
      },
      [&](int64_t at, auto part) {
        softmax_columns(s.size, s.inner, x + at, y + at, part, s.logarithm);
      });
}

template <class T>
void run_backward(const sdk::SoftmaxRequest& s, const tn_run& run) {
  auto *g = static_cast<const T*>(run.inputs[0]), *y = static_cast<const T*>(run.inputs[1]);
  auto* gx = static_cast<T*>(run.outputs[0]);
  for_each_line<T>(
      s,
      [&](int64_t at) {
        s.logarithm ? log_softmax_backward_row(s.size, g + at, y + at, gx + at)
                    : softmax_backward_row(s.size, g + at, y + at, gx + at);
      },
      [&](int64_t at, auto part) {
        softmax_backward_columns(s.size, s.inner, g + at, y + at, gx + at, part, s.logarithm);
      });
}

tn_plan* make_softmax(tn_device*, const Request& request) {
  const auto s = sdk::SoftmaxRequest::from(request);
  const auto elements = static_cast<uint64_t>(s.outer * s.size * s.inner);
  if (elements == 0) return empty_plan();
  return with_float(s.dtype, [=]<class T>(T) {
    auto run = [s](const tn_run& run) {
      s.backward ? run_backward<T>(s, run) : run_softmax<T>(s, run);
    };
    return sdk::make_plan(run, {0, 100 + elements * sizeof(T) / 8});
  });
}

const sdk::Kernel softmax({"softmax", "log_softmax", "softmax_backward", "log_softmax_backward"},
                          make_softmax);

}  // namespace
}  // namespace tenon::cpu
