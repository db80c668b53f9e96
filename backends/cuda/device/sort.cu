#include <cub/device/device_radix_sort.cuh>

#include "device/sort.h"
#include "runtime/check.h"

namespace tenon::cuda {

uint64_t sort_scratch_bytes(int64_t n, int bits) {
  size_t bytes = 0;
  uint32_t* none = nullptr;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, none, none, none, none,
                                        static_cast<uint32_t>(n), 0, bits),
        "scratch of a sort");
  return bytes;
}

void sort_pairs(tn_stream* stream, void* scratch, uint64_t scratch_bytes, const uint32_t* keys,
                uint32_t* sorted_keys, const uint32_t* values, uint32_t* sorted_values, int64_t n,
                int bits) {
  size_t bytes = scratch_bytes;
  check(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted_keys, values, sorted_values,
                                        static_cast<uint32_t>(n), 0, bits, stream->handle),
        "radix sort");
}

}  // namespace tenon::cuda
