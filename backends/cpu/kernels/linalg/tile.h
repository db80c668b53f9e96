// Small products on the calling thread, with one operand packed into panels of up to four vectors:
// the sums of some rows with a panel are all in registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "runtime/nest.h"
#include "simd/packet.h"

namespace tenon::cpu {

// How many rows and vectors of a result are kept in registers at a time, with an element of each
// row and one vector of the panel: all of 16 registers, or all but one of 32.
inline constexpr int kTileRows = kVectorBytes == 64 ? 6 : 3, kTileVectors = 4;
template <class T>
inline constexpr int64_t kPanel = kTileVectors * kWidth<T>;
template <class T, int Rows, int Vectors = kTileVectors>
using Tile = Vec<T>[Rows][Vectors];

// tile += a (Rows, depth) with the first Vectors of a panel, whose rows are `step` apart. Each
// element is summed in the order of `depth`, whatever the tile.
template <class T, int Rows, int Vectors>
inline void add_tile(int64_t depth, const T* a, int64_t a_row, int64_t a_col, const T* panel,
                     int64_t step, Tile<T, Rows, Vectors>& tile) {
  Tile<T, Rows, Vectors> sums;
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) sums[r][v] = tile[r][v];
  for (int64_t k = 0; k < depth; ++k, panel += step, a += a_col) {
    Vec<T> x[Rows];
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) x[r] = splat<T>(a[r * a_row]);
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const Vec<T> b = load(panel + v * kWidth<T>);
#pragma GCC unroll 6
      for (int r = 0; r < Rows; ++r) sums[r][v] += x[r] * b;
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) tile[r][v] = sums[r][v];
}

// f(first row, number of rows as a constant) for rows [begin, end).
template <int Most = kTileRows, class F>
inline void for_tiles(int64_t begin, int64_t end, F&& f) {
  for (; begin + Most <= end; begin += Most) f(begin, std::integral_constant<int, Most>());
  if constexpr (Most > 1)
    if (begin < end) for_tiles<Most - 1>(begin, end, f);
}

// The panels of a matrix (depth, columns), one behind the other; the last has no more vectors than
// it needs, whose lanes behind the end are zero.
template <class T>
struct Panels {
  int64_t depth, columns;

  int64_t count() const { return (columns + kPanel<T> - 1) / kPanel<T>; }
  int64_t vectors_of(int64_t panel) const {
    const int64_t all = (columns + kWidth<T> - 1) / kWidth<T>;
    return std::min<int64_t>(kTileVectors, all - panel * kTileVectors);
  }
  int64_t step_of(int64_t panel) const { return vectors_of(panel) * kWidth<T>; }
  int64_t begin_of(int64_t panel) const { return panel * depth * kPanel<T>; }
  int64_t elements() const { return (columns + kWidth<T> - 1) / kWidth<T> * kWidth<T> * depth; }
  // Packs one panel of a matrix with any strides.
  void pack(int64_t panel, const T* from, int64_t row, int64_t col, T* packed) const {
    T* to = packed + begin_of(panel);
    const int64_t first = panel * kPanel<T>, step = step_of(panel),
                  here = std::min(step, columns - first);
    for (int64_t k = 0; k < depth && here < step; ++k)
      std::fill(to + k * step + here, to + (k + 1) * step, T(0));
    move_tile(sizeof(T), to, step, 1, from + first * col, row, col, depth, here);
  }
};

// The part of a product that is needed under a causal mask: of row i, the first `offset` + i + 1
// columns or terms, or the terms from i - `offset` on.
struct Reach {
  enum Of { all, columns, terms, later_terms } of = all;
  int64_t offset = 0;

  int64_t columns_of(int64_t last_row, int64_t n) const {
    return of == columns ? std::clamp<int64_t>(last_row + offset + 1, 0, n) : n;
  }
  int64_t first_term(int64_t first_row, int64_t k) const {
    return of == later_terms ? std::clamp<int64_t>(first_row - offset, 0, k) : 0;
  }
  int64_t terms_of(int64_t last_row, int64_t k) const {
    return of == terms ? std::clamp<int64_t>(last_row + offset + 1, 0, k) : k;
  }
};

// c (m, n) = a b on the calling thread, with b packed. Columns that `reach` leaves out may keep
// their values in c, and terms that it leaves out have to be zero in a.
template <class T>
struct PanelProduct {
  const T* a;
  int64_t a_row, a_col;
  Panels<T> b;
  const T* packed;
  T* c;
  Reach reach;

  void run(int64_t m) const {
    for (int64_t p = 0; p < b.count(); ++p)
      for_tiles(0, m, [&](int64_t first, auto rows) {
        const int64_t column = p * kPanel<T>, last = first + rows() - 1,
                      needed = reach.columns_of(last, b.columns) - column,
                      vectors = (needed + kWidth<T> - 1) / kWidth<T>;
        tile<rows(), kTileVectors>(first, p, std::min(b.vectors_of(p), vectors));
      });
  }

 private:
  template <int Rows, int Vectors>
  void tile(int64_t first, int64_t panel, int64_t vectors) const {
    if (vectors < Vectors) {
      if constexpr (Vectors > 1) tile<Rows, Vectors - 1>(first, panel, vectors);
      return;
    }
    const int64_t k = reach.first_term(first, b.depth), step = b.step_of(panel),
                  depth = std::max<int64_t>(0, reach.terms_of(first + Rows - 1, b.depth) - k);
    Tile<T, Rows, Vectors> sums{};
    add_tile<T, Rows, Vectors>(depth, a + first * a_row + k * a_col, a_row, a_col,
                               packed + b.begin_of(panel) + k * step, step, sums);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        const int64_t j = panel * kPanel<T> + v * kWidth<T>;
        T* to = c + (first + r) * b.columns + j;
        if (j + kWidth<T> <= b.columns)
          store(to, sums[r][v]);
        else
          store_part(to, sums[r][v], b.columns - j);
      }
  }
};

}  // namespace tenon::cpu
