#include <cmath>

#include "runtime/common.h"
#include "simd/packet.h"

namespace tenon::cpu {
namespace {

// x seen as n x c x size; the statistics of one channel run over n and size.
struct BatchNorm {
  int64_t n, c, size;
  bool training, has_weight, has_bias;
  double eps;

  static BatchNorm from(const Request& request, const tn_tensor_desc& x) {
    if (x.rank < 2)
      sdk::invalid("input has at least 2 dimensions, found " + std::to_string(x.rank));
    BatchNorm s{x.shape[0], x.shape[1], 1, request.get_bool("training"), false, false, 0};
    for (uint32_t d = 2; d < x.rank; ++d) s.size *= x.shape[d];
    return s;
  }
  int64_t numel() const { return n * c * size; }
  double count() const { return static_cast<double>(n * size); }
  uint64_t cost(tn_dtype dtype) const {
    return 200 + static_cast<uint64_t>(numel()) * sdk::dtype_size(dtype) / 6;
  }
};

void check_size(const Request& request, const tn_tensor_desc& d, int64_t n, tn_dtype dtype,
                const char* what) {
  if (d.dtype != dtype || sdk::numel(d) != n)
    sdk::invalid(std::string(what) + " needs " + std::to_string(n) +
                 " elements of the input's dtype, found " + std::to_string(sdk::numel(d)) + " of " +
                 sdk::dtype_name(d.dtype));
  require_contiguous(request, d);
}

// Channels in groups that fill cache lines, so that (n, c) inputs are read in lines and no two
// threads write one.
template <class F>
void for_channels(const BatchNorm& s, int64_t unit, F&& body) {
  int64_t units = (s.c + unit - 1) / unit, work = std::max<int64_t>(1, s.n * s.size * unit);
  parallel_for(
      units, std::max<int64_t>(1, kGrain / 2 / work),
      [&](int64_t begin, int64_t end, uint32_t) { body(begin * unit, std::min(s.c, end * unit)); });
}

// Mean and sum of squared distances of one channel: of each plane, then put together (Chan, Golub,
// LeVeque 1979).
template <class T>
std::pair<double, double> plane_moments(const BatchNorm& s, const T* x, int64_t channel) {
  double mean = 0, squares = 0, count = 0, size = static_cast<double>(s.size);
  for (int64_t i = 0; i < s.n; ++i) {
    const T* p = x + (i * s.c + channel) * s.size;
    T m = sum_row<T>(s.size, [&](int64_t k, auto part) { return load(p + k, part); }) /
          static_cast<T>(s.size);
    T q = sum_row<T>(s.size, [&](int64_t k, auto part) {
      Vec<T> d = keep<T>(load(p + k, part) - m, part);
      return d * d;
    });
    double apart = static_cast<double>(m) - mean, all = count + size;
    mean += apart * size / all;
    squares += static_cast<double>(q) + apart * apart * count * size / all;
    count = all;
  }
  return {mean, squares};
}

// The same for a vector of channels of an (n, c) input.
template <class T, class Part>
void column_moments(const BatchNorm& s, const T* x, Part part, double* mean, double* squares) {
  Vec<T> sum{}, square{}, first = load(x, part);
  for (int64_t i = 0; i < s.n; ++i) sum += load(x + i * s.c, part) - first;
  Vec<T> m = first + sum / static_cast<T>(s.n);
  for (int64_t i = 0; i < s.n; ++i) {
    Vec<T> d = load(x + i * s.c, part) - m;
    square += d * d;
  }
  for (int k = 0; k < kWidth<T>; ++k)
    mean[k] = static_cast<double>(m[k]), squares[k] = static_cast<double>(square[k]);
}

// Calls f(offset, stat index, Full{} or Rest{}) for all vectors of the channels [c0, c1): along
// planes with one statistic for all lanes, or where planes are single elements along channels with
// one for each.
template <class T, class Plane, class Column>
void for_elements(const BatchNorm& s, int64_t c0, int64_t c1, Plane&& plane, Column&& column) {
  for (int64_t i = 0; i < s.n; ++i)
    if (s.size > 1) {
      for (int64_t ch = c0; ch < c1; ++ch) plane((i * s.c + ch) * s.size, ch);
    } else {
      for_lanes<T>(c1 - c0, [&](int64_t k, auto part) { column(i * s.c + c0 + k, c0 + k, part); });
    }
}

// Per channel, in workspace: mean, and what x - mean is multiplied with.
template <class T>
void statistics(const BatchNorm& s, const tn_run& run, int64_t c0, int64_t c1, T* mean, T* invstd) {
  auto* x = static_cast<const T*>(run.inputs[0]);
  if (!s.training) {
    auto *running_mean = static_cast<const T*>(run.inputs[3]),
         *running_var = static_cast<const T*>(run.inputs[4]);
    for (int64_t c = c0; c < c1; ++c)
      mean[c] = running_mean[c],
      invstd[c] = T(1) / std::sqrt(running_var[c] + static_cast<T>(s.eps));
    return;
  }
  auto *running_mean = static_cast<T*>(run.outputs[3]),
       *running_var = static_cast<T*>(run.outputs[4]);
  auto finish = [&](int64_t c, double m, double squares) {
    double count = s.count(), momentum = run.scalars[0].f;
    mean[c] = static_cast<T>(m);
    invstd[c] = static_cast<T>(1 / std::sqrt(squares / count + s.eps));
    if (running_mean)
      running_mean[c] =
          static_cast<T>((1 - momentum) * static_cast<double>(running_mean[c]) + momentum * m);
    if (running_var)
      running_var[c] = static_cast<T>((1 - momentum) * static_cast<double>(running_var[c]) +
                                      momentum * squares / std::max(1.0, count - 1));
  };
  if (s.size > 1) {
    for (int64_t c = c0; c < c1; ++c) {
      auto [m, squares] = plane_moments(s, x, c);
      finish(c, m, squares);
    }
    return;
  }
  for_lanes<T>(c1 - c0, [&](int64_t k, auto part) {
    double m[kWidth<T>], squares[kWidth<T>];
    column_moments(s, x + c0 + k, part, m, squares);
    for (int64_t j = 0; j < std::min<int64_t>(kWidth<T>, c1 - c0 - k); ++j)
      finish(c0 + k + j, m[j], squares[j]);
  });
}

template <class T>
void forward(const BatchNorm& s, const tn_run& run) {
  auto* x = static_cast<const T*>(run.inputs[0]);
  auto* weight = s.has_weight ? static_cast<const T*>(run.inputs[1]) : nullptr;
  auto* bias = s.has_bias ? static_cast<const T*>(run.inputs[2]) : nullptr;
  auto* y = static_cast<T*>(run.outputs[0]);
  T* own = static_cast<T*>(run.workspace);
  T* mean = run.outputs[1] ? static_cast<T*>(run.outputs[1]) : own;
  T* invstd = run.outputs[2] ? static_cast<T*>(run.outputs[2]) : own + s.c;
  for_channels(s, 64 / sizeof(T), [&](int64_t c0, int64_t c1) {
    statistics(s, run, c0, c1, mean, invstd);
    for_elements<T>(
        s, c0, c1,
        [&](int64_t at, int64_t c) {
          T m = mean[c], scale = weight ? invstd[c] * weight[c] : invstd[c],
            shift = bias ? bias[c] : T(0);
          for_lanes<T>(s.size, [&](int64_t i, auto part) {
            store<T>(y + at + i, (load(x + at + i, part) - m) * scale + shift, part);
          });
        },
        [&](int64_t at, int64_t c, auto part) {
          Vec<T> v = (load(x + at, part) - load(mean + c, part)) * load(invstd + c, part);
          if (weight) v *= load(weight + c, part);
          if (bias) v += load(bias + c, part);
          store<T>(y + at, v, part);
        });
  });
}

// With h = (x - mean) invstd: gweight = sum of g h, gbias = sum of g, and in training gx = w invstd
// (g - mean of g - h * mean of g h).
template <class T>
void backward(const BatchNorm& s, const tn_run& run) {
  auto *g = static_cast<const T*>(run.inputs[0]), *x = static_cast<const T*>(run.inputs[1]);
  auto* weight = s.has_weight ? static_cast<const T*>(run.inputs[2]) : nullptr;
  auto *mean = static_cast<const T*>(run.inputs[3]), *invstd = static_cast<const T*>(run.inputs[4]);
  auto *gx = static_cast<T*>(run.outputs[0]), *gweight = static_cast<T*>(run.outputs[1]),
       *gbias = static_cast<T*>(run.outputs[2]);
  T *sums = static_cast<T*>(run.workspace), *products = sums + s.c;
  T scale = static_cast<T>(1 / s.count());
  for_channels(s, 64 / sizeof(T), [&](int64_t c0, int64_t c1) {
    std::fill(sums + c0, sums + c1, T(0));
    std::fill(products + c0, products + c1, T(0));
    if (gweight || gbias || s.training)
      for_elements<T>(
          s, c0, c1,
          [&](int64_t at, int64_t c) {
            T m = mean[c];
            sums[c] +=
                sum_row<T>(s.size, [&](int64_t i, auto part) { return load(g + at + i, part); });
            products[c] += sum_row<T>(s.size, [&](int64_t i, auto part) {
              return load(g + at + i, part) * (load(x + at + i, part) - m);
            });
          },
          [&](int64_t at, int64_t c, auto part) {
            Vec<T> v = load(g + at, part);
            store<T>(sums + c, load(sums + c, part) + v, part);
            store<T>(products + c,
                     load(products + c, part) + v * (load(x + at, part) - load(mean + c, part)),
                     part);
          });
    for (int64_t c = c0; c < c1; ++c) {
      products[c] *= invstd[c];
      if (gweight) gweight[c] = products[c];
      if (gbias) gbias[c] = sums[c];
      // From here on: what gx subtracts from g.
      sums[c] = s.training ? sums[c] * scale : T(0);
      products[c] = s.training ? products[c] * scale * invstd[c] : T(0);
    }
    if (!gx) return;
    for_elements<T>(
        s, c0, c1,
        [&](int64_t at, int64_t c) {
          T m = mean[c], w = weight ? invstd[c] * weight[c] : invstd[c], a = sums[c],
            b = products[c];
          for_lanes<T>(s.size, [&](int64_t i, auto part) {
            store<T>(gx + at + i,
                     (load(g + at + i, part) - a - (load(x + at + i, part) - m) * b) * w, part);
          });
        },
        [&](int64_t at, int64_t c, auto part) {
          Vec<T> v = load(g + at, part) - load(sums + c, part) -
                     (load(x + at, part) - load(mean + c, part)) * load(products + c, part);
          v *= load(invstd + c, part);
          if (weight) v *= load(weight + c, part);
          store<T>(gx + at, v, part);
        });
  });
}

tn_plan* make_forward(tn_device*, const Request& request) {
  auto& x = request.input(0);
  auto s = BatchNorm::from(request, x);
  s.eps = request.get_float("eps");
  s.has_weight = request.has_input(1);
  s.has_bias = request.has_input(2);
  check_size(request, x, s.numel(), x.dtype, "x");
  check_size(request, request.output(0), s.numel(), x.dtype, "y");
  constexpr const char* names[] = {"x", "weight", "bias", "running_mean", "running_var"};
  for (size_t i = 1; i < 5; ++i)
    if (request.has_input(i)) check_size(request, request.input(i), s.c, x.dtype, names[i]);
  if (!s.training && !(request.has_input(3) && request.has_input(4)))
    sdk::invalid("without training it needs running_mean and running_var");
  if (request.num_outputs() < 5) sdk::invalid("five outputs, absent ones as NULL");
  for (size_t i = 1; i < 5; ++i)
    if (request.has_output(i)) check_size(request, request.output(i), s.c, x.dtype, "a statistic");
  for (size_t i = 3; i < 5; ++i)
    if (request.has_output(i) && request.alias(i) != static_cast<int32_t>(i))
      sdk::invalid("outputs 3 and 4 are inputs 3 and 4, updated in place");
  if (s.numel() == 0) return empty_plan();
  return with_float(request, x.dtype, [&](auto zero) {
    return sdk::make_plan([s](const tn_run& run) { forward<decltype(zero)>(s, run); },
                          {static_cast<uint64_t>(2 * s.c) * sizeof(zero), s.cost(x.dtype)});
  });
}

tn_plan* make_backward(tn_device*, const Request& request) {
  auto &g = request.input(0), &x = request.input(1);
  auto s = BatchNorm::from(request, x);
  s.has_weight = request.has_input(2);
  check_size(request, x, s.numel(), x.dtype, "x");
  check_size(request, g, s.numel(), x.dtype, "the gradient");
  if (s.has_weight) check_size(request, request.input(2), s.c, x.dtype, "weight");
  check_size(request, request.input(3), s.c, x.dtype, "mean");
  check_size(request, request.input(4), s.c, x.dtype, "invstd");
  if (request.num_outputs() < 3) sdk::invalid("three outputs, absent ones as NULL");
  if (request.has_output(0)) check_size(request, request.output(0), s.numel(), x.dtype, "gx");
  for (size_t i = 1; i < 3; ++i)
    if (request.has_output(i))
      check_size(request, request.output(i), s.c, x.dtype, "gweight and gbias");
  return with_float(request, x.dtype, [&](auto zero) {
    return sdk::make_plan([s](const tn_run& run) { backward<decltype(zero)>(s, run); },
                          {static_cast<uint64_t>(2 * s.c) * sizeof(zero), 2 * s.cost(x.dtype)});
  });
}

const sdk::Kernel registration({"batch_norm"}, make_forward);
const sdk::Kernel backward_registration({"batch_norm_backward"}, make_backward);

}  // namespace
}  // namespace tenon::cpu
