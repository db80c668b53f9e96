// Whether two tensors in the same memory share any of it.
#pragma once

#include <cstdint>

#include <tenon/core/runtime/poison_map.h>

namespace tenon {

// Whether two tensors that begin at these bytes of one memory may share some. They may not where
// one lies in gaps of the other that come again and again, such as the columns of a matrix.
bool may_share_bytes(uint64_t a_begin, const Footprint& a, uint64_t b_begin, const Footprint& b);

}  // namespace tenon
