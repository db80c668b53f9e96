#include <algorithm>
#include <cmath>
#include <utility>

#include <tenon/plugins/sdk/requests/normalization.h>

#include "kernels/normalization/rows.h"
#include "kernels/pointwise/finish.h"
#include "runtime/common.h"
#include "simd/packet.h"

namespace tenon::cpu {
namespace {

using BatchNorm = sdk::BatchNormRequest;

uint64_t cost(const BatchNorm& s) {
  return 200 + static_cast<uint64_t>(s.numel()) * sdk::dtype_size(s.dtype) / 6;
}
double count(const BatchNorm& s) { return static_cast<double>(s.n * s.size); }

// Calls body(c0, c1, slot) for groups of channels that fill cache lines, so that (n, c) inputs are
// read in whole lines and no two threads write to the same line.
template <class F>
void for_channels(const BatchNorm& s, int64_t unit, F&& body) {
  int64_t units = (s.c + unit - 1) / unit, work = std::max<int64_t>(1, s.n * s.size * unit);
  parallel_for(units, std::max<int64_t>(1, kGrain / 2 / work),
               [&](int64_t begin, int64_t end, uint32_t slot) {
                 body(begin * unit, std::min(s.c, end * unit), slot);
               });
}

// Halves of one channel that are kept in f32, in the second-level cache, while its statistics are
// computed and it is normalized: they are converted once.
constexpr int64_t kKept = 32 * 1024;
bool keeps_channel(const BatchNorm& s) {
  return has_16_bits(s.dtype) && s.training && s.size > 1 && s.n * s.size <= kKept;
}

// Mean and sum of squared distances of one channel: of each plane, then put together (Chan, Golub,
// LeVeque 1979). A mean that is not finite is that of the sum, without the differences of
// infinities.
template <class T>
RowMoments plane_moments(const BatchNorm& s, const RowsIn<T>& x, int64_t channel, T* buffer) {
  double mean = 0, squares = 0, count = 0, size = static_cast<double>(s.size);
  for (int64_t i = 0; i < s.n; ++i) {
    T* place = keeps_channel(s) ? buffer + i * s.size : buffer;
    const RowMoments plane =
        moments_of_row(s.size, x.read((i * s.c + channel) * s.size, s.size, place));
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

// Elements of a result that are complete, the last of which are in the cache: done(first, count).
template <class Done>
class Completed {
 public:
  explicit Completed(Done done) : done_(std::move(done)) {}
  void add(int64_t first, int64_t count) {
    if (first != end_) finish();
    if (begin_ == end_) begin_ = first;
    end_ = first + count;
    if (end_ - begin_ >= kAtOnce) finish();
  }
  void finish() {
    if (begin_ < end_) done_(begin_, end_ - begin_);
    begin_ = end_;
  }

 private:
  // So many are worth the call, and stay in the first-level cache.
  static constexpr int64_t kAtOnce = 2048;
  Done done_;
  int64_t begin_ = 0, end_ = 0;
};

// Images and channels.
struct Part {
  int64_t i0, i1, c0, c1;
};

// Computes y = element(a, b) for all elements of a part. `with(of)` reads by of(p) what p holds for
// each channel, and gives `element`, which is called for vectors of elements: along planes, where
// all lanes have one channel, or along channels, where planes are single elements. `buffer` has
// room for two planes. Elements that are there are given to done(first, count).
template <class T, class With, class Done>
void for_elements(const BatchNorm& s, const Part& of, const RowsIn<T>& a, const RowsIn<T>& b,
                  const RowsOut<T>& y, T* buffer, With&& with, Done&& done) {
  Completed completed(done);
  const auto [i0, i1, c0, c1] = of;
  for (int64_t i = i0; i < i1; ++i)
    if (s.size > 1) {
      for (int64_t c = c0; c < c1; ++c) {
        const auto element = with([c](const T* p) { return splat(p[c]); });
        const int64_t at = (i * s.c + c) * s.size;
        const T *pa = a.read(at, s.size, buffer),
                *pb = &a == &b ? pa : b.read(at, s.size, buffer + (buffer ? s.size : 0));
        T* to = y.place(at, buffer);
        for_lanes<T>(s.size, [&](int64_t k, auto part) {
          store<T>(to + k, element(load(pa + k, part), load(pb + k, part)), part);
        });
        y.write(at, s.size, to);
        completed.add(at, s.size);
      }
    } else {
      const int64_t first = c0, at = i * s.c + first, n = c1 - first;
      const T *pa = a.read(at, n, buffer), *pb = b.read(at, n, buffer);
      T* to = y.place(at, buffer);
      for_lanes<T>(n, [&](int64_t k, auto part) {
        const auto element = with([&](const T* p) { return load(p + first + k, part); });
        store<T>(to + k, element(load(pa + k, part), load(pb + k, part)), part);
      });
      completed.add(at, n);
    }
  completed.finish();
}

template <class T, class With>
void for_elements(const BatchNorm& s, int64_t c0, int64_t c1, const RowsIn<T>& a,
                  const RowsIn<T>& b, const RowsOut<T>& y, T* buffer, With&& with) {
  for_elements<T>(s, {0, s.n, c0, c1}, a, b, y, buffer, with, [](int64_t, int64_t) {});
}

// Where things lie in the workspace: 2 c elements of statistics or sums, the parameters in T where
// they are of a half type, then two planes, or a channel that is kept, for each slot.
template <class T>
RowBuffers<T> buffers_for(const BatchNorm& s, int64_t parameters) {
  const int64_t kept = keeps_channel(s) ? s.n * s.size : 0;
  return has_16_bits(s.dtype) ? RowBuffers<T>{(2 + parameters) * s.c, std::max(2 * s.size, kept)}
                              : RowBuffers<T>{2 * s.c, 0};
}
// The rows of (n, c) inputs are parts of lines, and a whole conversion is as good.
void require_planes_of_halves(const BatchNorm& s) {
  if (has_16_bits(s.dtype) && s.size == 1) refuse_dtype(s.dtype);
}

// Weight, bias and running statistics in T, each null where it is not there.
template <class T>
struct Parameters {
  const T *weight, *bias;
  T *running_mean, *running_var;

  Parameters(const BatchNorm& s, const tn_run& run) {
    T* buffer = static_cast<T*>(run.workspace) + 2 * s.c;
    auto read = [&](const void* data) {
      const T* p = data ? RowsIn<T>(data, s.parameters).read(0, s.c, buffer) : nullptr;
      if (p == buffer) buffer += s.c;
      return p;
    };
    weight = read(s.weight ? run.inputs[1] : nullptr);
    bias = read(s.bias ? run.inputs[2] : nullptr);
    // Those that are updated are outputs too, in place.
    running_mean = const_cast<T*>(read(s.training ? run.outputs[3] : run.inputs[3]));
    running_var = const_cast<T*>(read(s.training ? run.outputs[4] : run.inputs[4]));
  }
  void write_running(const BatchNorm& s, const tn_run& run) const {
    if (!s.training || !running_mean) return;
    RowsOut<T>(run.outputs[3], s.parameters).write(0, s.c, running_mean);
    RowsOut<T>(run.outputs[4], s.parameters).write(0, s.c, running_var);
  }
};

// Per channel: mean, and what x - mean is multiplied with.
template <class T>
void statistics(const BatchNorm& s, const tn_run& run, const Parameters<T>& p, int64_t c0,
                int64_t c1, T* mean, T* invstd, T* buffer) {
  if (!s.training) {
    for (int64_t c = c0; c < c1; ++c)
      mean[c] = p.running_mean[c],
      invstd[c] = T(1) / std::sqrt(p.running_var[c] + static_cast<T>(s.eps));
    return;
  }
  auto finish = [&](int64_t c, const RowMoments& found) {
    const auto [m, squares] = found;
    double n = count(s), momentum = run.scalars[0].f;
    mean[c] = static_cast<T>(m);
    invstd[c] = static_cast<T>(1 / std::sqrt(squares / n + s.eps));
    if (!p.running_mean) return;
    p.running_mean[c] =
        static_cast<T>((1 - momentum) * static_cast<double>(p.running_mean[c]) + momentum * m);
    p.running_var[c] = static_cast<T>((1 - momentum) * static_cast<double>(p.running_var[c]) +
                                      momentum * squares / std::max(1.0, n - 1));
  };
  if (s.size > 1) {
    const RowsIn<T> x(run.inputs[0], s.dtype);
    for (int64_t c = c0; c < c1; ++c) finish(c, plane_moments(s, x, c, buffer));
    return;
  }
  auto* x = static_cast<const T*>(run.inputs[0]);
  for_lanes<T>(c1 - c0, [&](int64_t k, auto part) {
    RowMoments moments[kWidth<T>];
    column_moments(s, x + c0 + k, part, moments);
    for (int64_t j = 0; j < std::min<int64_t>(kWidth<T>, c1 - c0 - k); ++j)
      finish(c0 + k + j, moments[j]);
  });
}

// y = element(x) of a channel that is kept in `kept`. Results of halves are never finished.
template <class T, class Element>
void write_kept(const BatchNorm& s, int64_t channel, T* kept, const RowsOut<T>& y,
                const Element& element) {
  for_lanes<T>(s.n * s.size, [&](int64_t k, auto part) {
    const Vec<T> v = load(kept + k, part);
    store<T>(kept + k, element(v, v), part);
  });
  for (int64_t i = 0; i < s.n; ++i)
    y.write((i * s.c + channel) * s.size, s.size, kept + i * s.size);
}

template <class T>
void forward(const BatchNorm& s, const RowBuffers<T>& buffers, const Finish& finish,
             const tn_run& run) {
  const RowsIn<T> x(run.inputs[0], s.dtype);
  const RowsOut<T> y(run.outputs[0], s.dtype);
  const Parameters<T> p(s, run);
  const Finish::Run with = finish.of(run);
  T* own = static_cast<T*>(run.workspace);
  T* mean = run.outputs[1] ? static_cast<T*>(run.outputs[1]) : own;
  T* invstd = run.outputs[2] ? static_cast<T*>(run.outputs[2]) : own + s.c;
  const auto element = [&](auto of) {
    const Vec<T> m = of(mean), scale = p.weight ? of(invstd) * of(p.weight) : of(invstd),
                 shift = p.bias ? of(p.bias) : Vec<T>{};
    return [=](Vec<T> v, Vec<T>) { return Vec<T>((v - m) * scale + shift); };
  };
  const auto normalize = [&](const Part& part, T* buffer) {
    for_elements<T>(s, part, x, x, y, buffer, element, [&](int64_t first, int64_t count) {
      if (finish) finish(static_cast<T*>(run.outputs[0]) + first, count, with);
    });
  };
  // Where all is known of the channels, threads share rows, which are whole lines.
  if (!s.training && s.size == 1) {
    statistics<T>(s, run, p, 0, s.c, mean, invstd, nullptr);
    return parallel_for(s.n, std::max<int64_t>(1, kGrain / 2 / std::max<int64_t>(1, s.c)),
                        [&](int64_t begin, int64_t end, uint32_t) {
                          normalize({begin, end, 0, s.c}, nullptr);
                        });
  }
  for_channels(s, 64 / sizeof(T), [&](int64_t c0, int64_t c1, uint32_t slot) {
    T* buffer = buffers.of(run, slot);
    if (!keeps_channel(s)) {
      statistics(s, run, p, c0, c1, mean, invstd, buffer);
      return normalize({0, s.n, c0, c1}, buffer);
    }
    for (int64_t c = c0; c < c1; ++c) {
      statistics(s, run, p, c, c + 1, mean, invstd, buffer);
      write_kept(s, c, buffer, y, element([c](const T* v) { return splat(v[c]); }));
    }
  });
  p.write_running(s, run);
}

// The sums of g and of g (x - mean) of each channel.
template <class T>
void add_sums(const BatchNorm& s, int64_t c0, int64_t c1, const RowsIn<T>& g, const RowsIn<T>& x,
              const T* mean, T* sums, T* products, T* buffer) {
  for (int64_t c = c0; s.size > 1 && c < c1; ++c) {
    double sum = 0, product = 0;
    const T m = mean[c];
    for (int64_t i = 0; i < s.n; ++i) {
      const int64_t at = (i * s.c + c) * s.size;
      const T *pg = g.read(at, s.size, buffer),
              *px = x.read(at, s.size, buffer + (buffer ? s.size : 0));
      const auto plane = sums_of_row<2, T>(s.size, [&](int64_t k, auto part, Vec<T>(&acc)[2]) {
        const Vec<T> v = load(pg + k, part);
        acc[0] += v;
        acc[1] += v * (load(px + k, part) - m);
      });
      sum += plane[0];
      product += plane[1];
    }
    sums[c] = static_cast<T>(sum);
    products[c] = static_cast<T>(product);
  }
  if (s.size > 1) return;
  const T *pg = g.read(0, 0, nullptr), *px = x.read(0, 0, nullptr);
  for_lanes<T>(c1 - c0, [&](int64_t k, auto part) {
    const int64_t c = c0 + k;
    const Vec<T> m = load(mean + c, part);
    const auto found = sums_of_lanes<2, T>(s.n, [&](int64_t i, Vec<T>(&acc)[2]) {
      const Vec<T> v = load(pg + i * s.c + c, part);
      acc[0] += v;
      acc[1] += v * (load(px + i * s.c + c, part) - m);
    });
    store<T>(sums + c, found.packet(0), part);
    store<T>(products + c, found.packet(1), part);
  });
}

// With h = (x - mean) invstd: gweight = sum of g h, gbias = sum of g, and in training gx = w invstd
// (g - mean of g - h * mean of g h).
template <class T>
void backward(const BatchNorm& s, const RowBuffers<T>& buffers, const tn_run& run) {
  T *sums = static_cast<T*>(run.workspace), *products = sums + s.c;
  const RowsIn<T> g(run.inputs[0], s.dtype), x(run.inputs[1], s.dtype);
  const T* weight =
      s.weight ? RowsIn<T>(run.inputs[2], s.parameters).read(0, s.c, products + s.c) : nullptr;
  auto *mean = static_cast<const T*>(run.inputs[3]), *invstd = static_cast<const T*>(run.inputs[4]);
  const RowsOut<T> gx(run.outputs[0], s.dtype), gweight(run.outputs[1], s.parameters),
      gbias(run.outputs[2], s.parameters);
  T *to_weight = gweight ? gweight.place(0, products + 2 * s.c) : nullptr,
    *to_bias = gbias ? gbias.place(0, products + 3 * s.c) : nullptr;
  T scale = static_cast<T>(1 / count(s));
  for_channels(s, 64 / sizeof(T), [&](int64_t c0, int64_t c1, uint32_t slot) {
    T* buffer = buffers.of(run, slot);
    const bool needs_sums = to_weight || to_bias || s.training;
    if (needs_sums) add_sums(s, c0, c1, g, x, mean, sums, products, buffer);
    for (int64_t c = c0; needs_sums && c < c1; ++c) {
      products[c] *= invstd[c];
      if (to_weight) to_weight[c] = products[c];
      if (to_bias) to_bias[c] = sums[c];
      // From here on: what gx subtracts from g.
      sums[c] *= scale;
      products[c] *= scale * invstd[c];
    }
    if (!gx) return;
    // Statistics are constants here, so it does not matter what x holds, even if it is NaN.
    if (!s.training)
      return for_elements<T>(s, c0, c1, g, g, gx, buffer, [&](auto of) {
        const Vec<T> w = weight ? of(invstd) * of(weight) : of(invstd);
        return [=](Vec<T> v, Vec<T>) { return Vec<T>(v * w); };
      });
    for_elements<T>(s, c0, c1, g, x, gx, buffer, [&](auto of) {
      const Vec<T> m = of(mean), w = weight ? of(invstd) * of(weight) : of(invstd), a = of(sums),
                   b = of(products);
      return [=](Vec<T> v, Vec<T> near) { return Vec<T>((v - a - (near - m) * b) * w); };
    });
  });
  if (to_weight) gweight.write(0, s.c, to_weight);
  if (to_bias) gbias.write(0, s.c, to_bias);
}

// Without elements the statistics are 0.
template <class T>
void forward_of_nothing(const BatchNorm& s, const tn_run& run) {
  for (int i : {1, 2})
    if (run.outputs[i]) std::fill_n(static_cast<T*>(run.outputs[i]), s.c, T(0));
}

tn_plan* make_batch_norm(tn_device*, const Request& request) {
  sdk::require_scalars(request, 1);
  const auto s = BatchNorm::from(request);
  require_planes_of_halves(s);
  const Finish finish = finish_of(request, 5, 1);
  return with_float(computed_as(s.dtype), [s, finish]<class T>(T) {
    if (s.numel() == 0)
      return sdk::make_plan([s](const tn_run& run) { forward_of_nothing<T>(s, run); },
                            {0, cost(s)});
    const auto buffers = buffers_for<T>(s, 4);
    const auto finish_ns = static_cast<uint64_t>(finish.ns * static_cast<double>(s.numel()));
    return sdk::make_plan([=](const tn_run& run) { forward<T>(s, buffers, finish, run); },
                          {buffers.bytes(), cost(s) + finish_ns});
  });
}

tn_plan* make_batch_norm_backward(tn_device*, const Request& request) {
  const auto s = BatchNorm::from(request);
  require_planes_of_halves(s);
  return with_float(computed_as(s.dtype), [s]<class T>(T) {
    const auto buffers = buffers_for<T>(s, 3);
    return sdk::make_plan([=](const tn_run& run) { backward<T>(s, buffers, run); },
                          {buffers.bytes(), 2 * cost(s)});
  });
}

const sdk::Kernel batch_norm({"batch_norm"}, make_batch_norm);
const sdk::Kernel batch_norm_backward({"batch_norm_backward"}, make_batch_norm_backward);

}  // namespace
}  // namespace tenon::cpu
