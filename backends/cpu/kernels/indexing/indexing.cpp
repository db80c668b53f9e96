// Rows by index: embedding and index_select, and their gradients. A tensor is seen as (outer, size,
// inner), `size` being indexed.
#include "kernels/indexing/indexing.h"

#include <cstring>

#include "kernels/shape/copy.h"

namespace tenon::cpu {
namespace {

struct View {
  int64_t outer = 1, size = 1, inner = 1;
  static View of(const tn_tensor_desc& d, int64_t dim) {
    if (dim < 0 || dim >= d.rank)
      sdk::invalid("dim " + std::to_string(dim) + " of a tensor of rank " + std::to_string(d.rank));
    View v;
    for (int64_t k = 0; k < d.rank; ++k)
      (k < dim ? v.outer : k == dim ? v.size : v.inner) *= d.shape[k];
    return v;
  }
};

// y[o, i, :] = x[o, index[i], :]
template <class I>
struct Select {
  std::string op;
  int64_t outer, size, count, row_bytes;

  void operator()(const tn_run& run) const {
    auto* x = static_cast<const char*>(run.inputs[0]);
    auto* index = static_cast<const I*>(run.inputs[1]);
    auto* y = static_cast<char*>(run.outputs[0]);
    parallel_for(outer * count, std::max<int64_t>(1, 4 * kGrain / (row_bytes + 16)),
                 [&](int64_t begin, int64_t end, uint32_t) {
                   for (int64_t t = begin; t < end; ++t) {
                     int64_t o = outer == 1 ? 0 : t / count, i = t - o * count,
                             k = checked(op, index[i], size, i);
                     const char* from = x + (o * size + k) * row_bytes;
                     char* to = y + t * row_bytes;
                     if (row_bytes == 4) {
                       std::memcpy(to, from, 4);
                     } else if (row_bytes == 8) {
                       std::memcpy(to, from, 8);
                     } else {
                       std::memcpy(to, from, static_cast<size_t>(row_bytes));
                     }
                   }
                 });
  }
};

tn_plan* make_select(const Request& request, int64_t dim) {
  auto &x = request.input(0), &index = request.input(1), &y = request.output(0);
  for (auto* d : {&x, &index, &y}) require_contiguous(request, *d);
  View v = View::of(x, dim);
  int64_t count = sdk::numel(index),
          row_bytes = v.inner * static_cast<int64_t>(sdk::dtype_size(x.dtype));
  if (sdk::numel(y) == 0) return empty_plan();
  uint64_t cost = 20 + static_cast<uint64_t>(v.outer * count * (5 + row_bytes / 16));
  return with_index(request, index.dtype, [&]<class I>(I) {
    return sdk::make_plan(Select<I>{std::string(request.op()), v.outer, v.size, count, row_bytes},
                          {0, cost});
  });
}

const sdk::Kernel embeddings({"embedding"}, [](tn_device*, const Request& request) {
  return make_select(request, 0);
});
const sdk::Kernel selects({"index_select"}, [](tn_device*, const Request& request) {
  return make_select(request, request.get_int("dim"));
});

// gx[o, index[i], :] += g[o, i, :], in the order of i whatever the number of threads: where one
// block of `outer` is not work enough, threads share out the rows of gx, or the columns where rows
// are few, and each looks at all indices.
template <class T, class I>
struct AddRows {
  std::string op;
  int64_t outer, size, count, inner, skip;

  void add(const tn_run& run, int64_t o, int64_t row_begin, int64_t row_end, int64_t col_begin,
           int64_t col_end) const {
    auto* g = static_cast<const T*>(run.inputs[0]) + o * count * inner;
    auto* index = static_cast<const I*>(run.inputs[1]);
    auto* gx = static_cast<T*>(run.outputs[0]) + o * size * inner;
    for (int64_t i = 0; i < count; ++i) {
      int64_t row = index[i];
      if (row == skip || row < row_begin || row >= row_end) continue;
      TN_INDEPENDENT
      for (int64_t k = col_begin; k < col_end; ++k) gx[row * inner + k] += g[i * inner + k];
    }
  }
  void operator()(const tn_run& run) const {
    auto* index = static_cast<const I*>(run.inputs[1]);
    for (int64_t i = 0; i < count; ++i)
      if (index[i] != skip) checked(op, index[i], size, i);
    zero_bytes(run.outputs[0], outer * size * inner * static_cast<int64_t>(sizeof(T)));
    int64_t block = count * inner;
    if (outer > 1)
      return parallel_for(outer, std::max<int64_t>(1, kGrain / std::max<int64_t>(block, 1)),
                          [&](int64_t begin, int64_t end, uint32_t) {
                            for (int64_t o = begin; o < end; ++o) add(run, o, 0, size, 0, inner);
                          });
    int64_t threads = block < kGrain ? 1 : thread_count();
    bool by_rows = size >= 4 * threads;
    int64_t n = by_rows ? size : inner;
    parallel_for(n, (n + threads - 1) / threads, [&](int64_t begin, int64_t end, uint32_t) {
      by_rows ? add(run, 0, begin, end, 0, inner) : add(run, 0, 0, size, begin, end);
    });
  }
};

tn_plan* make_add_rows(const Request& request, int64_t dim, int64_t skip) {
  auto &g = request.input(0), &index = request.input(1), &gx = request.output(0);
  for (auto* d : {&g, &index, &gx}) require_contiguous(request, *d);
  View v = View::of(gx, dim);
  int64_t count = sdk::numel(index);
  if (sdk::numel(gx) == 0) return empty_plan();
  uint64_t cost =
      30 + static_cast<uint64_t>(sdk::numel(gx) / 4 + v.outer * count * (3 + v.inner / 3));
  return with_float(request, g.dtype, [&]<class T>(T) {
    return with_index(request, index.dtype, [&]<class I>(I) {
      return sdk::make_plan(
          AddRows<T, I>{std::string(request.op()), v.outer, v.size, count, v.inner, skip},
          {0, cost});
    });
  });
}

const sdk::Kernel embedding_gradients({"embedding_backward"}, [](tn_device*,
                                                                 const Request& request) {
  int64_t padding = request.get_int("padding_idx");
  return make_add_rows(request, 0, padding < 0 ? INT64_MIN : padding);
});
const sdk::Kernel select_gradients({"index_select_backward"}, [](tn_device*,
                                                                 const Request& request) {
  return make_add_rows(request, request.get_int("dim"), INT64_MIN);
});

}  // namespace
}  // namespace tenon::cpu
