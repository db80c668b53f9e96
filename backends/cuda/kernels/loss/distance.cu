// Losses of differences: their values, sum or mean, and the gradient of one loss, each in one walk.
#include <tenon/plugins/sdk/requests/loss.h>

#include "kernels/pointwise/pointwise.h"
#include "kernels/reduction/reduce.h"
#include "kernels/reduction/reducers.h"

namespace tenon::cuda {
namespace {

// A kind of distance computes the value and the slope of a difference. The second argument is the
// loss's limit: delta of huber_loss, beta of smooth_l1_loss.
struct SquaredDistance {
  template <class T>
  __device__ static T value(T d, T) {
    return d * d;
  }
  template <class T>
  __device__ static T slope(T d, T) {
    return d;
  }
};
struct AbsoluteDistance {
  template <class T>
  __device__ static T value(T d, T) {
    return d < T(0) ? -d : d;
  }
  template <class T>
  __device__ static T slope(T d, T) {
    return formulas::Sign()(d);
  }
};
struct HuberDistance {
  template <class T>
  __device__ static T value(T d, T delta) {
    const T a = d < T(0) ? -d : d, z = a > delta ? delta : a;
    return z * (a - z * T(0.5));
  }
  template <class T>
  __device__ static T slope(T d, T delta) {
    return d < -delta ? -delta : d > delta ? delta : d;
  }
};
struct SmoothL1Distance {
  template <class T>
  __device__ static T value(T d, T beta) {
    const T a = d < T(0) ? -d : d;
    return a < beta ? a * a * (T(0.5) / beta) : a - beta * T(0.5);
  }
  template <class T>
  __device__ static T slope(T d, T beta) {
    return d < -beta ? T(-1) : d > beta ? T(1) : d / beta;
  }
};

// The parameter is what the sum is divided by, and the shift the limit.
template <class D, class T>
struct SumOfPairs : Sum<T> {
  static constexpr int kInputs = 2;
  template <int N>
  __device__ static void take(double& acc, const T* x, const T* y, T limit, int64_t, int64_t) {
#pragma unroll
    for (int k = 0; k < N; ++k) acc += static_cast<double>(D::value(x[k] - y[k], limit));
  }
};

template <class D, class T>
tn_plan* make_distance(const tn_device& device, const Request& request,
                       const sdk::DistanceRequest& r) {
  std::vector<int64_t> dims(request.input(0).rank);
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int64_t>(d);
  const ReductionWalk<SumOfPairs<D, T>> reduction(device, ReduceShape(request.input(0), dims),
                                                  r.divisor);
  return make_plan(
      [reduction, r](const tn_run& run) {
        reduction.run(run.stream, run.inputs[0], run.outputs[0], run.workspace, run.inputs[1],
                      nullptr, static_cast<T>(r.limit(run)));
      },
      reduction.workspace_bytes());
}

template <class D, class T>
struct DistanceValue {
  T limit;
  __device__ T operator()(T x, T y) const { return D::value(x - y, limit); }
};

using ValuesStart = void (*)(const Loop<3>& loop, const tn_run& run, double limit);

template <class D, class T>
void start_distance_values(const Loop<3>& loop, const tn_run& run, double limit) {
  using C = Computed<T>;
  using Op = DistanceValue<D, C>;
  loop.run<Op, T>(run.stream, Op{static_cast<C>(limit)}, run.outputs[0], operand<T>(run.inputs[0]),
                  operand<T>(run.inputs[1]));
}

template <class D>
tn_plan* make_distance_values(const Request& request, const sdk::DistanceRequest& r) {
  static constexpr auto starts =
      float_starts([]<class T>(Type<T>) -> ValuesStart { return start_distance_values<D, T>; });
  const ValuesStart start = starts.pick(r.dtype);
  if (r.n == 0) return empty_plan();
  return make_plan([loop = loop_over(request, &request.input(0), &request.input(1)), start,
                    r](const tn_run& run) { start(loop, run, r.limit(run)); });
}

template <class D, class T>
struct DistanceSlope {
  T number, limit;
  __device__ T operator()(T g, T x, T y) const { return g * number * D::slope(x - y, limit); }
};

template <class D, class T>
void start_distance_backward(const Loop<4>& loop, const tn_run& run, double limit) {
  using C = Computed<T>;
  using Op = DistanceSlope<D, C>;
  loop.run<Op, T>(run.stream, Op{static_cast<C>(run.scalars[0].f), static_cast<C>(limit)},
                  run.outputs[0], operand<T>(run.inputs[0]), operand<T>(run.inputs[1]),
                  operand<T>(run.inputs[2]));
}

using DistanceStart = void (*)(const Loop<4>& loop, const tn_run& run, double limit);

template <class D>
tn_plan* make_distance_backward(const Request& request, const sdk::DistanceRequest& r) {
  static constexpr auto starts =
      float_starts([]<class T>(Type<T>) -> DistanceStart { return start_distance_backward<D, T>; });
  const DistanceStart start = starts.pick(r.dtype);
  if (r.n == 0) return empty_plan();
  tn_tensor_desc g = request.input(1);  // one value for all elements
  std::fill_n(g.strides, g.rank, 0);
  return make_plan([loop = loop_over(request, &g, &request.input(1), &request.input(2)), start,
                    r](const tn_run& run) { start(loop, run, r.limit(run)); });
}

template <class D>
tn_plan* make_distance_plan(const tn_device& device, const Request& request,
                            const sdk::DistanceRequest& r) {
  if (r.backward) return make_distance_backward<D>(request, r);
  if (r.each) return make_distance_values<D>(request, r);
  return with_float(r.dtype, [&]<class T>(T) { return make_distance<D, T>(device, request, r); });
}

tn_plan* make_plan_of_distance(tn_device* device, const Request& request) {
  const auto r = sdk::DistanceRequest::from(request);
  switch (r.kind) {
    case sdk::Distance::squared:
      return make_distance_plan<SquaredDistance>(*device, request, r);
    case sdk::Distance::absolute:
      return make_distance_plan<AbsoluteDistance>(*device, request, r);
    case sdk::Distance::huber:
      return make_distance_plan<HuberDistance>(*device, request, r);
    default:
      return make_distance_plan<SmoothL1Distance>(*device, request, r);
  }
}

const sdk::Kernel distances({"mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss",
                             "mse_loss_backward", "l1_loss_backward", "huber_loss_backward",
                             "smooth_l1_loss_backward"},
                            make_plan_of_distance);

}  // namespace
}  // namespace tenon::cuda
