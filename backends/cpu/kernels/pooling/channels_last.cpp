#include "kernels/pooling/channels_last.h"

#include <limits>
#include <string>
#include <vector>

#include <tenon/plugins/sdk/requests/pooling.h>

namespace tenon::cpu {
namespace {

using sdk::PoolWindows;

// Rows or columns of one window that lie on the image: begin, begin + step, … below end. `count` is
// what an average divides by along this dimension.
struct Span {
  int64_t begin, end, step, count;
};

Span window(int64_t i, int64_t n, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
            bool count_padding) {
  const int64_t first = i * stride - padding, behind = first + (kernel - 1) * dilation + 1,
                begin = first >= 0 ? first : first + (-first + dilation - 1) / dilation * dilation,
                end = std::min(n, behind);
  const int64_t counted = std::min(first + kernel, n + padding) - first;
  return {begin, end, dilation, count_padding ? counted : std::max<int64_t>(0, end - begin)};
}
Span adaptive_window(int64_t i, int64_t count, int64_t n) {
  const int64_t begin = i * n / count, end = ((i + 1) * n + count - 1) / count;
  return {begin, end, 1, end - begin};
}

struct PixelPool : sdk::PoolRequest {
  int64_t n, c;
  std::vector<Span> rows, columns;  // of the windows

  PixelPool(const Request& request, const tn_tensor_desc& large, const tn_tensor_desc& small,
            PoolWindows windows)
      : PoolRequest(from_any_order(request, large, small, windows)),
        n(large.shape[0]),
        c(large.shape[1]) {
    const bool adaptive = windows == PoolWindows::none;
    for (int64_t i = 0; i < oh; ++i)
      rows.push_back(adaptive ? adaptive_window(i, oh, h)
                              : window(i, h, kh, sh, ph, dh, count_pad));
    for (int64_t i = 0; i < ow; ++i)
      columns.push_back(adaptive ? adaptive_window(i, ow, w)
                                 : window(i, w, kw, sw, pw, dw, count_pad));
  }

  // f(pixel of the image) for each of the window of output (row, column), row by row.
  template <class F>
  void for_pixels(int64_t row, int64_t column, F&& f) const {
    const Span &y = rows[static_cast<size_t>(row)], &x = columns[static_cast<size_t>(column)];
    for (int64_t i = y.begin; i < y.end; i += y.step)
      for (int64_t j = x.begin; j < x.end; j += x.step) f(i * w + j);
  }
  double scale(int64_t row, int64_t column) const {
    return 1.0 / static_cast<double>(rows[static_cast<size_t>(row)].count *
                                     columns[static_cast<size_t>(column)].count);
  }
  // Elements that all windows read or write together.
  double work() const {
    double down = 0, across = 0;
    for (auto& s : rows) down += double(std::max<int64_t>(0, s.end - s.begin)) / double(s.step) + 1;
    for (auto& s : columns)
      across += double(std::max<int64_t>(0, s.end - s.begin)) / double(s.step) + 1;
    return down * across * double(n) * double(c);
  }
  uint64_t cost(tn_dtype dtype) const {
    return 100 + static_cast<uint64_t>(std::min(work() / 6, 0x1p60)) * sdk::dtype_size(dtype) / 4;
  }

  // f(image, row, column, slot) for each pixel of the result, which all have their own elements.
  template <class F>
  void for_outputs(F&& f) const {
    const int64_t count = n * oh;
    const double each = std::max(1.0, work() / double(std::max<int64_t>(1, count)));
    parallel_for(count, std::max<int64_t>(1, static_cast<int64_t>(kGrain / each)),
                 [&](int64_t begin, int64_t end, uint32_t slot) {
                   for (int64_t at = begin; at < end; ++at)
                     for (int64_t k = 0; k < ow; ++k) f(at / oh, at % oh, k, slot);
                 });
  }
  // f(image, first channel, end of the channels): windows overlap, so a thread has channels of an
  // image, in whole lines of the cache.
  template <class F>
  void for_channels(int64_t unit, F&& f) const {
    const int64_t blocks = (c + unit - 1) / unit, count = n * blocks;
    const double each = std::max(1.0, work() / double(std::max<int64_t>(1, count)));
    parallel_for(count, std::max<int64_t>(1, static_cast<int64_t>(kGrain / each)),
                 [&](int64_t begin, int64_t end, uint32_t) {
                   for (int64_t at = begin; at < end; ++at) {
                     const int64_t first = at % blocks * unit;
                     f(at / blocks, first, std::min(c, first + unit));
                   }
                 });
  }
};

// The room of a slot of the parallel loop: `per_channel` bytes for each channel.
uint64_t slot_bytes(const PixelPool& p, uint64_t per_channel) {
  return (static_cast<uint64_t>(p.c) * per_channel + 63) / 64 * 64;
}

// A NaN always wins, the last of several.
template <class T, bool Indices>
void take_pixel(int64_t c, const T* from, int32_t pixel, T* best, int32_t* index) {
  for (int64_t k = 0; k < c; ++k) {
    const T v = from[k];
    const bool take = v > best[k] || v != v;
    best[k] = take ? v : best[k];
    if constexpr (Indices) index[k] = take ? pixel : index[k];
  }
}

template <class T>
void max_pixel(const PixelPool& p, int64_t row, int64_t column, const T* image, T* y, int64_t* at,
               int32_t* index) {
  const Span &down = p.rows[static_cast<size_t>(row)],
             &across = p.columns[static_cast<size_t>(column)];
  std::fill(y, y + p.c, -std::numeric_limits<T>::infinity());
  if (at) std::fill(index, index + p.c, static_cast<int32_t>(down.begin * p.w + across.begin));
  p.for_pixels(row, column, [&](int64_t pixel) {
    const T* from = image + pixel * p.c;
    at ? take_pixel<T, true>(p.c, from, static_cast<int32_t>(pixel), y, index)
       : take_pixel<T, false>(p.c, from, 0, y, nullptr);
  });
  if (at) std::copy(index, index + p.c, at);
}

template <class T, class Sum>
void average_pixel(const PixelPool& p, int64_t row, int64_t column, const T* image, T* y,
                   Sum* sums) {
  std::fill(sums, sums + p.c, Sum(0));
  p.for_pixels(row, column, [&](int64_t pixel) {
    const T* from = image + pixel * p.c;
    for (int64_t k = 0; k < p.c; ++k) sums[k] += static_cast<Sum>(from[k]);
  });
  const Sum scale = static_cast<Sum>(p.scale(row, column));
  for (int64_t k = 0; k < p.c; ++k) y[k] = static_cast<T>(sums[k] * scale);
}

template <class T>
void clear(const PixelPool& p, T* image, int64_t first, int64_t end) {
  for (int64_t pixel = 0; pixel < p.in_size(); ++pixel)
    std::fill(image + pixel * p.c + first, image + pixel * p.c + end, T(0));
}

}  // namespace

bool pools_channels_last(const Request& request) {
  bool last = true, row_major = true;
  const auto look_at = [&](const tn_tensor_desc& d) {
    last = last && sdk::is_channels_last(d);
    row_major = row_major && sdk::is_contiguous(d);
  };
  for (size_t i = 0; i < request.num_inputs(); ++i) look_at(request.input(i));
  for (size_t i = 0; i < request.num_outputs(); ++i)
    if (request.has_output(i)) look_at(request.output(i));
  return last && !row_major;
}

tn_plan* make_max_channels_last(const Request& request) {
  auto &x = request.input(0), &y = request.output(0);
  const PixelPool p(request, x, y, PoolWindows::dilated);
  const bool indices = request.has_output(1);
  if (indices) sdk::require_indices(request.output(1), y);
  if (p.in_size() > INT32_MAX) sdk::unsupported("a plane of more than 2^31 elements");
  if (sdk::numel(y) == 0) return empty_plan();
  const uint64_t bytes = slot_bytes(p, sizeof(int32_t));
  return with_float(x.dtype, [&]<class T>(T) {
    return sdk::make_plan(
        [p, indices, bytes](const tn_run& run) {
          auto* x = static_cast<const T*>(run.inputs[0]);
          auto* y = static_cast<T*>(run.outputs[0]);
          auto* at = indices ? static_cast<int64_t*>(run.outputs[1]) : nullptr;
          p.for_outputs([&](int64_t image, int64_t r, int64_t k, uint32_t slot) {
            const int64_t out = ((image * p.oh + r) * p.ow + k) * p.c;
            max_pixel(p, r, k, x + image * p.in_size() * p.c, y + out, at ? at + out : nullptr,
                      reinterpret_cast<int32_t*>(static_cast<char*>(run.workspace) + slot * bytes));
          });
        },
        {bytes * thread_count(), p.cost(x.dtype)});
  });
}

tn_plan* make_max_backward_channels_last(const Request& request) {
  auto &g = request.input(0), &gx = request.output(0);
  const PixelPool p(request, gx, g, PoolWindows::dilated);
  sdk::require_indices(request.input(1), g);
  if (sdk::numel(gx) == 0) return empty_plan();
  return with_float(g.dtype, [&]<class T>(T) {
    return sdk::make_plan(
        [p](const tn_run& run) {
          auto* g = static_cast<const T*>(run.inputs[0]);
          auto* indices = static_cast<const int64_t*>(run.inputs[1]);
          auto* gx = static_cast<T*>(run.outputs[0]);
          p.for_channels(64 / sizeof(T), [&](int64_t image, int64_t first, int64_t end) {
            T* to = gx + image * p.in_size() * p.c;
            clear(p, to, first, end);
            for (int64_t pixel = 0; pixel < p.out_size(); ++pixel) {
              const int64_t from = (image * p.out_size() + pixel) * p.c;
              for (int64_t k = first; k < end; ++k) {
                const int64_t index = indices[from + k];
                require_inside(index, p.in_size());
                to[index * p.c + k] += g[from + k];
              }
            }
          });
        },
        {0, p.cost(g.dtype)});
  });
}

tn_plan* make_average_channels_last(const Request& request, bool adaptive, bool backward) {
  auto &in = request.input(0), &out = request.output(0);
  const PixelPool p(request, backward ? out : in, backward ? in : out,
                    adaptive ? PoolWindows::none : PoolWindows::averaged);
  if (sdk::numel(out) == 0) return empty_plan();
  const bool large = adaptive || p.kh * p.kw > kMaxSummedAsTheyAre;
  return with_float(in.dtype, [&]<class T>(T) {
    const uint64_t bytes = slot_bytes(p, large ? sizeof(double) : sizeof(T));
    if (!backward)
      return sdk::make_plan(
          [p, large, bytes](const tn_run& run) {
            auto* x = static_cast<const T*>(run.inputs[0]);
            auto* y = static_cast<T*>(run.outputs[0]);
            p.for_outputs([&](int64_t image, int64_t r, int64_t k, uint32_t slot) {
              const T* from = x + image * p.in_size() * p.c;
              T* to = y + ((image * p.oh + r) * p.ow + k) * p.c;
              void* sums = static_cast<char*>(run.workspace) + slot * bytes;
              large ? average_pixel(p, r, k, from, to, static_cast<double*>(sums))
                    : average_pixel(p, r, k, from, to, static_cast<T*>(sums));
            });
          },
          {bytes * thread_count(), p.cost(in.dtype)});
    return sdk::make_plan(
        [p](const tn_run& run) {
          auto* g = static_cast<const T*>(run.inputs[0]);
          auto* gx = static_cast<T*>(run.outputs[0]);
          p.for_channels(64 / sizeof(T), [&](int64_t image, int64_t first, int64_t end) {
            T* to = gx + image * p.in_size() * p.c;
            clear(p, to, first, end);
            for (int64_t r = 0; r < p.oh; ++r)
              for (int64_t k = 0; k < p.ow; ++k) {
                const T* from = g + ((image * p.oh + r) * p.ow + k) * p.c;
                const T scale = static_cast<T>(p.scale(r, k));
                p.for_pixels(r, k, [&](int64_t pixel) {
                  for (int64_t i = first; i < end; ++i) to[pixel * p.c + i] += from[i] * scale;
                });
              }
          });
        },
        {0, p.cost(in.dtype)});
  });
}

}  // namespace tenon::cpu
