// Each row is a group of planes, one for each of its channels.
#include <cmath>

#include <tenon/plugins/sdk/requests/normalization.h>

#include "kernels/normalization/rows.h"
#include "runtime/common.h"
#include "simd/packet.h"

namespace tenon::cpu {
namespace {

struct GroupNorm : sdk::GroupNormRequest {
  explicit GroupNorm(const Request& request) : GroupNormRequest(from(request)) {}

  bool half() const { return has_16_bits(dtype); }
  int64_t numel() const { return n * c * size; }
  int64_t grain() const {
    return std::max<int64_t>(1, kGrain / 2 / std::max<int64_t>(1, row_size()));
  }
  uint64_t cost() const {
    return 100 + static_cast<uint64_t>(rows() * (row_size() / 8 + channels() * 4 + 20)) *
                     sdk::dtype_size(dtype) / 4;
  }
};

// Calls f(element of the row, channel of the group, Full{} or Rest{}, of) for vectors of elements
// of a row, where of(p) is what p holds for their channels: one value for a plane, or a vector of
// values where planes are single elements.
template <class T, class F>
void for_planes(const GroupNorm& s, F&& f) {
  if (s.size == 1)
    return for_lanes<T>(s.channels(), [&](int64_t i, auto part) {
      f(i, part, [i, part](const T* p) { return load(p + i, part); });
    });
  for (int64_t c = 0; c < s.channels(); ++c)
    for_lanes<T>(s.size, [&, c](int64_t i, auto part) {
      f(c * s.size + i, part, [c](const T* p) { return splat(p[c]); });
    });
}

template <class T>
void forward(const GroupNorm& s, const RowBuffers<T>& buffers, const tn_run& run) {
  auto* own = static_cast<T*>(run.workspace);
  auto parameter = [&](bool there, int i, T* buffer) {
    return there ? RowsIn<T>(run.inputs[i], s.parameters).read(0, s.c, buffer) : nullptr;
  };
  const T* weight = parameter(s.weight, 1, own);
  const T* bias = parameter(s.bias, 2, own + (own ? s.c : 0));
  const RowsIn<T> x(run.inputs[0], s.dtype);
  const RowsOut<T> y(run.outputs[0], s.dtype);
  auto *means = static_cast<T*>(run.outputs[1]), *invstds = static_cast<T*>(run.outputs[2]);
  const int64_t size = s.row_size();
  parallel_for(s.rows(), s.grain(), [&](int64_t begin, int64_t end, uint32_t slot) {
    T* buffer = buffers.of(run, slot);
    for (int64_t r = begin; r < end; ++r) {
      const T* xr = x.read(r * size, size, buffer);
      T* yr = y.place(r * size, buffer);
      const int64_t first = r % s.groups * s.channels();  // of its channels
      const RowMoments moments = moments_of_row(size, xr);
      const T mean = static_cast<T>(moments.mean),
              variance = static_cast<T>(moments.squares / static_cast<double>(size)),
              invstd = T(1) / std::sqrt(variance + static_cast<T>(s.eps));
      for_planes<T>(s, [&](int64_t i, auto part, auto of) {
        Vec<T> v = (load(xr + i, part) - mean) * invstd;
        if (weight) v *= of(weight + first);
        if (bias) v += of(bias + first);
        store<T>(yr + i, v, part);
      });
      y.write(r * size, size, yr);
      if (means) means[r] = mean;
      if (invstds) invstds[r] = invstd;
    }
  });
}

// The sums of g h and of g over each plane of a row, with h = (x - mean) invstd.
template <class T>
void sum_planes(const GroupNorm& s, const T* g, const T* x, T mean, T invstd, T* products,
                T* sums) {
  if (s.size == 1)
    return for_lanes<T>(s.channels(), [&](int64_t c, auto part) {
      const Vec<T> v = load(g + c, part);
      store<T>(products + c, v * ((load(x + c, part) - mean) * invstd), part);
      store<T>(sums + c, v, part);
    });
  for (int64_t c = 0; c < s.channels(); ++c) {
    const int64_t at = c * s.size;
    const auto plane = sums_of_row<2, T>(s.size, [&](int64_t i, auto part, Vec<T>(&acc)[2]) {
      const Vec<T> v = load(g + at + i, part);
      acc[0] += v * ((load(x + at + i, part) - mean) * invstd);
      acc[1] += v;
    });
    products[c] = static_cast<T>(plane[0]);
    sums[c] = static_cast<T>(plane[1]);
  }
}

// The parts of the workspace of a gradient: the sums of all planes, then weight and rows in T where
// they are of a half type.
template <class T>
RowBuffers<T> backward_buffers(const GroupNorm& s) {
  const int64_t sums = 2 * s.n * s.c;
  return s.half() ? RowBuffers<T>{sums + s.c, 2 * s.row_size()} : RowBuffers<T>{sums, 0};
}

// With h = (x - mean) invstd and k = g weight: gweight = sum of g h, gbias = sum of g, and gx =
// invstd (k - mean of k - h * mean of k h), whose means are made of the sums of the planes.
template <class T>
void backward(const GroupNorm& s, const RowBuffers<T>& buffers, const tn_run& run) {
  T *products = static_cast<T*>(run.workspace), *sums = products + s.n * s.c;
  const RowsIn<T> g(run.inputs[0], s.dtype), x(run.inputs[1], s.dtype);
  const T* weight =
      s.weight ? RowsIn<T>(run.inputs[2], s.parameters).read(0, s.c, sums + s.n * s.c) : nullptr;
  auto *means = static_cast<const T*>(run.inputs[3]),
       *invstds = static_cast<const T*>(run.inputs[4]);
  const RowsOut<T> gx(run.outputs[0], s.dtype), gweight(run.outputs[1], s.parameters),
      gbias(run.outputs[2], s.parameters);
  const int64_t size = s.row_size();
  parallel_for(s.rows(), s.grain(), [&](int64_t begin, int64_t end, uint32_t slot) {
    T* buffer = buffers.of(run, slot);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t first = r % s.groups * s.channels(), plane = r * s.channels();
      const T *gr = g.read(r * size, size, buffer),
              *xr = x.read(r * size, size, buffer + (buffer ? size : 0));
      const T mean = means[r], invstd = invstds[r];
      sum_planes(s, gr, xr, mean, invstd, products + plane, sums + plane);
      if (!gx) continue;
      double sum_k = 0, sum_kh = 0;
      for (int64_t c = 0; c < s.channels(); ++c) {
        const double w = weight ? static_cast<double>(weight[first + c]) : 1;
        sum_k += w * static_cast<double>(sums[plane + c]);
        sum_kh += w * static_cast<double>(products[plane + c]);
      }
      const T a = static_cast<T>(sum_k / static_cast<double>(size)),
              b = static_cast<T>(sum_kh / static_cast<double>(size));
      T* to = gx.place(r * size, buffer);
      for_planes<T>(s, [&](int64_t i, auto part, auto of) {
        const Vec<T> h = (load(xr + i, part) - mean) * invstd;
        Vec<T> k = load(gr + i, part);
        if (weight) k *= of(weight + first);
        store<T>(to + i, (k - a - h * b) * invstd, part);
      });
      gx.write(r * size, size, to);
    }
  });
  // The sums of all images go to the first one's place.
  for (int which = 0; which < 2; ++which)
    if (const auto& out = which ? gbias : gweight) {
      T *all = which ? sums : products, *to = out.place(0, all);
      for (int64_t c = 0; c < s.c; ++c) {
        double sum = 0;
        for (int64_t i = 0; i < s.n; ++i) sum += static_cast<double>(all[i * s.c + c]);
        to[c] = static_cast<T>(sum);
      }
      out.write(0, s.c, to);
    }
}

tn_plan* make_group_norm(tn_device*, const Request& request) {
  const GroupNorm s(request);
  if (s.numel() == 0) return empty_plan();
  return with_float(computed_as(s.dtype), [s]<class T>(T) {
    const auto buffers = s.half() ? RowBuffers<T>{2 * s.c, s.row_size()} : RowBuffers<T>{};
    return sdk::make_plan([=](const tn_run& run) { forward<T>(s, buffers, run); },
                          {buffers.bytes(), s.cost()});
  });
}

tn_plan* make_group_norm_backward(tn_device*, const Request& request) {
  const GroupNorm s(request);
  return with_float(computed_as(s.dtype), [s]<class T>(T) {
    const auto buffers = backward_buffers<T>(s);
    return sdk::make_plan([=](const tn_run& run) { backward<T>(s, buffers, run); },
                          {buffers.bytes(), 2 * s.cost()});
  });
}

const sdk::Kernel group_norm({"group_norm"}, make_group_norm);
const sdk::Kernel group_norm_backward({"group_norm_backward"}, make_group_norm_backward);

}  // namespace
}  // namespace tenon::cpu
