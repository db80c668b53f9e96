// Triangles of matrices: what a block of rows keeps is copied as one part of the matrix, and each
// row is filled up with zeros.
#include <algorithm>
#include <cstring>

#include "runtime/nest.h"

namespace tenon::cpu {
namespace {

struct Triangle {
  int64_t size;  // of an element, in bytes
  int64_t rows, cols, row_stride, col_stride;
  int64_t diagonal;
  bool upper;

  static constexpr int64_t kRows = 16;  // of a block: packets of floats are transposed as a whole
  int64_t blocks() const { return (rows + kRows - 1) / kRows; }

  // The column where row r passes from what is kept below the diagonal to what is not, or, of an
  // upper triangle, the other way round.
  int64_t edge(int64_t r) const {
    return std::clamp<int64_t>(r + diagonal + (upper ? 0 : 1), 0, cols);
  }

  void run_block(char* y, const char* x, int64_t block) const {
    const int64_t first = block * kRows, n = std::min(kRows, rows - first);
    const int64_t begin = upper ? edge(first) : 0, end = upper ? cols : edge(first + n - 1);
    y += first * cols * size;
    move_tile(static_cast<size_t>(size), y + begin * size, cols, 1,
              x + (first * row_stride + begin * col_stride) * size, row_stride, col_stride, n,
              end - begin);
    for (int64_t i = 0; i < n; ++i, y += cols * size) {
      const int64_t at = edge(first + i), from = upper ? 0 : at, to = upper ? at : cols;
      std::memset(y + from * size, 0, static_cast<size_t>((to - from) * size));
    }
  }
};

tn_plan* make_triangle(tn_device*, const Request& request) {
  auto &x = request.input(0), &y = request.output(0);
  require_contiguous(y);
  if (x.rank < 2 || x.dtype != y.dtype || !sdk::same_shape(x, y))
    sdk::invalid("expects matrices, and an output of their shape and dtype");
  const int64_t numel = sdk::numel(y);
  if (numel == 0) return empty_plan();
  const uint32_t last = x.rank - 1;
  const int64_t rows = x.shape[last - 1], cols = x.shape[last];
  // Beyond the corners nothing changes.
  const Triangle triangle{static_cast<int64_t>(sdk::dtype_size(x.dtype)),
                          rows,
                          cols,
                          x.strides[last - 1],
                          x.strides[last],
                          std::clamp(request.get_int("diagonal"), -rows, cols),
                          request.op() == "triu"};
  auto run = [x, triangle, numel, last](const tn_run& run) {
    const int64_t blocks = triangle.blocks(), matrix = triangle.rows * triangle.cols,
                  count = numel / matrix * blocks;
    auto body = [&](int64_t begin, int64_t end, uint32_t) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t number = i / blocks, offset = 0;
        // From both ends in turns: half of the blocks have half of the elements.
        const int64_t at = i % blocks, block = at % 2 ? blocks - 1 - at / 2 : at / 2;
        auto* to = static_cast<char*>(run.outputs[0]) + number * matrix * triangle.size;
        for (uint32_t d = last - 1; d-- > 0; number /= x.shape[d])
          offset += number % x.shape[d] * x.strides[d];
        triangle.run_block(to, static_cast<const char*>(run.inputs[0]) + offset * triangle.size,
                           block);
      }
    };
    parallel_for(count, std::max<int64_t>(1, kGrain * count / numel), body);
  };
  return sdk::make_plan(run, {0, 20 + static_cast<uint64_t>(numel * triangle.size / 20)});
}

const sdk::Kernel triangles({"tril", "triu"}, make_triangle);

}  // namespace
}  // namespace tenon::cpu
