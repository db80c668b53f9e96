// The walk over all that an index names, which scatter and the gradient of gather share: in the
// order of the index whatever the number of threads. Where there are few dimensions before `dim` to
// share out, each thread has a part of the places along it and looks at all indices.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include <tenon/plugins/sdk/requests/indexing.h>

#include "kernels/indexing/index.h"
#include "kernels/shape/copy.h"

namespace tenon::cpu {

// Elements in a row: where the first of index, src and y is, without the place along dim. Only the
// places in [low, high) belong to this part of the work.
struct IndexedRow {
  int64_t index, src, y, count, low, high;
};

// The way through all rows, which is compiled once: what is done with a row depends on the types.
struct ScatterWalk {
  using PutRow = void (*)(const ScatterWalk& walk, const tn_run& run, const IndexedRow& row);
  uint32_t src;       // the number of the input that is written
  Nest outer, inner;  // index, src, y: the dimensions before dim, and the others
  int64_t size, stride;
  int64_t element, bytes, block;  // of an element of y, of all, of those from dim on

  // `seen` is y with a stride of 0 along dim.
  ScatterWalk(const Request& request, uint32_t src, const tn_tensor_desc& seen, size_t dim,
              int64_t size, int64_t stride)
      : src(src),
        outer(nest(request, src, seen, 0, dim)),
        inner(nest(request, src, seen, dim, seen.rank)),
        size(size),
        stride(stride) {
    const tn_tensor_desc& y = request.output(0);
    element = static_cast<int64_t>(sdk::dtype_size(y.dtype));
    bytes = sdk::numel(y) * element;
    block = element;
    for (size_t d = dim; d < y.rank; ++d) block *= y.shape[d];
  }
  static Nest nest(const Request& request, uint32_t src, const tn_tensor_desc& seen, size_t begin,
                   size_t end) {
    const auto i = dims_between(request.input(1), begin, end),
               from = dims_between(request.input(src), begin, end),
               to = dims_between(seen, begin, end);
    return Nest({&i, &from, &to});
  }

  // Fills y with the values at `from`, or with zeros, then calls `reset`, if it is not null, and
  // `put` for all rows. Where each block of y belongs to one block of the index, a thread does all
  // of this for one block after the other, so that the block stays in the cache.
  void operator()(const tn_run& run, const void* from, PutRow reset, PutRow put) const {
    const Tiling blocks{outer, 1, 1};
    const int64_t count = blocks.count(), work = outer.numel * inner.numel;
    const int64_t threads = work < kGrain ? 1 : thread_count();
    const int64_t parts = count >= threads ? 1 : std::min(threads, size);
    const int64_t grain = threads == 1 ? count * parts : (count * parts + threads - 1) / threads;
    const bool by_block = parts == 1 && count * block == bytes && block <= kBlockBytes;
    if (!by_block) begin(run, from);
    parallel_for(count * parts, grain, [&](int64_t first, int64_t last, uint32_t) {
      for (int64_t unit = first; unit < last; ++unit) {
        const int64_t part = unit % parts, low = size * part / parts,
                      high = size * (part + 1) / parts;
        blocks.walk(unit / parts, unit / parts + 1, [&](const int64_t* base, int64_t, int64_t) {
          if (by_block) begin_block(run, from, base[2] * element);
          if (reset) put_rows(run, reset, base, low, high);
          put_rows(run, put, base, low, high);
        });
      }
    });
  }

 private:
  static constexpr int64_t kBlockBytes = 256 * 1024;  // that stay in cache

  // y before anything is put there: `from`, or zeros where that is NULL.
  void begin(const tn_run& run, const void* from) const {
    if (run.outputs[0] == from) return;
    from ? copy_bytes(run.outputs[0], from, bytes) : zero_bytes(run.outputs[0], bytes);
  }
  void begin_block(const tn_run& run, const void* from, int64_t at) const {
    if (run.outputs[0] == from) return;
    auto* y = static_cast<char*>(run.outputs[0]) + at;
    const auto size = static_cast<size_t>(block);
    from ? std::memcpy(y, static_cast<const char*>(from) + at, size) : std::memset(y, 0, size);
  }
  void put_rows(const tn_run& run, PutRow put, const int64_t* base, int64_t low,
                int64_t high) const {
    const Tiling rows{inner, 1, inner.cols()};
    const auto row = [&](const int64_t* at, int64_t, int64_t cols) {
      put(*this, run, {base[0] + at[0], base[1] + at[1], base[2] + at[2], cols, low, high});
    };
    constexpr int64_t origin[kMaxOperands] = {};
    inner.rank <= 1 ? row(origin, 1, inner.cols()) : rows.walk(0, rows.count(), row);
  }
};

template <class Put, class T, class I>
void put_row(const ScatterWalk& walk, const tn_run& run, const IndexedRow& row) {
  auto* index = static_cast<const I*>(run.inputs[1]);
  auto* src = static_cast<const T*>(run.inputs[walk.src]) + row.src;
  auto* y = static_cast<T*>(run.outputs[0]) + row.y;
  const int64_t index_step = walk.inner.col_stride(0), src_step = walk.inner.col_stride(1),
                y_step = walk.inner.col_stride(2);
  const auto put = [&](auto all, int64_t index_step, int64_t src_step, int64_t y_step) {
    for (int64_t k = 0; k < row.count; ++k) {
      const int64_t position = row.index + k * index_step;
      const int64_t i = checked(index[position], walk.size, position);
      if (!all && (i < row.low || i >= row.high)) continue;
      T& at = y[k * y_step + i * walk.stride];
      at = Put::put(at, src[k * src_step]);
    }
  };
  // Along the last dimension, what most calls are.
  if (index_step == 1 && src_step == 1 && y_step == 0 && row.low == 0 && row.high == walk.size)
    return put(std::true_type{}, 1, 1, 0);
  put(std::false_type{}, index_step, src_step, y_step);
}

}  // namespace tenon::cpu
