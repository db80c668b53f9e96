// Stands in for CUB's sort, on the CPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <cuda_runtime.h>

namespace cub {

struct DeviceRadixSort {
  template <class Key, class Value>
  static cudaError_t SortPairs(void* scratch, size_t& bytes, const Key* keys, Key* sorted_keys, const Value* values,
                               Value* sorted_values, uint32_t n, int begin_bit, int end_bit, cudaStream_t stream = nullptr) {
    if (!scratch) return bytes = n + 1, cudaSuccess;
    if (bytes < n + 1) return cudaErrorInvalidValue;
    // As a kernel of one thread, so that it comes in order and is captured like others.
    return tenon::emulated::launch(dim3(1), dim3(1), 0, stream, nullptr, [=] {
      auto digits = [=](uint32_t i) { return static_cast<uint64_t>(keys[i]) << (64 - end_bit) >> (64 - end_bit + begin_bit); };
      std::vector<uint32_t> order(n);
      std::iota(order.begin(), order.end(), 0u);
      std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return digits(a) < digits(b); });
      for (uint32_t i = 0; i < n; ++i) sorted_keys[i] = keys[order[i]], sorted_values[i] = values[order[i]];
    });
  }
};

}  // namespace cub
