#include <cmath>

#include "runtime/common.h"
#include "simd/math.h"

namespace tenon::cpu {
namespace {

enum class Reduction { kMean, kSum, kNone };

struct CrossEntropy {
  int64_t n, c, ignore;
  Reduction reduction;
  double smoothing;
  bool weighted;

  // Checks everything but the gradient's own tensors. `first` is the input that the logits are,
  // with target and weight behind it.
  static CrossEntropy from(const Request& request, size_t first) {
    auto &logits = request.input(first), &target = request.input(first + 1);
    auto invalid = [&](const std::string& why) { sdk::invalid(why); };
    if (logits.rank != 2) invalid("logits have 2 dimensions, found " + std::to_string(logits.rank));
    CrossEntropy s{logits.shape[0],
                   logits.shape[1],
                   request.get_int("ignore_index"),
                   Reduction::kMean,
                   request.get_float("label_smoothing"),
                   request.has_input(first + 2)};
    if (target.rank != 1 || target.shape[0] != s.n || target.dtype != TN_I64)
      invalid("target must be " + std::to_string(s.n) + " i64 labels");
    if (s.weighted) {
      auto& weight = request.input(first + 2);
      if (weight.rank != 1 || weight.shape[0] != s.c || weight.dtype != logits.dtype)
        invalid("weight must hold one value of the logits' dtype for each of " +
                std::to_string(s.c) + " classes");
      require_contiguous(request, weight);
    }
    auto reduction = request.get_string("reduction");
    if (reduction == "sum") {
      s.reduction = Reduction::kSum;
    } else if (reduction == "none") {
      s.reduction = Reduction::kNone;
    } else if (reduction != "mean") {
      invalid("reduction is \"mean\", \"sum\" or \"none\", found \"" + std::string(reduction) +
              "\"");
    }
    require_contiguous(request, logits);
    require_contiguous(request, target);
    return s;
  }

  void check_targets(const int64_t* target) const {
    for (int64_t i = 0; i < n; ++i)
      if (target[i] != ignore && (target[i] < 0 || target[i] >= c)) {
        auto row = std::to_string(i), label = std::to_string(target[i]),
             classes = std::to_string(c);
        throw sdk::Error(TN_CODE_OUT_OF_RANGE,
                         "cross_entropy: label " + label + " in row " + row + " lies outside [0, " +
                             classes + ")",
                         {{"row", row}, {"label", label}, {"classes", classes}});
      }
  }

  int64_t grain() const { return std::max<int64_t>(1, kGrain / 4 / std::max<int64_t>(1, c)); }
  sdk::PlanOptions options(tn_dtype dtype) const {
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

// Loss of row i: (1 - smoothing) w[t] (lse - x[t]) + smoothing / c * sum over j of w[j] (lse -
// x[j]).
template <class T>
void forward(const CrossEntropy& s, const tn_run& run) {
  auto* logits = static_cast<const T*>(run.inputs[0]);
  auto* target = static_cast<const int64_t*>(run.inputs[1]);
  auto* weight = s.weighted ? static_cast<const T*>(run.inputs[2]) : nullptr;
  auto *loss = static_cast<T*>(run.outputs[0]), *lse = static_cast<T*>(run.outputs[1]),
       *total = static_cast<T*>(run.outputs[2]);
  s.check_targets(target);
  T* losses = s.reduction == Reduction::kNone ? loss : static_cast<T*>(run.workspace);
  T smoothing = static_cast<T>(s.smoothing),
    weights = smoothing != 0 ? sum_of_weights(s, weight) : T(0);
  parallel_for(s.n, s.grain(), [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t i = begin; i < end; ++i) {
      const T* x = logits + i * s.c;
      T top = max_row(s.c, x);
      T sum = sum_row<T>(s.c, [&](int64_t j, auto part) {
        return keep<T>(math::exp<T>(load(x + j, part) - top), part);
      });
      lse[i] = top + std::log(sum);
      int64_t t = target[i];
      losses[i] = 0;
      if (t == s.ignore) continue;
      losses[i] = (1 - smoothing) * (weight ? weight[t] : T(1)) * (lse[i] - x[t]);
      if (smoothing == 0) continue;
      T smooth = sum_row<T>(s.c, [&](int64_t j, auto part) {
        return load(x + j, part) * (weight ? load(weight + j, part) : splat(T(1)));
      });
      losses[i] += smoothing / static_cast<T>(s.c) * (weights * lse[i] - smooth);
    }
  });
  double sum = 0, divisor = 0;
  for (int64_t i = 0; i < s.n; ++i) {
    if (target[i] == s.ignore) continue;
    divisor += weight ? static_cast<double>(weight[target[i]]) : 1.0;
    sum += static_cast<double>(losses[i]);
  }
  *total = static_cast<T>(divisor);
  if (s.reduction != Reduction::kNone)
    *loss = static_cast<T>(s.reduction == Reduction::kMean ? sum / divisor : sum);
}

template <class T>
void backward(const CrossEntropy& s, const tn_run& run) {
  auto *g = static_cast<const T*>(run.inputs[0]), *logits = static_cast<const T*>(run.inputs[1]);
  auto* target = static_cast<const int64_t*>(run.inputs[2]);
  auto* weight = s.weighted ? static_cast<const T*>(run.inputs[3]) : nullptr;
  auto *lse = static_cast<const T*>(run.inputs[4]), *total = static_cast<const T*>(run.inputs[5]);
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
      T gi = s.reduction == Reduction::kNone   ? g[i]
             : s.reduction == Reduction::kMean ? *g / *total
                                               : *g;
      T hit = (1 - static_cast<T>(s.smoothing)) * (weight ? weight[t] : T(1));
      T scale = gi * (hit + smooth * weights), lower = gi * smooth, li = lse[i];
      for_lanes<T>(s.c, [&](int64_t j, auto part) {
        Vec<T> v = math::exp<T>(load(x + j, part) - li) * scale;
        if (smooth != 0) v -= weight ? load(weight + j, part) * lower : splat(lower);
        store<T>(gx + j, v, part);
      });
      gx[t] -= gi * hit;
    }
  });
}

void check_like(const Request& request, const tn_tensor_desc& d, tn_dtype dtype, bool rows,
                int64_t n, const char* what) {
  bool fits = d.dtype == dtype && (rows ? d.rank == 1 && d.shape[0] == n : sdk::numel(d) == 1);
  if (!fits)
    sdk::invalid(std::string(what) + " must be " + (rows ? "one value a row" : "a scalar") +
                 " of the logits' dtype");
  require_contiguous(request, d);
}

tn_plan* make_forward(tn_device*, const Request& request) {
  auto s = CrossEntropy::from(request, 0);
  auto dtype = request.input(0).dtype;
  check_like(request, request.output(0), dtype, s.reduction == Reduction::kNone, s.n, "loss");
  check_like(request, request.output(1), dtype, true, s.n, "lse");
  check_like(request, request.output(2), dtype, false, s.n, "total");
  return with_float(request, dtype, [&](auto zero) {
    return sdk::make_plan([s](const tn_run& run) { forward<decltype(zero)>(s, run); },
                          s.options(dtype));
  });
}

tn_plan* make_backward(tn_device*, const Request& request) {
  auto s = CrossEntropy::from(request, 1);
  auto &logits = request.input(1), &out = request.output(0);
  check_like(request, request.input(0), logits.dtype, s.reduction == Reduction::kNone, s.n,
             "the gradient");
  check_like(request, request.input(4), logits.dtype, true, s.n, "lse");
  check_like(request, request.input(5), logits.dtype, false, s.n, "total");
  if (out.rank != 2 || out.shape[0] != s.n || out.shape[1] != s.c || out.dtype != logits.dtype)
    sdk::invalid("the output has the logits' shape and dtype");
  if (sdk::numel(out) == 0) return empty_plan();
  return with_float(request, logits.dtype, [&](auto zero) {
    return sdk::make_plan([s](const tn_run& run) { backward<decltype(zero)>(s, run); },
                          {0, s.options(logits.dtype).cost_ns});
  });
}

const sdk::Kernel registration({"cross_entropy"}, make_forward);
const sdk::Kernel backward_registration({"cross_entropy_backward"}, make_backward);

}  // namespace
}  // namespace tenon::cpu
