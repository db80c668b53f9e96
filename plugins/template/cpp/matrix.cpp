// Products of matrices, and sums over dimensions. Simple and slow: the place for your library.
#include <tenon/plugins/sdk/requests/linalg.h>
#include <tenon/plugins/sdk/requests/reduction.h>

#include "kernels.h"

namespace accelerator {
namespace {

// Rows [begin, end) of all products together. Sums are kept in f64.
template <class T>
void multiply(const sdk::ProductRequest& r, bool relu, const tn_run& run, int64_t begin,
              int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const auto at = r.offsets(row / r.m);
    const T* a = input<T>(run, 0) + at.a + row % r.m * r.a_row;
    const T* b = input<T>(run, 1) + at.b;
    T* y = output<T>(run, 0) + row * r.n;
    for (int64_t j = 0; j < r.n; ++j) {
      double sum = r.bias ? input<T>(run, 2)[j] : 0;
      for (int64_t k = 0; k < r.k; ++k)
        sum += static_cast<double>(a[k * r.a_col]) * b[k * r.b_row + j * r.b_col];
      y[j] = static_cast<T>(relu && sum < 0 ? 0 : sum);
    }
  }
}

tn_plan* make_product(tn_device*, const sdk::Request& request) {
  const auto r = sdk::ProductRequest::from(request);
  const bool relu = request.op() == "linear_relu";
  const int64_t rows = r.batch * r.m, work = std::max<int64_t>(1, r.n * r.k);
  return sdk::with_float(r.dtype, [&]<class T>(T) {
    return sdk::make_plan(
        [=](const tn_run& run) {
          parallel_for(rows, std::max<int64_t>(1, 20000 / work),
                       [&](int64_t begin, int64_t end) { multiply<T>(r, relu, run, begin, end); });
        },
        {.workspace_bytes = 0, .cost_ns = 200 + static_cast<uint64_t>(rows * work)});
  });
}

const sdk::Kernel products({"matmul", "linear", "linear_relu"}, make_product);

// Where element `i` of these dimensions lies in x, and in y.
struct Place {
  int64_t x = 0, y = 0;
};
Place place_of(const sdk::ReduceShape::Dim* dims, int rank, int64_t i) {
  Place p;
  for (int d = rank; d-- > 0; i /= dims[d].size) {
    const int64_t at = i % dims[d].size;
    p.x += at * dims[d].x_stride, p.y += at * dims[d].y_stride;
  }
  return p;
}

template <class T>
void add_up(const sdk::ReduceShape& s, const tn_run& run, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const Place kept = place_of(s.kept, s.kept_rank, i);
    double sum = 0;
    for (int64_t j = 0; j < s.count; ++j)
      sum += input<T>(run, 0)[kept.x + place_of(s.reduced, s.reduced_rank, j).x];
    output<T>(run, 0)[kept.y] = static_cast<T>(sum);
  }
}

tn_plan* make_sum(tn_device*, const sdk::Request& request) {
  const auto s = sdk::ReduceShape::of(request.input(0), sdk::reduced_dims(request));
  return sdk::with_float(float_of(request), [&]<class T>(T) {
    return sdk::make_plan(
        [s](const tn_run& run) {
          parallel_for(s.outputs, 64,
                       [&](int64_t begin, int64_t end) { add_up<T>(s, run, begin, end); });
        },
        {.workspace_bytes = 0, .cost_ns = 200 + static_cast<uint64_t>(s.outputs * s.count) * 3});
  });
}

const sdk::Kernel sums({"sum"}, make_sum);

}  // namespace
}  // namespace accelerator
