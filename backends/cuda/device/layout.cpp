#include "device/layout.h"

#include <algorithm>
#include <utility>

namespace tenon::cuda {
namespace {

constexpr int64_t kLimit = int64_t{1} << 31;

// The largest power of two up to `most` that divides n.
int64_t power_dividing(int64_t n, int64_t most) {
  while (n % most != 0) most /= 2;
  return most;
}

int64_t extent(const Nest& nest, int operand) {
  int64_t last = 0;
  for (int d = 0; d < nest.rank; ++d) last += nest.strides[operand][d] * (nest.shape[d] - 1);
  return last;
}

bool fits(const Nest& nest) {
  bool all = nest.numel < kLimit;
  for (int k = 0; k < nest.operands; ++k) all = all && extent(nest, k) < kLimit;
  return all;
}

// The dimension whose halving helps most.
int widest(const Nest& nest) {
  int best = 0;
  int64_t reach = -1;
  for (int d = 0; d < nest.rank; ++d) {
    if (nest.shape[d] == 1) continue;
    int64_t here = 0;
    for (int k = 0; k < nest.operands; ++k)
      here = std::max(here, nest.strides[k][d] * (nest.shape[d] - 1));
    if (here > reach) best = d, reach = here;
  }
  return best;
}

void cut(const Nest& nest, std::vector<Nest>& parts) {
  if (fits(nest)) return parts.push_back(nest);
  int d = widest(nest);
  int64_t half = nest.shape[d] / 2;
  Nest low = nest, high = nest;
  low.shape[d] = half;
  low.numel = nest.numel / nest.shape[d] * half;
  high.shape[d] = nest.shape[d] - half;
  high.numel = nest.numel - low.numel;
  for (int k = 0; k < nest.operands; ++k) high.base[k] += half * nest.strides[k][d];
  cut(low, parts);
  cut(high, parts);
}

}  // namespace

Divider Divider::of(uint32_t divisor) {
  uint32_t shift = 0;
  while ((uint64_t{1} << shift) < divisor) ++shift;
  uint64_t magic = (((uint64_t{1} << shift) - divisor) << 32) / divisor + 1;
  return {divisor, static_cast<uint32_t>(magic), shift};
}

void Nest::tile() {
  if (rank < 2 || rank + 2 > kMaxDims || col_stride(0) != 1) return;
  int across = -1;
  for (int k = 1; k < operands; ++k)
    for (int d = 0; d < rank - 1 && col_stride(k) > 1; ++d)
      if (strides[k][d] == 1) across = d;
  if (across < 0) return;
  int64_t rows = power_dividing(shape[across], 32), cols = power_dividing(shape[rank - 1], 32);
  if (rows < 8 || cols < 8) return;
  Nest tiled = *this;
  tiled.rank = 0;
  auto add = [&](int d, int64_t size, int64_t step) {
    tiled.shape[tiled.rank] = size;
    for (int k = 0; k < operands; ++k) tiled.strides[k][tiled.rank] = strides[k][d] * step;
    tiled.rank += size > 1 ? 1 : 0;
  };
  for (int d = 0; d < rank - 1; ++d)
    add(d, d == across ? shape[d] / rows : shape[d], d == across ? rows : 1);
  add(rank - 1, shape[rank - 1] / cols, cols);
  add(across, rows, 1);
  add(rank - 1, cols, 1);
  *this = tiled;
}

int64_t Nest::cols_multiple() const { return power_dividing(cols(), 16); }

int64_t Nest::rows_multiple(int operand) const {
  int64_t multiple = 16;
  for (int d = 0; d < rank - 1; ++d)
    if (shape[d] > 1) multiple = power_dividing(strides[operand][d], multiple);
  return multiple;
}

std::vector<Nest> Nest::pieces() const {
  std::vector<Nest> parts;
  if (numel > 0) cut(*this, parts);
  return parts;
}

}  // namespace tenon::cuda
