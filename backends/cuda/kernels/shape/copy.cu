// Copies between any strides.
#include "kernels/shape/copy.h"

namespace tenon::cuda {
namespace {

struct Same {
  template <class T>
  __device__ T operator()(T x) const {
    return x;
  }
};

template <class T>
inline constexpr uint32_t kTile = sizeof(T) >= 4 ? 32 : 64;
constexpr uint32_t kLanes = 32;
// Below this a tile is mostly empty.
constexpr int64_t kMinSide = 16;

// Reads a tile along the source's memory, writes it along the destination's.
template <class T>
__global__ void __launch_bounds__(kBlock)
    transpose(T* to, const T* from, const __grid_constant__ TransposePiece piece, Divider across,
              Divider down) {
  constexpr uint32_t side = kTile<T>, step = kBlock / kLanes;
  __shared__ T tile[side][side + 1];
  uint32_t block = across.quotient(blockIdx.x), outer = down.quotient(block), offset[1][2];
  uint32_t first_col = (blockIdx.x - block * across.divisor) * side,
           first_row = (block - outer * down.divisor) * side;
  piece.outer.offsets(outer, 0, offset);
  to += offset[0][0];
  from += offset[0][1];
  uint32_t lane = threadIdx.x % kLanes, line = threadIdx.x / kLanes;
#pragma unroll
  for (uint32_t c = 0; c < side; c += step)
#pragma unroll
    for (uint32_t r = 0; r < side; r += kLanes) {
      uint32_t row = first_row + r + lane, col = first_col + c + line;
      if (row < piece.rows && col < piece.cols)
        tile[c + line][r + lane] = from[row + static_cast<size_t>(col) * piece.from_col];
    }
  __syncthreads();
#pragma unroll
  for (uint32_t r = 0; r < side; r += step)
#pragma unroll
    for (uint32_t c = 0; c < side; c += kLanes) {
      uint32_t row = first_row + r + line, col = first_col + c + lane;
      if (row < piece.rows && col < piece.cols)
        to[static_cast<size_t>(row) * piece.to_row + col] = tile[c + lane][r + line];
    }
}

Nest nest_of(const tn_tensor_desc& to, const tn_tensor_desc& from) {
  Nest nest({&to, &from});
  nest.sort();
  return nest;
}

std::vector<TransposePiece> transpose_of(Nest nest) {
  int last = nest.rank - 1, along = -1;
  for (int d = 0; d < last; ++d)
    if (nest.strides[1][d] == 1) along = d;
  if (along < 0 || nest.strides[0][last] != 1 || nest.strides[1][last] < 2 ||
      nest.shape[along] < kMinSide || nest.shape[last] < kMinSide)
    return {};
  for (int d = along; d < last - 1; ++d) {
    std::swap(nest.shape[d], nest.shape[d + 1]);
    for (auto& strides : nest.strides) std::swap(strides[d], strides[d + 1]);
  }
  std::vector<TransposePiece> pieces;
  for (auto& part : nest.pieces()) {
    Nest outer = part;
    outer.rank -= 2;
    pieces.push_back({outer.layout<2>(),
                      {part.base[0], part.base[1]},
                      static_cast<uint32_t>(part.shape[last - 1]),
                      static_cast<uint32_t>(part.shape[last]),
                      static_cast<uint32_t>(part.strides[0][last - 1]),
                      static_cast<uint32_t>(part.strides[1][last])});
  }
  return pieces;
}

template <class T>
void run_transpose(tn_stream* stream, const TransposePiece& piece, T* to, const T* from) {
  int64_t across = ceil_div(piece.cols, kTile<T>), down = ceil_div(piece.rows, kTile<T>), outer = 1;
  for (int d = 0; d < piece.outer.rank; ++d) outer *= piece.outer.size[d].divisor;
  launch(stream, dim3(static_cast<unsigned>(across * down * outer)), kBlock, transpose<T>,
         to + piece.base[0], from + piece.base[1], piece,
         Divider::of(static_cast<uint32_t>(across)), Divider::of(static_cast<uint32_t>(down)));
}

}  // namespace

StridedCopy::StridedCopy(const tn_tensor_desc& to, const tn_tensor_desc& from)
    : dtype_(to.dtype), loop_(nest_of(to, from)), transposed_(transpose_of(nest_of(to, from))) {}

void StridedCopy::run(tn_stream* stream, void* to, const void* from) const {
  with_width(dtype_, [&]<class T>(T) {
    if (transposed_.empty()) return loop_.run<Same, T>(stream, Same{}, to, operand<T>(from));
    for (auto& piece : transposed_)
      run_transpose<T>(stream, piece, static_cast<T*>(to), static_cast<const T*>(from));
  });
}

namespace {

tn_plan* make_copy(tn_device*, const Request& request) {
  auto &x = request.input(0), &y = request.output(0);
  if (sdk::numel(y) == 0) return empty_plan();
  bool moves = x.dtype == y.dtype || (x.dtype == TN_BOOL && y.dtype == TN_U8);
  if (!moves) return make_cast_plan(request);
  return make_plan([copy = StridedCopy(y, x)](const tn_run& run) {
    copy.run(run.stream, run.outputs[0], run.inputs[0]);
  });
}
const sdk::Kernel copies({"copy"}, make_copy);

}  // namespace
}  // namespace tenon::cuda
