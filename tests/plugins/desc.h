// The descriptor of a tensor, made of sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tenon/plugins/abi/abi.h>

namespace tenon::test {

using Dims = std::vector<int64_t>;

struct Desc : tn_tensor_desc {
  Desc(const Dims& sizes, tn_dtype type = TN_F32, const Dims& steps = {}) : tn_tensor_desc{} {
    struct_size = sizeof(tn_tensor_desc);
    dtype = type;
    rank = static_cast<uint32_t>(sizes.size());
    int64_t dense = 1;
    for (size_t i = sizes.size(); i-- > 0; dense *= sizes[i]) {
      shape[i] = sizes[i];
      strides[i] = steps.empty() ? dense : steps[i];
    }
  }
  // Elements from the first to the last one.
  size_t extent() const {
    int64_t last = 0;
    for (uint32_t i = 0; i < rank; ++i) {
      if (shape[i] == 0) return 0;
      last += (shape[i] - 1) * strides[i];
    }
    return static_cast<size_t>(last) + 1;
  }
  Desc as(tn_dtype type) const {
    Desc other = *this;
    other.dtype = type;
    return other;
  }
};

}  // namespace tenon::test
