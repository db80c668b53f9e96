// What attention and its gradient share: the scores of a block of queries against a block of keys.
// No more of the (l, s) scores is in memory at a time (Rabe and Staats, arXiv:2112.05682; Dao et
// al., arXiv:2205.14135).
#pragma once

#include <initializer_list>
#include <vector>

#include <tenon/plugins/sdk/requests/attention.h>

#include "kernels/linalg/gemm.h"
#include "kernels/linalg/tile.h"
#include "runtime/common.h"
#include "simd/math.h"

namespace tenon::cpu {

// A sequence in blocks of `size`, the last of which may be shorter.
struct Blocks {
  int64_t length, size;
  Blocks(int64_t sequence, int64_t most) : length(sequence), size(std::min(sequence, most)) {}

  int64_t count() const { return (length + size - 1) / size; }
  int64_t begin(int64_t block) const { return block * size; }
  int64_t length_of(int64_t block) const { return std::min(size, length - begin(block)); }
  int64_t last_length() const { return length_of(count() - 1); }
};

// One matrix product for every pair of a block of queries and one of keys, on the calling thread.
template <class T>
class BlockProduct {
 public:
  // shape(queries, keys) of a pair.
  template <class F>
  BlockProduct(const Blocks& queries, const Blocks& keys, F&& shape)
      : query_size_(queries.size), key_size_(keys.size) {
    for (const int64_t l : {queries.size, queries.last_length()})
      for (const int64_t s : {keys.size, keys.last_length()}) ways_.emplace_back(shape(l, s));
  }
  uint64_t workspace_bytes() const {
    uint64_t most = 0;
    for (auto& way : ways_) most = std::max(most, way.workspace_bytes());
    return most;
  }
  // Where a causal mask leaves pairs out, `reach` says which elements or terms are not needed.
  void run(int64_t queries, int64_t keys, const T* a, const T* b, T* c, void* workspace,
           Reach reach) const {
    const size_t way = (queries == query_size_ ? 0u : 2u) + (keys == key_size_ ? 0u : 1u);
    ways_[way].run(a, b, c, workspace, reach);
  }

 private:
  // A few rows are not worth packing the other operand.
  struct Way {
    GemmShape shape;
    Panels<T> panels;
    bool in_tiles;
    Gemm<T> gemm;

    explicit Way(const GemmShape& s)
        : shape(s), panels{s.k, s.n}, in_tiles(s.m >= 2 * kTileRows), gemm(s, 1) {}
    uint64_t workspace_bytes() const {
      return in_tiles ? static_cast<uint64_t>(panels.elements()) * sizeof(T)
                      : gemm.workspace_bytes();
    }
    void run(const T* a, const T* b, T* c, void* workspace, Reach reach) const {
      if (!in_tiles) return gemm.run(a, b, nullptr, c, workspace);
      T* packed = static_cast<T*>(workspace);
      for (int64_t p = 0; p < panels.count(); ++p)
        panels.pack(p, b, shape.b_row, shape.b_col, packed);
      PanelProduct<T>{a, shape.a_row, shape.a_col, panels, packed, c, reach}.run(shape.m);
    }
  };

  int64_t query_size_, key_size_;
  std::vector<Way> ways_;
};

// Queries [row, row + rows) against keys [col, col + cols).
struct Block {
  int64_t row, rows, col, cols;
};

template <class T>
struct Scores {
  sdk::AttentionRequest r;
  BlockProduct<T> product;

  Scores(const sdk::AttentionRequest& request, const Blocks& queries, const Blocks& keys)
      : r(request), product(queries, keys, [&](int64_t l, int64_t s) {
          const uint32_t d = request.query.rank - 2;
          return GemmShape{l,
                           s,
                           request.e,
                           request.query.strides[d],
                           request.query.strides[d + 1],
                           request.key.strides[d + 1],
                           request.key.strides[d]};
        }) {}

  // The keys of the block that query `i` may see.
  int64_t seen(const Block& block, int64_t i) const {
    return r.causal ? std::clamp<int64_t>(block.row + i - block.col + 1, 0, block.cols)
                    : block.cols;
  }

  // The products of a block into `scores` (rows, cols), without scale and mask. `query` and `key`
  // are where the matrices begin.
  void multiply(const Block& block, const T* query, const T* key, T* scores,
                void* workspace) const {
    const uint32_t d = r.query.rank - 2;
    product.run(block.rows, block.cols, query + block.row * r.query.strides[d],
                key + block.col * r.key.strides[d], scores, workspace,
                reach(block, Reach::columns));
  }

  // What a product of a block does not need: its rows are queries, or keys where `of` is
  // later_terms.
  Reach reach(const Block& block, Reach::Of of) const {
    return r.causal ? Reach{of, block.row - block.col} : Reach{};
  }

  // Scales and masks the first `cols` scores of query `i`. `mask` is where its matrix begins.
  void finish_row(const Block& block, int64_t i, int64_t cols, const void* mask, T* scores) const {
    const T scale = static_cast<T>(r.scale);
    for_lanes<T>(cols, [&](int64_t k, auto part) {
      store<T>(scores + k, load(scores + k, part) * scale, part);
    });
    if (!mask) return;
    const uint32_t d = r.mask.rank - 2;
    const int64_t step = r.mask.strides[d + 1],
                  first = (block.row + i) * r.mask.strides[d] + block.col * step;
    if (r.mask.dtype == TN_BOOL) {
      auto* takes_part = static_cast<const uint8_t*>(mask) + first;
      for (int64_t k = 0; k < cols; ++k)
        if (!takes_part[k * step]) scores[k] = -std::numeric_limits<T>::infinity();
    } else {
      auto* added = static_cast<const T*>(mask) + first;
      for (int64_t k = 0; k < cols; ++k) scores[k] += added[k * step];
    }
  }

  const void* mask_of(const void* mask, int64_t matrix) const {
    const int64_t size = static_cast<int64_t>(sdk::dtype_size(r.mask.dtype));
    return static_cast<const char*>(mask) + sdk::matrix_offset(r.mask, matrix) * size;
  }
};

template <class T>
const T* matrix_of(const void* data, const tn_tensor_desc& d, int64_t matrix) {
  return static_cast<const T*>(data) + sdk::matrix_offset(d, matrix);
}

// y += x
template <class T>
void add_to(int64_t n, const T* x, T* y) {
  for_lanes<T>(n, [&](int64_t i, auto p) { store<T>(y + i, load(y + i, p) + load(x + i, p), p); });
}

// For `e` and `ev` multiply-adds with each element of a row of a query and of a value.
inline uint64_t attention_cost(const sdk::AttentionRequest& r, int e, int ev) {
  const double pairs = static_cast<double>(r.batch) * static_cast<double>(r.l) *
                       static_cast<double>(r.s) / (r.causal ? 2 : 1);
  const double width = e * static_cast<double>(r.e) + ev * static_cast<double>(r.ev);
  return static_cast<uint64_t>(std::min(pairs * width / 40, 1e15));
}

// Whether no query of the block sees any of its keys.
inline bool unseen(const sdk::AttentionRequest& r, const Block& block) {
  return r.causal && block.row + block.rows - 1 < block.col;
}

// The workspace of a plan: for each thread some arrays, and what its products need. Each begins at
// a multiple of 64 bytes, as Eigen likes it.
template <class T>
class Scratch {
 public:
  // `sizes`: the elements of each array.
  Scratch(std::initializer_list<int64_t> sizes, uint64_t product_bytes) {
    for (int64_t size : sizes) {
      begins_.push_back(products_);
      products_ += lines(static_cast<uint64_t>(size) * sizeof(T));
    }
    slot_bytes_ = products_ + lines(product_bytes);
  }
  uint64_t workspace_bytes() const { return thread_count() * slot_bytes_; }

  // Array `i` of a thread, and what its products use, given where its part begins.
  T* array(char* slot, size_t i) const { return reinterpret_cast<T*>(slot + begins_[i]); }
  void* products(char* slot) const { return slot + products_; }

  // Shares out tasks: calls f(task, where the part of the thread begins).
  template <class F>
  void each_task(const tn_run& run, int64_t tasks, F&& f) const {
    parallel_for(tasks, 1, [&](int64_t begin, int64_t end, uint32_t slot) {
      for (int64_t i = begin; i < end; ++i)
        f(i, static_cast<char*>(run.workspace) + slot * slot_bytes_);
    });
  }

 private:
  static uint64_t lines(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

  std::vector<uint64_t> begins_;
  uint64_t products_ = 0, slot_bytes_;
};

}  // namespace tenon::cpu
