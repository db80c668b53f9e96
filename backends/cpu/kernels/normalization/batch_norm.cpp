#include <cmath>

#include <tenon/plugins/sdk/requests/normalization.h>

#include "runtime/common.h"
#include "simd/packet.h"

namespace tenon::cpu {
namespace {

using BatchNorm = sdk::BatchNormRequest;

uint64_t cost(const BatchNorm& s) {
  return 200 + static_cast<uint64_t>(s.numel()) * sdk::dtype_size(s.dtype) / 6;
}
double count(const BatchNorm& s) { return static_cast<double>(s.n * s.size); }

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
// LeVeque 1979). A mean that is not finite is that of the sum, without the differences of
// infinities.
template <class T>
RowMoments plane_moments(const BatchNorm& s, const T* x, int64_t channel) {
  double mean = 0, squares = 0, count = 0, size = static_cast<double>(s.size);
  for (int64_t i = 0; i < s.n; ++i) {
    const RowMoments plane = moments_of_row(s.size, x + (i * s.c + channel) * s.size);
    const double apart = plane.mean - mean, all = count + size;
    mean += std::isfinite(mean) && std::isfinite(plane.mean) ? apart * size / all : plane.mean;
    squares += plane.squares + apart * apart * count * size / all;
    count = all;
  }
  return {mean, squares};
}

// The same for a vector of channels of an (n, c) input. As in moments_of_row, the mean is corrected
// by the mean distance from it.
template <class T, class Part>
void column_moments(const BatchNorm& s, const T* x, Part part, RowMoments* moments) {
  const double n = static_cast<double>(s.n);
  auto sums = sums_of_lanes<1, T>(
      s.n, [&](int64_t i, Vec<T>(&acc)[1]) { acc[0] += load(x + i * s.c, part); });
  for (double& v : sums.at[0]) v /= n;
  const Vec<T> near = sums.packet(0);
  const auto apart = sums_of_lanes<2, T>(s.n, [&](int64_t i, Vec<T>(&acc)[2]) {
    const Vec<T> d = load(x + i * s.c, part) - near;
    acc[0] += d;
    acc[1] += d * d;
  });
  for (int k = 0; k < kWidth<T>; ++k)
    moments[k] = corrected(static_cast<double>(near[k]), apart.at[0][k], apart.at[1][k], n);
}

// Computes all elements of the channels [c0, c1). `with(of)` reads by of(p) what p holds for each
// channel, and gives what is called with (offset, Full{} or Rest{}) for vectors of elements: along
// planes, where all lanes have one channel, or along channels, where planes are single elements.
template <class T, class With>
void for_elements(const BatchNorm& s, int64_t c0, int64_t c1, With&& with) {
  for (int64_t i = 0; i < s.n; ++i)
    if (s.size > 1) {
      for (int64_t c = c0; c < c1; ++c) {
        const auto element = with([c](const T* p) { return splat(p[c]); });
        const int64_t at = (i * s.c + c) * s.size;
        for_lanes<T>(s.size, [&](int64_t k, auto part) { element(at + k, part); });
      }
    } else {
      for_lanes<T>(c1 - c0, [&](int64_t k, auto part) {
        with([&](const T* p) { return load(p + c0 + k, part); })(i * s.c + c0 + k, part);
      });
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
  auto finish = [&](int64_t c, const RowMoments& found) {
    const auto [m, squares] = found;
    double n = count(s), momentum = run.scalars[0].f;
    mean[c] = static_cast<T>(m);
    invstd[c] = static_cast<T>(1 / std::sqrt(squares / n + s.eps));
    if (running_mean)
      running_mean[c] =
          static_cast<T>((1 - momentum) * static_cast<double>(running_mean[c]) + momentum * m);
    if (running_var)
      running_var[c] = static_cast<T>((1 - momentum) * static_cast<double>(running_var[c]) +
                                      momentum * squares / std::max(1.0, n - 1));
  };
  if (s.size > 1) {
    for (int64_t c = c0; c < c1; ++c) {
      finish(c, plane_moments(s, x, c));
    }
    return;
  }
  for_lanes<T>(c1 - c0, [&](int64_t k, auto part) {
    RowMoments moments[kWidth<T>];
    column_moments(s, x + c0 + k, part, moments);
    for (int64_t j = 0; j < std::min<int64_t>(kWidth<T>, c1 - c0 - k); ++j)
      finish(c0 + k + j, moments[j]);
  });
}

template <class T>
void forward(const BatchNorm& s, const tn_run& run) {
  auto* x = static_cast<const T*>(run.inputs[0]);
  auto* weight = s.weight ? static_cast<const T*>(run.inputs[1]) : nullptr;
  auto* bias = s.bias ? static_cast<const T*>(run.inputs[2]) : nullptr;
  auto* y = static_cast<T*>(run.outputs[0]);
  T* own = static_cast<T*>(run.workspace);
  T* mean = run.outputs[1] ? static_cast<T*>(run.outputs[1]) : own;
  T* invstd = run.outputs[2] ? static_cast<T*>(run.outputs[2]) : own + s.c;
  for_channels(s, 64 / sizeof(T), [&](int64_t c0, int64_t c1) {
    statistics(s, run, c0, c1, mean, invstd);
    for_elements<T>(s, c0, c1, [&](auto of) {
      const Vec<T> m = of(mean), scale = weight ? of(invstd) * of(weight) : of(invstd),
                   shift = bias ? of(bias) : Vec<T>{};
      return [=](int64_t at, auto part) {
        store<T>(y + at, (load(x + at, part) - m) * scale + shift, part);
      };
    });
  });
}

// The sums of g and of g (x - mean) of each channel.
template <class T>
void add_sums(const BatchNorm& s, int64_t c0, int64_t c1, const T* g, const T* x, const T* mean,
              T* sums, T* products) {
  for (int64_t c = c0; s.size > 1 && c < c1; ++c) {
    double sum = 0, product = 0;
    const T m = mean[c];
    for (int64_t i = 0; i < s.n; ++i) {
      const int64_t at = (i * s.c + c) * s.size;
      const auto plane = sums_of_row<2, T>(s.size, [&](int64_t k, auto part, Vec<T>(&acc)[2]) {
        const Vec<T> v = load(g + at + k, part);
        acc[0] += v;
        acc[1] += v * (load(x + at + k, part) - m);
      });
      sum += plane[0];
      product += plane[1];
    }
    sums[c] = static_cast<T>(sum);
    products[c] = static_cast<T>(product);
  }
  if (s.size > 1) return;
  for_lanes<T>(c1 - c0, [&](int64_t k, auto part) {
    const int64_t c = c0 + k;
    const Vec<T> m = load(mean + c, part);
    const auto found = sums_of_lanes<2, T>(s.n, [&](int64_t i, Vec<T>(&acc)[2]) {
      const Vec<T> v = load(g + i * s.c + c, part);
      acc[0] += v;
      acc[1] += v * (load(x + i * s.c + c, part) - m);
    });
    store<T>(sums + c, found.packet(0), part);
    store<T>(products + c, found.packet(1), part);
  });
}

// With h = (x - mean) invstd: gweight = sum of g h, gbias = sum of g, and in training gx = w invstd
// (g - mean of g - h * mean of g h).
template <class T>
void backward(const BatchNorm& s, const tn_run& run) {
  auto *g = static_cast<const T*>(run.inputs[0]), *x = static_cast<const T*>(run.inputs[1]);
  auto* weight = s.weight ? static_cast<const T*>(run.inputs[2]) : nullptr;
  auto *mean = static_cast<const T*>(run.inputs[3]), *invstd = static_cast<const T*>(run.inputs[4]);
  auto *gx = static_cast<T*>(run.outputs[0]), *gweight = static_cast<T*>(run.outputs[1]),
       *gbias = static_cast<T*>(run.outputs[2]);
  T *sums = static_cast<T*>(run.workspace), *products = sums + s.c;
  T scale = static_cast<T>(1 / count(s));
  for_channels(s, 64 / sizeof(T), [&](int64_t c0, int64_t c1) {
    const bool needs_sums = gweight || gbias || s.training;
    if (needs_sums) add_sums(s, c0, c1, g, x, mean, sums, products);
    for (int64_t c = c0; needs_sums && c < c1; ++c) {
      products[c] *= invstd[c];
      if (gweight) gweight[c] = products[c];
      if (gbias) gbias[c] = sums[c];
      // From here on: what gx subtracts from g.
      sums[c] *= scale;
      products[c] *= scale * invstd[c];
    }
    if (!gx) return;
    // Statistics that are constants: what x holds does not matter, be it NaN.
    if (!s.training)
      return for_elements<T>(s, c0, c1, [&](auto of) {
        const Vec<T> w = weight ? of(invstd) * of(weight) : of(invstd);
        return [=](int64_t at, auto part) { store<T>(gx + at, load(g + at, part) * w, part); };
      });
    for_elements<T>(s, c0, c1, [&](auto of) {
      const Vec<T> m = of(mean), w = weight ? of(invstd) * of(weight) : of(invstd), a = of(sums),
                   b = of(products);
      return [=](int64_t at, auto part) {
        store<T>(gx + at, (load(g + at, part) - a - (load(x + at, part) - m) * b) * w, part);
      };
    });
  });
}

// The statistics of nothing are 0.
template <class T>
void forward_of_nothing(const BatchNorm& s, const tn_run& run) {
  for (int i : {1, 2})
    if (run.outputs[i]) std::fill_n(static_cast<T*>(run.outputs[i]), s.c, T(0));
}

tn_plan* make_forward(tn_device*, const Request& request) {
  const auto s = BatchNorm::from(request);
  return with_float(s.dtype, [s]<class T>(T) {
    if (s.numel() == 0)
      return sdk::make_plan([s](const tn_run& run) { forward_of_nothing<T>(s, run); },
                            {0, cost(s)});
    return sdk::make_plan([s](const tn_run& run) { forward<T>(s, run); },
                          {static_cast<uint64_t>(2 * s.c) * sizeof(T), cost(s)});
  });
}

tn_plan* make_backward(tn_device*, const Request& request) {
  return with_float(request.input(1).dtype, [s = BatchNorm::from(request)]<class T>(T) {
    return sdk::make_plan([s](const tn_run& run) { backward<T>(s, run); },
                          {static_cast<uint64_t>(2 * s.c) * sizeof(T), 2 * cost(s)});
  });
}

const sdk::Kernel registration({"batch_norm"}, make_forward);
const sdk::Kernel backward_registration({"batch_norm_backward"}, make_backward);

}  // namespace
}  // namespace tenon::cpu
