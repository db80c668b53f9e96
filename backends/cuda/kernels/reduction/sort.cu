// Sorting along one dimension, stable, NaN as the largest: all lines at once, by words of the keys
// from the lowest and then by line, each time with the toolkit's stable sort.
#include <cstring>

#include <tenon/plugins/sdk/requests/order.h>

#include "device/block_reduce.h"
#include "device/sort.h"

namespace tenon::cuda {
namespace {

// Equal elements get one key: zeros of both signs, and all NaN, which are the largest.
template <class T>
__device__ uint64_t order_key(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    if (x != x) return static_cast<Bits>(~Bits{0});
    const T value = x == 0 ? T(0) : x;
    Bits bits;
    memcpy(&bits, &value, sizeof bits);
    constexpr Bits top = Bits{1} << (8 * sizeof(Bits) - 1);
    return bits & top ? static_cast<Bits>(~bits) : bits | top;
  } else if constexpr (std::is_signed_v<T>) {
    using Bits = std::make_unsigned_t<T>;
    return static_cast<Bits>(static_cast<Bits>(x) ^ (Bits{1} << (8 * sizeof(Bits) - 1)));
  } else {
    return x;
  }
}

// Elements are numbered line by line, whatever lies between them in memory.
struct SortShape {
  int64_t outer, size, inner, k;
  bool descending;
  uint32_t count() const { return static_cast<uint32_t>(outer * size * inner); }
  // Where element i of a line lies in lines of n elements.
  __device__ int64_t at(int64_t line, int64_t i, int64_t n) const {
    const int64_t o = divide(line, inner);
    return (o * n + i) * inner + line - o * inner;
  }
};

__global__ void __launch_bounds__(kBlock) number_items(uint32_t* items, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    items[i] = i;
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    words_of(SortShape s, uint32_t n, const T* x, const uint32_t* items, int word, uint32_t* keys) {
  for (uint32_t j = blockIdx.x * blockDim.x + threadIdx.x; j < n; j += gridDim.x * blockDim.x) {
    const int64_t line = divide(items[j], s.size), i = items[j] - line * s.size;
    const uint64_t key = order_key(x[s.at(line, i, s.size)]);
    const auto bits = static_cast<uint32_t>(key >> (32 * word));
    keys[j] = s.descending ? ~bits : bits;
  }
}

__global__ void __launch_bounds__(kBlock)
    lines_of(SortShape s, uint32_t n, const uint32_t* items, uint32_t* keys) {
  for (uint32_t j = blockIdx.x * blockDim.x + threadIdx.x; j < n; j += gridDim.x * blockDim.x)
    keys[j] = static_cast<uint32_t>(divide(items[j], s.size));
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    write_sorted(SortShape s, const T* x, const uint32_t* items, T* values, int64_t* places) {
  const int64_t wanted = s.outer * s.inner * s.k;
  for (int64_t j = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; j < wanted;
       j += int64_t{gridDim.x} * blockDim.x) {
    const int64_t line = divide(j, s.k), r = j - line * s.k,
                  i = items[line * s.size + r] - line * s.size, to = s.at(line, r, s.k);
    values[to] = x[s.at(line, i, s.size)];
    places[to] = i;
  }
}

template <class T>
class LineSort {
 public:
  LineSort(const tn_device& device, const sdk::SortRequest& r)
      : shape_{r.outer, r.size, r.inner, r.k, r.descending} {
    const int64_t n = r.outer * r.size * r.inner, lines = r.outer * r.inner;
    if (n > INT32_MAX) sdk::unsupported("{} elements; 2^31 - 1 are the most", n);
    while (line_bits_ < 32 && (int64_t{1} << line_bits_) < lines) ++line_bits_;
    list_bytes_ = (static_cast<uint64_t>(n) * sizeof(uint32_t) + 255) / 256 * 256;
    CurrentDevice current(&device);
    scratch_bytes_ = std::max(sort_scratch_bytes(n, 32), sort_scratch_bytes(n, line_bits_ + 1));
  }
  uint64_t workspace_bytes() const { return 4 * list_bytes_ + scratch_bytes_; }

  void operator()(const tn_run& run) const {
    auto* const memory = static_cast<char*>(run.workspace);
    const auto list = [&](uint64_t i) {
      return reinterpret_cast<uint32_t*>(memory + i * list_bytes_);
    };
    uint32_t *keys = list(0), *items = list(2), *spare = list(3);
    const uint32_t n = shape_.count();
    const unsigned blocks = stride_blocks(*run.stream->device, n);
    auto* x = static_cast<const T*>(run.inputs[0]);
    const auto sort = [&](int bits) {
      sort_pairs(run.stream, memory + 4 * list_bytes_, scratch_bytes_, keys, list(1), items, spare,
                 n, bits);
      std::swap(items, spare);
    };
    launch(run.stream, blocks, kBlock, number_items, items, n);
    for (int word = 0; word < (sizeof(T) == 8 ? 2 : 1); ++word) {
      launch(run.stream, blocks, kBlock, words_of<T>, shape_, n, x, items, word, keys);
      sort(32);
    }
    if (line_bits_ > 0) {
      launch(run.stream, blocks, kBlock, lines_of, shape_, n, items, keys);
      sort(line_bits_);
    }
    launch(run.stream, stride_blocks(*run.stream->device, shape_.outer * shape_.inner * shape_.k),
           kBlock, write_sorted<T>, shape_, x, items, static_cast<T*>(run.outputs[0]),
           static_cast<int64_t*>(run.outputs[1]));
  }

 private:
  SortShape shape_;
  int line_bits_ = 0;
  uint64_t list_bytes_, scratch_bytes_;
};

tn_plan* make_sort(tn_device* device, const Request& request) {
  const auto r = sdk::SortRequest::from(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_number(sdk::byte_for_bool(r.dtype), [&]<class T>(T) {
    const LineSort<T> sort(*device, r);
    return make_plan(sort, sort.workspace_bytes());
  });
}
const sdk::Kernel sorts({"sort", "topk"}, make_sort);

}  // namespace
}  // namespace tenon::cuda
