// Rows by index: embedding and index_select, and their gradients. A tensor is seen as (outer, size,
// inner), `size` being indexed.
#include "kernels/indexing/index.h"

#include <cstring>

#include <tenon/plugins/sdk/requests/indexing.h>

#include "kernels/shape/copy.h"
#include "simd/copy.h"

namespace tenon::cpu {
namespace {

// y[o, i, :] = x[o, index[i], :]
template <class I>
struct Select {
  int64_t outer, size, count, row_bytes;

  void operator()(const tn_run& run) const {
    auto* x = static_cast<const char*>(run.inputs[0]);
    auto* index = static_cast<const I*>(run.inputs[1]);
    auto* y = static_cast<char*>(run.outputs[0]);
    parallel_for(outer * count, std::max<int64_t>(1, 4 * kGrain / (row_bytes + 16)),
                 [&](int64_t begin, int64_t end, uint32_t) {
                   for (int64_t t = begin; t < end; ++t) {
                     int64_t o = outer == 1 ? 0 : t / count, i = t - o * count,
                             k = checked(index[i], size, i);
                     const char* from = x + (o * size + k) * row_bytes;
                     char* to = y + t * row_bytes;
                     if (row_bytes == 4) {
                       std::memcpy(to, from, 4);
                     } else if (row_bytes == 8) {
                       std::memcpy(to, from, 8);
                     } else {
                       copy_row(to, from, row_bytes);
                     }
                   }
                 });
  }
};

tn_plan* make_select(tn_device*, const Request& request) {
  const auto r = sdk::RowsRequest::from(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  const int64_t row_bytes = r.inner * static_cast<int64_t>(sdk::dtype_size(r.dtype));
  const auto cost = 20 + static_cast<uint64_t>(r.outer * r.count * (5 + row_bytes / 16));
  return with_index(r.index, [&]<class I>(I) {
    return sdk::make_plan(Select<I>{r.outer, r.size, r.count, row_bytes}, {0, cost});
  });
}
const sdk::Kernel selects({"embedding", "index_select"}, make_select);

// gx[o, index[i], :] += g[o, i, :], in the order of i for any number of threads. If `outer` is 1,
// threads divide the rows of gx among themselves, or the columns if there are few rows, and each
// thread looks at all indices.
template <class T, class I>
struct AddRows {
  sdk::RowsRequest r;

  void add(const tn_run& run, int64_t o, int64_t row_begin, int64_t row_end, int64_t col_begin,
           int64_t col_end) const {
    auto* g = static_cast<const T*>(run.inputs[0]) + o * r.count * r.inner;
    auto* index = static_cast<const I*>(run.inputs[1]);
    auto* gx = static_cast<T*>(run.outputs[0]) + o * r.size * r.inner;
    for (int64_t i = 0; i < r.count; ++i) {
      int64_t row = index[i];
      if (row == r.skip || row < row_begin || row >= row_end) continue;
      TN_INDEPENDENT
      for (int64_t k = col_begin; k < col_end; ++k) gx[row * r.inner + k] += g[i * r.inner + k];
    }
  }
  void operator()(const tn_run& run) const {
    auto* index = static_cast<const I*>(run.inputs[1]);
    for (int64_t i = 0; i < r.count; ++i)
      if (index[i] != r.skip) checked(index[i], r.size, i);
    zero_bytes(run.outputs[0], r.outer * r.size * r.inner * static_cast<int64_t>(sizeof(T)));
    int64_t block = r.count * r.inner;
    if (r.outer > 1)
      return parallel_for(r.outer, std::max<int64_t>(1, kGrain / std::max<int64_t>(block, 1)),
                          [&](int64_t begin, int64_t end, uint32_t) {
                            for (int64_t o = begin; o < end; ++o)
                              add(run, o, 0, r.size, 0, r.inner);
                          });
    int64_t threads = block < kGrain ? 1 : thread_count();
    bool by_rows = r.size >= 4 * threads;
    int64_t n = by_rows ? r.size : r.inner;
    parallel_for(n, (n + threads - 1) / threads, [&](int64_t begin, int64_t end, uint32_t) {
      by_rows ? add(run, 0, begin, end, 0, r.inner) : add(run, 0, 0, r.size, begin, end);
    });
  }
};

tn_plan* make_add_rows(tn_device*, const Request& request) {
  const auto r = sdk::RowsRequest::from(request);
  const int64_t elements = r.outer * r.size * r.inner;
  if (elements == 0) return empty_plan();
  const auto cost =
      30 + static_cast<uint64_t>(elements / 4 + r.outer * r.count * (3 + r.inner / 3));
  return with_float(r.dtype, [&]<class T>(T) {
    return with_index(r.index, [&]<class I>(I) {
      return sdk::make_plan(AddRows<T, I>{r}, {0, cost});
    });
  });
}
const sdk::Kernel gradients({"embedding_backward", "index_select_backward"}, make_add_rows);

}  // namespace
}  // namespace tenon::cpu
