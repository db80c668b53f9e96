// A stable sort of numbered keys, by the toolkit's radix sort.
#pragma once

#include <cstdint>

#include "runtime/device.h"

namespace tenon::cuda {

// Bytes of scratch for n pairs.
uint64_t sort_scratch_bytes(int64_t n, int bits);

// Sorts n pairs by the lowest `bits` of their keys; equal keys keep their order.
void sort_pairs(tn_stream* stream, void* scratch, uint64_t scratch_bytes, const uint32_t* keys,
                uint32_t* sorted_keys, const uint32_t* values, uint32_t* sorted_values, int64_t n,
                int bits);

}  // namespace tenon::cuda
