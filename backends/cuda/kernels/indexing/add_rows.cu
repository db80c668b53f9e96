#include "device/block_reduce.h"
#include "device/sort.h"
#include "kernels/indexing/add_rows.h"

namespace tenon::cuda {
namespace {

constexpr int64_t kFewKeys = 32;  // for so few keys, sorting takes longer than adding

struct Rows {
  int64_t outer, size, count, inner;
  Divider packs;  // of a row
};

// One thread adds each pack of neighbouring lines. gx is zero before.
template <class T, int V>
__global__ void __launch_bounds__(kBlock)
    add_down_lines(Rows r, const uint32_t* keys, const T* g, T* gx) {
  const int64_t lines = r.outer * (r.inner / V);
  for (int64_t line = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; line < lines;
       line += int64_t{gridDim.x} * blockDim.x) {
    int64_t o = line;
    const int64_t column = split(o, r.packs) * V;
    const T* from = g + o * r.count * r.inner + column;
    T* to = gx + o * r.size * r.inner + column;
    for (int64_t i = 0; i < r.count; ++i) {
      const int64_t row = keys[i];
      if (row == r.size) continue;
      const auto p = load_pack<V>(from + i * r.inner);
      auto sum = load_pack<V>(to + row * r.inner);
#pragma unroll
      for (int v = 0; v < V; ++v) sum.at[v] += p.at[v];
      store_pack<V>(to + row * r.inner, sum);
    }
  }
}

__global__ void __launch_bounds__(kBlock) number(uint32_t* positions, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    positions[i] = i;
}

// There is one thread for each key of the sorted list and each pack of a row. The thread at the
// first of equal keys adds up all of them.
template <class T, int V>
__global__ void __launch_bounds__(kBlock)
    add_sorted(Rows r, const uint32_t* keys, const uint32_t* positions, const T* g, T* gx) {
  const int64_t packs = r.inner / V, units = r.count * packs;
  for (int64_t unit = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; unit < units;
       unit += int64_t{gridDim.x} * blockDim.x) {
    int64_t first = unit;
    const int64_t column = split(first, r.packs) * V;
    const uint32_t key = keys[first];
    if (key == r.size || (first > 0 && keys[first - 1] == key)) continue;
    for (int64_t o = 0; o < r.outer; ++o) {
      const T* from = g + o * r.count * r.inner + column;
      Pack<T, V> sum{};
      for (int64_t i = first; i < r.count && keys[i] == key; ++i) {
        const auto p = load_pack<V>(from + positions[i] * r.inner);
#pragma unroll
        for (int v = 0; v < V; ++v) sum.at[v] += p.at[v];
      }
      store_pack<V>(gx + (o * r.size + key) * r.inner + column, sum);
    }
  }
}

}  // namespace

AddRows::AddRows(const tn_device& device, int64_t outer, int64_t size, int64_t count, int64_t inner)
    : outer_(outer), size_(size), count_(count), inner_(inner) {
  if (size >= UINT32_MAX || count > INT32_MAX)
    sdk::unsupported(
        "a gradient of {} indices into {} rows; 2^31 - 1 indices and 2^32 - 2 rows are "
        "the most",
        count, size);
  sorts_ = count > kFewKeys && outer * inner < kManyLines;
  while (bits_ < 32 && (int64_t{1} << bits_) <= size) ++bits_;
  list_bytes_ = (static_cast<uint64_t>(count) * sizeof(uint32_t) + 255) / 256 * 256;
  scratch_at_ = (sorts_ ? 4 : 1) * list_bytes_;
  if (!sorts_) return;
  CurrentDevice current(&device);
  scratch_bytes_ = sort_scratch_bytes(count, bits_);
}

template <class T>
void AddRows::run(tn_stream* stream, const T* g, T* gx, void* workspace) const {
  check(cudaMemsetAsync(gx, 0, static_cast<size_t>(outer_ * size_ * inner_) * sizeof(T),
                        stream->handle),
        "cudaMemsetAsync");
  if (count_ == 0 || inner_ == 0) return;
  constexpr int V = kFullPack<T>;
  const bool packs = inner_ % V == 0 && aligned(g, 16) && aligned(gx, 16);
  const int64_t wide = inner_ / (packs ? V : 1);
  const Rows rows{outer_, size_, count_, inner_, divider_of(wide)};
  auto list = [&](int i) {
    return reinterpret_cast<uint32_t*>(static_cast<char*>(workspace) +
                                       static_cast<uint64_t>(i) * list_bytes_);
  };
  if (!sorts_)
    return launch(stream, stride_blocks(*stream->device, outer_ * wide), kBlock,
                  packs ? add_down_lines<T, V> : add_down_lines<T, 1>, rows, list(0), g, gx);
  launch(stream, stride_blocks(*stream->device, count_), kBlock, number, list(2),
         static_cast<uint32_t>(count_));
  sort_pairs(stream, static_cast<char*>(workspace) + scratch_at_, scratch_bytes_, list(0), list(1),
             list(2), list(3), count_, bits_);
  launch(stream, stride_blocks(*stream->device, count_ * wide), kBlock,
         packs ? add_sorted<T, V> : add_sorted<T, 1>, rows, list(1), list(3), g, gx);
}

template void AddRows::run(tn_stream*, const float*, float*, void*) const;
template void AddRows::run(tn_stream*, const double*, double*, void*) const;

}  // namespace tenon::cuda
