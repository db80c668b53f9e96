// What a reduction works on, and how it is shared out among threads (reduce.h).
#pragma once

#include <vector>

#include <tenon/plugins/sdk/requests/reduction.h>

#include "device/launch.h"
#include "device/layout.h"
#include "runtime/common.h"

namespace tenon::cuda {

// With what device code needs to find an element.
struct ReduceShape : sdk::ReduceShape {
  Divider reduced_sizes[TN_MAX_RANK]{};

  ReduceShape() = default;
  // Refuses what `offset` cannot count: 2^31 elements and more for one output that do not lie at
  // equal distances.
  ReduceShape(const tn_tensor_desc& x, const std::vector<int64_t>& dims);

  struct Place {
    int64_t x, y;
  };
  // Where output i of the first `rank` kept dimensions lies.
  __device__ Place locate(int64_t i, int rank) const {
    Place place{0, 0};
    for (int d = rank; d-- > 0;) {
      int64_t rest = d == 0 ? 0 : divide(i, kept[d].size),
              k = i - rest * (d == 0 ? 0 : kept[d].size);
      i = rest;
      place.x += k * kept[d].x_stride;
      place.y += k * kept[d].y_stride;
    }
    return place;
  }
  // Returns the offset of element i of those that go into one output.
  __device__ int64_t offset(int64_t i) const {
    if (reduced_rank <= 1) return i * reduced[0].x_stride;
    uint32_t rest = static_cast<uint32_t>(i);
    int64_t result = 0;
    for (int d = reduced_rank; d-- > 1;) {
      const uint32_t q = reduced_sizes[d].quotient(rest);
      result += (rest - q * static_cast<uint32_t>(reduced[d].size)) * reduced[d].x_stride;
      rest = q;
    }
    return result + rest * reduced[0].x_stride;
  }
};

struct ReduceArgs : ReduceShape {
  bool columns = false;
  bool packs = false;                             // shape and strides allow loads of whole packs
  int64_t splits = 1, chunk = 0;                  // parts of each output, elements of a part
  unsigned block = kBlock, grid = 1, lanes = 32;  // lanes: of a row, or side by side
  unsigned finish_lanes = 1, finish_grid = 1;
  double parameter = 0;
};

// Fills in how to do it; `load` as in the reducer.
ReduceArgs plan_reduction(const tn_device& device, const ReduceShape& shape, int load,
                          double parameter);

}  // namespace tenon::cuda
