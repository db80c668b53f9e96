#include "runtime/nest.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "simd/copy.h"
#include "simd/packet.h"

namespace tenon::cpu {

void Nest::put_rows_along(int operand) {
  if (rank < 3 || strides[operand][rank - 1] <= 1) return;
  for (int d = 0; d < rank - 2; ++d) {
    if (strides[operand][d] != 1) continue;
    for (int k = d; k < rank - 2; ++k) swap_dimensions(k, k + 1);
    return;
  }
}

namespace {

// dst[r][c] = src[c][r], both with unit stride along their own last index. Elements of the size of
// floats are moved as such, in blocks that packets transpose.
template <class T>
void transpose_tile(T* dst, int64_t dst_row, const T* src, int64_t src_col, int64_t rows,
                    int64_t cols) {
  int64_t full_rows = 0, full_cols = 0;
  if constexpr (sizeof(T) >= 4) {
    using F = std::conditional_t<sizeof(T) == 4, float, double>;
    constexpr int w = kWidth<F>;
    auto* to = reinterpret_cast<F*>(dst);
    auto* from = reinterpret_cast<const F*>(src);
    full_rows = rows / w * w;
    full_cols = cols / w * w;
    for (int64_t r = 0; r < full_rows; r += w)
      for (int64_t c = 0; c < full_cols; c += w) {
        Vec<F> block[w];
        for (int i = 0; i < w; ++i) block[i] = load(from + (c + i) * src_col + r);
        transpose<F>(block);
        for (int i = 0; i < w; ++i) store(to + (r + i) * dst_row + c, block[i]);
      }
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = r < full_rows ? full_cols : 0; c < cols; ++c)
      dst[r * dst_row + c] = src[c * src_col + r];
}

// dst[c] = last[-c]
template <class T>
void reverse_row(T* __restrict dst, const T* __restrict last, int64_t cols) {
  const T* first = last - (cols - 1);
  for (int64_t c = 0; c < cols; ++c) dst[c] = first[cols - 1 - c];
}

// dst[r][c] = src[r], of rows that lie one behind the other. Whole vectors are written, whose ends
// the next rows write over: short rows would otherwise cost a loop each.
template <class T>
void spread_rows(T* dst, const T* src, int64_t src_row, int64_t rows, int64_t cols) {
  typedef T Line __attribute__((vector_size(kVectorBytes)));
  constexpr int64_t w = kVectorBytes / static_cast<int64_t>(sizeof(T));
  const int64_t end = rows * cols, last = cols + w - 1;  // the elements that a row may write
  int64_t r = 0;
  for (; r * cols + last <= end; ++r) {
    const Line line = Line{} + src[r * src_row];
    for (int64_t c = 0; c < cols; c += w) std::memcpy(dst + r * cols + c, &line, sizeof line);
  }
  for (; r < rows; ++r) std::fill_n(dst + r * cols, cols, src[r * src_row]);
}

template <class T>
void move(T* dst, int64_t dst_row, int64_t dst_col, const T* src, int64_t src_row, int64_t src_col,
          int64_t rows, int64_t cols) {
  if (dst_col == 1 && src_col == 1) {
    for (int64_t r = 0; r < rows; ++r) {
      if (cols >= 16) {
        copy_row(dst + r * dst_row, src + r * src_row, cols * static_cast<int64_t>(sizeof(T)));
      } else {
        for (int64_t c = 0; c < cols; ++c) dst[r * dst_row + c] = src[r * src_row + c];
      }
    }
  } else if (dst_col == 1 && src_row == 1) {
    transpose_tile(dst, dst_row, src, src_col, rows, cols);
  } else if (dst_col == 1 && src_col == -1) {
    for (int64_t r = 0; r < rows; ++r) reverse_row(dst + r * dst_row, src + r * src_row, cols);
  } else if (dst_col == 1 && src_col == 0 && dst_row == cols) {
    spread_rows(dst, src, src_row, rows, cols);
  } else if (dst_col == 1 && src_col == 0) {
    for (int64_t r = 0; r < rows; ++r) std::fill_n(dst + r * dst_row, cols, src[r * src_row]);
  } else {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c)
        dst[r * dst_row + c * dst_col] = src[r * src_row + c * src_col];
  }
}

}  // namespace

void move_tile(size_t size, void* dst, int64_t dst_row, int64_t dst_col, const void* src,
               int64_t src_row, int64_t src_col, int64_t rows, int64_t cols) {
  if (rows == 0 || cols == 0) return;  // a tensor without elements has no memory to refer to
  sdk::with_size(size, [&]<class T>(T) {
    move(static_cast<T*>(dst), dst_row, dst_col, static_cast<const T*>(src), src_row, src_col, rows,
         cols);
  });
}

}  // namespace tenon::cpu
