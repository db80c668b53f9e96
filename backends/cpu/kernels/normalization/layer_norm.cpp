#include <cmath>

#include "runtime/common.h"
#include "simd/packet.h"

namespace tenon::cpu {
namespace {

struct LayerNorm {
  int64_t rows = 1, size = 1;
  bool has_weight = false, has_bias = false;
  double eps = 0;

  static LayerNorm from(const Request& request, const tn_tensor_desc& x) {
    int64_t inner = request.get_int("normalized_ndim");
    if (inner < 1 || inner > x.rank)
      sdk::invalid("normalized_ndim " + std::to_string(inner) + " of a tensor of " +
                   std::to_string(x.rank) + " dimensions");
    LayerNorm s;
    for (uint32_t d = 0; d < x.rank; ++d) (d + inner < x.rank ? s.rows : s.size) *= x.shape[d];
    return s;
  }
  int64_t grain() const { return std::max<int64_t>(1, kGrain / 2 / std::max<int64_t>(1, size)); }
  uint64_t cost(tn_dtype dtype) const {
    return 100 + static_cast<uint64_t>(rows * (size / 8 + 20)) * sdk::dtype_size(dtype) / 4;
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

template <class T>
void forward(const LayerNorm& s, const tn_run& run) {
  auto* x = static_cast<const T*>(run.inputs[0]);
  auto* weight = s.has_weight ? static_cast<const T*>(run.inputs[1]) : nullptr;
  auto* bias = s.has_bias ? static_cast<const T*>(run.inputs[2]) : nullptr;
  auto *y = static_cast<T*>(run.outputs[0]), *means = static_cast<T*>(run.outputs[1]),
       *invstds = static_cast<T*>(run.outputs[2]);
  parallel_for(s.rows, s.grain(), [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t r = begin; r < end; ++r) {
      const T* xr = x + r * s.size;
      T* yr = y + r * s.size;
      T mean = sum_row<T>(s.size, [&](int64_t i, auto part) { return load(xr + i, part); }) /
               static_cast<T>(s.size);
      T squares = sum_row<T>(s.size, [&](int64_t i, auto part) {
        Vec<T> d = keep<T>(load(xr + i, part) - mean, part);
        return d * d;
      });
      T invstd = T(1) / std::sqrt(squares / static_cast<T>(s.size) + static_cast<T>(s.eps));
      for_lanes<T>(s.size, [&](int64_t i, auto part) {
        Vec<T> v = (load(xr + i, part) - mean) * invstd;
        if (weight) v *= load(weight + i, part);
        if (bias) v += load(bias + i, part);
        store<T>(yr + i, v, part);
      });
      if (means) means[r] = mean;
      if (invstds) invstds[r] = invstd;
    }
  });
}

// With h = (x - mean) invstd: gweight = sum of g h, gbias = sum of g, gx = invstd (g w - mean of g
// w - h * mean of g w h).
template <class T>
void backward(const LayerNorm& s, int64_t chunks, const tn_run& run) {
  auto *g = static_cast<const T*>(run.inputs[0]), *x = static_cast<const T*>(run.inputs[1]);
  auto* weight = s.has_weight ? static_cast<const T*>(run.inputs[2]) : nullptr;
  auto *means = static_cast<const T*>(run.inputs[3]),
       *invstds = static_cast<const T*>(run.inputs[4]);
  auto *gx = static_cast<T*>(run.outputs[0]), *gweight = static_cast<T*>(run.outputs[1]),
       *gbias = static_cast<T*>(run.outputs[2]);
  bool sums = gweight || gbias;
  auto* partial = static_cast<T*>(run.workspace);
  if (sums) std::fill(partial, partial + chunks * 2 * s.size, T(0));
  // Each chunk of rows has sums of its own, whichever thread works on it.
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      T *gw = partial + chunk * 2 * s.size, *gb = gw + s.size;
      for (int64_t r = chunk * s.rows / chunks; r < (chunk + 1) * s.rows / chunks; ++r) {
        const T *gr = g + r * s.size, *xr = x + r * s.size;
        T mean = means[r], invstd = invstds[r], scale = T(1) / static_cast<T>(s.size), a = 0, b = 0;
        auto scaled = [&](int64_t i, auto part) {
          return weight ? load(gr + i, part) * load(weight + i, part) : load(gr + i, part);
        };
        if (gx) {
          a = scale * sum_row<T>(s.size, [&](int64_t i, auto part) { return scaled(i, part); });
          b = scale * sum_row<T>(s.size, [&](int64_t i, auto part) {
                return scaled(i, part) * ((load(xr + i, part) - mean) * invstd);
              });
        }
        for_lanes<T>(s.size, [&](int64_t i, auto part) {
          Vec<T> h = (load(xr + i, part) - mean) * invstd;
          if (gx) store<T>(gx + r * s.size + i, (scaled(i, part) - a - h * b) * invstd, part);
          if (!sums) return;
          Vec<T> gi = load(gr + i, part);
          store<T>(gw + i, load(gw + i, part) + gi * h, part);
          store<T>(gb + i, load(gb + i, part) + gi, part);
        });
      }
    }
  });
  for (int which = 0; which < 2; ++which)
    if (T* out = which ? gbias : gweight)
      for (int64_t i = 0; i < s.size; ++i) {
        T sum = 0;
        for (int64_t chunk = 0; chunk < chunks; ++chunk)
          sum += partial[(chunk * 2 + which) * s.size + i];
        out[i] = sum;
      }
}

tn_plan* make_forward(tn_device*, const Request& request) {
  auto& x = request.input(0);
  auto s = LayerNorm::from(request, x);
  s.eps = request.get_float("eps");
  s.has_weight = request.has_input(1);
  s.has_bias = request.has_input(2);
  check_size(request, x, s.rows * s.size, x.dtype, "x");
  check_size(request, request.output(0), s.rows * s.size, x.dtype, "y");
  if (s.has_weight) check_size(request, request.input(1), s.size, x.dtype, "weight");
  if (s.has_bias) check_size(request, request.input(2), s.size, x.dtype, "bias");
  if (request.has_output(1)) check_size(request, request.output(1), s.rows, x.dtype, "mean");
  if (request.has_output(2)) check_size(request, request.output(2), s.rows, x.dtype, "invstd");
  if (request.num_outputs() < 3) sdk::invalid("three outputs, absent ones as NULL");
  if (s.rows == 0) return empty_plan();
  return with_float(request, x.dtype, [&](auto zero) {
    return sdk::make_plan([s](const tn_run& run) { forward<decltype(zero)>(s, run); },
                          {0, s.cost(x.dtype)});
  });
}

tn_plan* make_backward(tn_device*, const Request& request) {
  auto &g = request.input(0), &x = request.input(1);
  auto s = LayerNorm::from(request, x);
  s.has_weight = request.has_input(2);
  check_size(request, x, s.rows * s.size, x.dtype, "x");
  check_size(request, g, s.rows * s.size, x.dtype, "the gradient");
  if (s.has_weight) check_size(request, request.input(2), s.size, x.dtype, "weight");
  check_size(request, request.input(3), s.rows, x.dtype, "mean");
  check_size(request, request.input(4), s.rows, x.dtype, "invstd");
  if (request.num_outputs() < 3) sdk::invalid("three outputs, absent ones as NULL");
  if (request.has_output(0)) check_size(request, request.output(0), s.rows * s.size, x.dtype, "gx");
  if (request.has_output(1)) check_size(request, request.output(1), s.size, x.dtype, "gweight");
  if (request.has_output(2)) check_size(request, request.output(2), s.size, x.dtype, "gbias");
  int64_t chunks = std::clamp<int64_t>(s.rows / s.grain(), 1, thread_count());
  return with_float(request, x.dtype, [&](auto zero) {
    return sdk::make_plan(
        [s, chunks](const tn_run& run) { backward<decltype(zero)>(s, chunks, run); },
        {static_cast<uint64_t>(chunks * 2 * s.size) * sizeof(zero), 2 * s.cost(x.dtype)});
  });
}

const sdk::Kernel registration({"layer_norm"}, make_forward);
const sdk::Kernel backward_registration({"layer_norm_backward"}, make_backward);

}  // namespace
}  // namespace tenon::cpu
