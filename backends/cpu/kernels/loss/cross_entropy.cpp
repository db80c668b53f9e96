#include <cmath>

#include <tenon/plugins/sdk/requests/loss.h>

#include "runtime/common.h"
#include "simd/math.h"

namespace tenon::cpu {
namespace {

struct CrossEntropy : sdk::CrossEntropyRequest {
  explicit CrossEntropy(const Request& request) : CrossEntropyRequest(from(request)) {}

  void check_targets(const int64_t* target) const {
    for (int64_t i = 0; i < n; ++i)
      if (target[i] != ignore && (target[i] < 0 || target[i] >= c)) {
        auto row = std::to_string(i), label = std::to_string(target[i]),
             classes = std::to_string(c);
        throw sdk::Error(TN_CODE_OUT_OF_RANGE,
                         sdk::text("label {} in row {} lies outside [0, {})", label, row, classes),
                         {{"row", row}, {"label", label}, {"classes", classes}});
      }
  }

  int64_t grain() const { return std::max<int64_t>(1, kGrain / 4 / std::max<int64_t>(1, c)); }
  sdk::PlanOptions options() const {
    auto size = sdk::dtype_size(dtype);
    return {static_cast<uint64_t>(n) * size,
            200 + static_cast<uint64_t>(n * (c / 4 + 15)) * size / 4};
  }
};

template <class T>
T sum_of_weights(const CrossEntropy& s, const T* weight) {
  return weight ? sum_row<T>(s.c, [&](int64_t j, auto part) { return load(weight + j, part); })
                : static_cast<T>(s.c);
}

// Loss of row i: (1 - smoothing) w[t] l(t) + smoothing / c * sum over j of w[j] l(j), where l(j) =
// -log(softmax(x)[j]) = log_sum - (x[j] - top).
template <class T>
void forward(const CrossEntropy& s, const tn_run& run) {
  auto* logits = static_cast<const T*>(run.inputs[0]);
  auto* target = static_cast<const int64_t*>(run.inputs[1]);
  auto* weight = s.weighted ? static_cast<const T*>(run.inputs[2]) : nullptr;
  auto *loss = static_cast<T*>(run.outputs[0]), *tops = static_cast<T*>(run.outputs[1]),
       *log_sums = tops + s.n, *total = static_cast<T*>(run.outputs[2]);
  s.check_targets(target);
  T* losses = s.reduction == sdk::Reduction::none ? loss : static_cast<T*>(run.workspace);
  T smoothing = static_cast<T>(s.smoothing),
    weights = smoothing != 0 ? sum_of_weights(s, weight) : T(0);
  parallel_for(s.n, s.grain(), [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t i = begin; i < end; ++i) {
      const T* x = logits + i * s.c;
      T top = max_row(s.c, x);
      T sum = sum_row<T>(s.c, [&](int64_t j, auto part) {
        return keep<T>(math::exp<T>(load(x + j, part) - top), part);
      });
      const T log_sum = std::log(sum);
      tops[i] = top;
      log_sums[i] = log_sum;
      int64_t t = target[i];
      losses[i] = 0;
      if (t == s.ignore) continue;
      losses[i] = (1 - smoothing) * (weight ? weight[t] : T(1)) * (log_sum - (x[t] - top));
      if (smoothing == 0) continue;
      T smooth = sum_row<T>(s.c, [&](int64_t j, auto part) {
        return keep<T>((load(x + j, part) - top) * (weight ? load(weight + j, part) : splat(T(1))),
                       part);
      });
      losses[i] += smoothing / static_cast<T>(s.c) * (weights * log_sum - smooth);
    }
  });
  double sum = 0, divisor = 0;
  for (int64_t i = 0; i < s.n; ++i) {
    if (target[i] == s.ignore) continue;
    divisor += weight ? static_cast<double>(weight[target[i]]) : 1.0;
    sum += static_cast<double>(losses[i]);
  }
  *total = static_cast<T>(divisor);
  if (s.reduction != sdk::Reduction::none)
    *loss = static_cast<T>(s.reduction == sdk::Reduction::mean ? sum / divisor : sum);
}

template <class T>
void backward(const CrossEntropy& s, const tn_run& run) {
  auto *g = static_cast<const T*>(run.inputs[0]), *logits = static_cast<const T*>(run.inputs[1]);
  auto* target = static_cast<const int64_t*>(run.inputs[2]);
  auto* weight = s.weighted ? static_cast<const T*>(run.inputs[3]) : nullptr;
  auto *tops = static_cast<const T*>(run.inputs[4]), *log_sums = tops + s.n,
       *total = static_cast<const T*>(run.inputs[5]);
  auto* glogits = static_cast<T*>(run.outputs[0]);
  s.check_targets(target);
  T smooth = static_cast<T>(s.smoothing) / static_cast<T>(s.c),
    weights = smooth != 0 ? sum_of_weights(s, weight) : T(0);
  parallel_for(s.n, s.grain(), [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t i = begin; i < end; ++i) {
      const T* x = logits + i * s.c;
      T* gx = glogits + i * s.c;
      int64_t t = target[i];
      if (t == s.ignore) {
        std::fill(gx, gx + s.c, T(0));
        continue;
      }
      T gi = s.reduction == sdk::Reduction::none   ? g[i]
             : s.reduction == sdk::Reduction::mean ? *g / *total
                                                   : *g;
      T hit = (1 - static_cast<T>(s.smoothing)) * (weight ? weight[t] : T(1));
      T scale = gi * (hit + smooth * weights), lower = gi * smooth, top = tops[i],
        log_sum = log_sums[i];
      for_lanes<T>(s.c, [&](int64_t j, auto part) {
        Vec<T> v = math::exp<T>(load(x + j, part) - top - log_sum) * scale;
        if (smooth != 0) v -= weight ? load(weight + j, part) * lower : splat(lower);
        store<T>(gx + j, v, part);
      });
      gx[t] -= gi * hit;
    }
  });
}

tn_plan* make_cross_entropy(tn_device*, const Request& request) {
  return with_float(request.input(0).dtype, [s = CrossEntropy(request)]<class T>(T) {
    return sdk::make_plan([s](const tn_run& run) { forward<T>(s, run); }, s.options());
  });
}

tn_plan* make_cross_entropy_backward(tn_device*, const Request& request) {
  const CrossEntropy s(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_float(s.dtype, [s]<class T>(T) {
    return sdk::make_plan([s](const tn_run& run) { backward<T>(s, run); },
                          {0, s.options().cost_ns});
  });
}

const sdk::Kernel cross_entropy({"cross_entropy"}, make_cross_entropy);
const sdk::Kernel cross_entropy_backward({"cross_entropy_backward"}, make_cross_entropy_backward);

}  // namespace
}  // namespace tenon::cpu
