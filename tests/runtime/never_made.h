// Values that were never made: the work that is to make them fails.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/tensor.h>

namespace tenon::test {

// By an index that does not exist.
inline Tensor never_made(const Shape& shape, int64_t index = 9) {
  return embedding(tensor(std::vector<int64_t>{index}), ones({4, 1}))
      .reshape({1})
      .expand(shape)
      .clone();
}

}  // namespace tenon::test
