// Losses of differences: their values, sum or mean, and the gradient of one loss, each in one walk.
#include <tenon/plugins/sdk/requests/loss.h>

#include "kernels/pointwise/pointwise.h"
#include "kernels/reduction/fold.h"
#include "simd/packet.h"

namespace tenon::cpu {
namespace {

// A kind of distance computes the value of packets of differences, and the slope of one difference.
// It is constructed from the loss's limit: delta of huber_loss, beta of smooth_l1_loss.
template <class T>
struct SquaredDistance {
  explicit SquaredDistance(double) {}
  Vec<T> value(Vec<T> d) const { return d * d; }
  T slope(T d) const { return d; }
};
template <class T>
struct AbsoluteDistance {
  explicit AbsoluteDistance(double) {}
  Vec<T> value(Vec<T> d) const { return Eigen::internal::pabs(d); }
  T slope(T d) const { return formulas::Sign()(d); }
};
template <class T>
struct HuberDistance {
  T delta;
  explicit HuberDistance(double limit) : delta(static_cast<T>(limit)) {}
  Vec<T> value(Vec<T> d) const {
    const Vec<T> a = Eigen::internal::pabs(d), z = Eigen::internal::pmin(splat(delta), a);
    return z * (a - z * splat(T(0.5)));
  }
  T slope(T d) const { return d < -delta ? -delta : d > delta ? delta : d; }
};
template <class T>
struct SmoothL1Distance {
  T beta, reciprocal;
  explicit SmoothL1Distance(double limit)
      : beta(static_cast<T>(limit)), reciprocal(static_cast<T>(1 / limit)) {}
  Vec<T> value(Vec<T> d) const {
    const Vec<T> a = Eigen::internal::pabs(d), small = Eigen::internal::pcmp_lt(a, splat(beta));
    return Eigen::internal::pselect(small, Vec<T>(a * a * splat(reciprocal / 2)),
                                    Vec<T>(a - splat(beta / 2)));
  }
  T slope(T d) const {
    const T z = d * reciprocal;
    return z < T(-1) ? T(-1) : z > T(1) ? T(1) : z;
  }
};

// Blocks of so many elements are summed by one thread, and then their sums.
constexpr int64_t kDistanceBlock = 16 * 1024, kDistanceBuffer = 1024;

// In f64, whatever T is.
template <class D, class T>
double distance_of_part(const D& kind, const T* x, const T* y, int64_t n) {
  constexpr int64_t w = kWidth<T>, half = kWidth<double>;
  Vec<double> sums[4]{};
  T few[w] = {}, others[w] = {};
  const auto add = [&sums, kind](const T* a, const T* b, int at) {
    T values[w];
    store<T>(values, kind.value(load(a) - load(b)));
    for (int64_t k = 0; k < w / half; ++k)
      sums[at + k] += detail::load_as<double>(values + k * half);
  };
  constexpr int both = w / half;
  int64_t i = 0;
  for (; i + 2 * w <= n; i += 2 * w) {
    add(x + i, y + i, 0);
    add(x + i + w, y + i + w, both);
  }
  for (; i < n; i += w) {
    const int64_t rest = std::min(w, n - i);
    std::fill(std::copy_n(x + i, rest, few), few + w, T(0));
    std::fill(std::copy_n(y + i, rest, others), others + w, T(0));
    add(few, others, 0);
  }
  return sum_lanes<double>((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

template <class D, class T>
double distance_of_block(const D& kind, const char* x, const char* y, int64_t n, ConvertRow widen) {
  if (!widen)
    return distance_of_part(kind, reinterpret_cast<const T*>(x), reinterpret_cast<const T*>(y), n);
  alignas(64) T wide_x[kDistanceBuffer], wide_y[kDistanceBuffer];
  double sum = 0;
  for (int64_t i = 0; i < n; i += kDistanceBuffer) {
    const int64_t part = std::min(kDistanceBuffer, n - i);
    widen(part, wide_x, x + i * 2);
    widen(part, wide_y, y + i * 2);
    sum += distance_of_part(kind, wide_x, wide_y, part);
  }
  return sum;
}

template <class D, class T>
tn_plan* make_distance(const sdk::DistanceRequest& r) {
  const int64_t blocks = (r.n + kDistanceBlock - 1) / kDistanceBlock;
  const bool halves = has_16_bits(r.dtype);
  auto run = [r, blocks, size = static_cast<int64_t>(sdk::dtype_size(r.dtype)),
              widen = halves ? convert_row(TN_F32, r.dtype) : nullptr,
              narrow = halves ? convert_row(r.dtype, TN_F32) : nullptr](const tn_run& run) {
    auto *x = static_cast<const char*>(run.inputs[0]), *y = static_cast<const char*>(run.inputs[1]);
    auto* sums = static_cast<double*>(run.workspace);
    const D kind(r.limit(run));
    parallel_for(blocks, 1, [&](int64_t begin, int64_t end, uint32_t) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t first = b * kDistanceBlock, n = std::min(kDistanceBlock, r.n - first);
        sums[b] = distance_of_block<D, T>(kind, x + first * size, y + first * size, n, widen);
      }
    });
    double sum = 0;
    for (int64_t b = 0; b < blocks; ++b) sum += sums[b];
    const T loss = static_cast<T>(sum / r.divisor);
    if (narrow)
      narrow(1, run.outputs[0], &loss);
    else
      *static_cast<T*>(run.outputs[0]) = loss;
  };
  return sdk::make_plan(run, {static_cast<uint64_t>(blocks) * sizeof(double),
                              50 + static_cast<uint64_t>(r.n) * sizeof(T) / 20});
}

// ---- a loss for each element

// Operand 2 is the kind.
template <class D, class T>
void distance_row(const Row& row) {
  auto* loss = static_cast<T*>(row.out);
  auto *x = static_cast<const T*>(row.in[0]), *y = static_cast<const T*>(row.in[1]);
  const D kind = *static_cast<const D*>(row.in[2]);
  for_lanes<T>(row.n, [&](int64_t i, auto part) {
    store<T>(loss + i, kind.value(load(x + i, part) - load(y + i, part)), part);
  });
}

template <class D, class T>
tn_plan* make_distances(const Request& request, const sdk::DistanceRequest& r) {
  if (r.n == 0) return empty_plan();
  const Pointwise loop(request, {&request.input(0), &request.input(1), nullptr}, 4, 0.3);
  auto run = [loop, r](const tn_run& run) {
    const D kind(r.limit(run));
    const void* in[] = {run.inputs[0], run.inputs[1], &kind};
    loop.run(distance_row<D, T>, run.outputs[0], in);
  };
  return sdk::make_plan(run, {0, loop.cost_ns()});
}

// ---- the gradient of one loss of all

// Operand 0 is what slopes are multiplied by, and the kind.
template <class D, class T>
struct Slopes {
  T g;
  D kind;
};
template <class D, class T>
void distance_slope_row(const Row& row) {
  auto* gx = static_cast<T*>(row.out);
  auto *x = static_cast<const T*>(row.in[1]), *y = static_cast<const T*>(row.in[2]);
  const auto [g, kind] = *static_cast<const Slopes<D, T>*>(row.in[0]);
  TN_INDEPENDENT
  for (int64_t i = 0; i < row.n; ++i) gx[i] = g * kind.slope(x[i] - y[i]);
}
template <class D>
void distance_slope_row_bf16(const Row& row) {
  auto* gx = static_cast<uint16_t*>(row.out);
  auto *x = static_cast<const uint16_t*>(row.in[1]), *y = static_cast<const uint16_t*>(row.in[2]);
  const auto [g, kind] = *static_cast<const Slopes<D, float>*>(row.in[0]);
  TN_INDEPENDENT
  for (int64_t i = 0; i < row.n; ++i)
    gx[i] = narrowed(g * kind.slope(widened(x[i]) - widened(y[i])));
}

template <class D, class T>
tn_plan* make_distance_backward(const Request& request, const sdk::DistanceRequest& r) {
  if (r.n == 0) return empty_plan();
  const bool is_bf16 = r.dtype == TN_BF16;
  const Pointwise loop(request, {nullptr, &request.input(1), &request.input(2)}, 1, 0.3, is_bf16);
  RowKernel row = distance_slope_row<D, T>;
  if constexpr (std::is_same_v<T, float>)
    if (is_bf16) row = distance_slope_row_bf16<D>;
  const auto widen = has_16_bits(r.dtype) ? convert_row(TN_F32, r.dtype) : nullptr;
  auto run = [loop, row, r, widen](const tn_run& run) {
    T g;
    if (widen)
      widen(1, &g, run.inputs[0]);
    else
      g = *static_cast<const T*>(run.inputs[0]);
    const Slopes<D, T> slopes{g * static_cast<T>(run.scalars[0].f), D(r.limit(run))};
    const void* in[] = {&slopes, run.inputs[1], run.inputs[2]};
    loop.run(row, run.outputs[0], in);
  };
  return sdk::make_plan(run, {0, loop.cost_ns()});
}

template <template <class T> class D>
tn_plan* make_distance_plan(const Request& request, const sdk::DistanceRequest& r) {
  return with_float(computed_as(r.dtype), [&]<class T>(T) {
    if (r.backward) return make_distance_backward<D<T>, T>(request, r);
    return r.each ? make_distances<D<T>, T>(request, r) : make_distance<D<T>, T>(r);
  });
}

tn_plan* make_plan_of_distance(tn_device*, const Request& request) {
  const auto r = sdk::DistanceRequest::from(request);
  switch (r.kind) {
    case sdk::Distance::squared:
      return make_distance_plan<SquaredDistance>(request, r);
    case sdk::Distance::absolute:
      return make_distance_plan<AbsoluteDistance>(request, r);
    case sdk::Distance::huber:
      return make_distance_plan<HuberDistance>(request, r);
    default:
      return make_distance_plan<SmoothL1Distance>(request, r);
  }
}

const sdk::Kernel distances({"mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss",
                             "mse_loss_backward", "l1_loss_backward", "huber_loss_backward",
                             "smooth_l1_loss_backward"},
                            make_plan_of_distance);

}  // namespace
}  // namespace tenon::cpu
