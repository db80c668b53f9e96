// Products and triangular systems on the calling thread, for matrices that stay in the cache: the
// part of the result that is worked on stays in registers, and columns are worked on in panels
// that are packed, because rows of matrices may lie so far apart that they share sets of the cache.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/linalg/view.h"
#include "simd/packet.h"

namespace tenon::cpu {

// How many rows and vectors of a result are kept in registers, together with the operands.
inline constexpr int kRegisterRows = kVectorBytes == 64 ? 8 : 6, kRegisterVectors = 2;
// Columns of a panel, and rows that it has at most.
template <class T>
inline constexpr int64_t kPanelColumns = kRegisterVectors * kWidth<T>;
inline constexpr int64_t kPanelRows = 256;

// Rows c of a result become c - a b, where a is (rows, depth). With `solves`, they become
// t^-1 (c - a b) then, where t is the lower triangle of a from column `depth` on; its diagonal is 1
// if `unit`.
template <class T>
struct RegisterRows {
  int64_t depth;
  MatrixView<const T> a;
  const T* b;
  int64_t b_row;
  T* c;
  int64_t c_row;
  int64_t columns;
  bool solves = false, unit = false;
  const T* inverses = nullptr;  // of the diagonal; without them, it is divided by

  template <int Count>
  void run() const {
    columns > kWidth<T> ? run<Count, 2>() : run<Count, 1>();
  }

 private:
  template <int Count, int Vectors>
  void run() const {
    constexpr int64_t w = kWidth<T>;
    const int64_t last = columns - (Vectors - 1) * w;  // lanes of the last vector
    // Summed from zero on: a long sum is more exact than as many differences.
    Vec<T> x[Count][Vectors]{};
    const T *p = a.data, *q = b;
    for (int64_t k = 0; k < depth; ++k, p += a.col, q += b_row) {
      Vec<T> y[Vectors];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) y[v] = load(q + v * w);
#pragma GCC unroll 8
      for (int r = 0; r < Count; ++r) {
        const Vec<T> factor = splat(p[r * a.row]);
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) x[r][v] += factor * y[v];
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < Count; ++r) {
      const T* const from = c + r * c_row;
      if constexpr (Vectors == 2) x[r][0] = load(from) - x[r][0];
      Vec<T>& end = x[r][Vectors - 1];
      end = (last == w ? load(from + columns - w) : load_part(from + columns - last, last)) - end;
    }
    if (solves) {
#pragma GCC unroll 8
      for (int r = 0; r < Count; ++r, p += a.col) {
        if (!unit) {
          const Vec<T> factor = splat(inverses ? inverses[r] : p[r * a.row]);
#pragma GCC unroll 2
          for (int v = 0; v < Vectors; ++v)
            x[r][v] = inverses ? x[r][v] * factor : x[r][v] / factor;
        }
#pragma GCC unroll 8
        for (int s = r + 1; s < Count; ++s) {
          const Vec<T> factor = splat(p[s * a.row]);
#pragma GCC unroll 2
          for (int v = 0; v < Vectors; ++v) x[s][v] -= factor * x[r][v];
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < Count; ++r) {
      T* const to = c + r * c_row;
      if constexpr (Vectors == 2) store(to, x[r][0]);
      if (last == w)
        store(to + columns - w, x[r][Vectors - 1]);
      else
        store_part(to + columns - last, x[r][Vectors - 1], last);
    }
  }
};

// f(first row, number of rows as a constant) for rows [begin, end).
template <int Most = kRegisterRows, class F>
inline void for_register_rows(int64_t begin, int64_t end, F&& f) {
  for (; begin + Most <= end; begin += Most) f(begin, std::integral_constant<int, Most>());
  if constexpr (Most > 1)
    if (begin < end) for_register_rows<(Most > 4 ? 4 : Most / 2)>(begin, end, f);
}

// Elements of a packed row of so many columns: whole vectors.
template <class T>
constexpr int64_t packed_step(int64_t columns) {
  return columns > kWidth<T> ? kPanelColumns<T> : kWidth<T>;
}

// Rows of a panel, packed; lanes behind its columns are zero.
template <class T>
inline void pack_panel(MatrixView<const T> from, int64_t rows, int64_t columns, T* packed) {
  for (int64_t i = 0; i < rows; ++i, packed += packed_step<T>(columns)) {
    const T* const row = &from(i, 0);
    for_lanes<T>(columns, [&](int64_t j, auto part) { store(packed + j, load(row + j, part)); });
  }
}
template <class T>
inline void unpack_panel(const T* packed, int64_t rows, int64_t columns, MatrixView<T> to) {
  for (int64_t i = 0; i < rows; ++i, packed += packed_step<T>(columns)) {
    T* const row = &to(i, 0);
    for_lanes<T>(columns, [&](int64_t j, auto part) { store<T>(row + j, load(packed + j), part); });
  }
}

// c (m, n) -= a (m, k) b (k, n) for panel `j` and rows [begin, end) of c. Rows of b and c are
// contiguous. What an element becomes does not depend on the rows and panels beside it.
template <class T>
void subtract_panel(int64_t j, int64_t begin, int64_t end, int64_t n, int64_t k,
                    MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c) {
  alignas(64) T panel[kPanelRows * kPanelColumns<T>];
  j *= kPanelColumns<T>;
  const int64_t columns = std::min(kPanelColumns<T>, n - j), step = packed_step<T>(columns);
  for (int64_t l = 0; l < k; l += kPanelRows) {
    const int64_t depth = std::min(kPanelRows, k - l);
    pack_panel<T>(b.at(l, j), depth, columns, panel);
    for_register_rows(begin, end, [&](int64_t i, auto rows) {
      RegisterRows<T>{depth, a.at(i, l), panel, step, &c(i, j), c.row, columns}
          .template run<rows()>();
    });
  }
}

// b (n, k) = a^-1 b for panel `j`, n <= kPanelRows, where the lower triangle of a is read. Rows of
// b are contiguous.
template <class T>
void solve_panel(int64_t j, MatrixView<const T> a, int64_t n, MatrixView<T> b, int64_t k, bool unit,
                 const T* inverses) {
  alignas(64) T panel[kPanelRows * kPanelColumns<T>];
  j *= kPanelColumns<T>;
  const int64_t columns = std::min(kPanelColumns<T>, k - j), step = packed_step<T>(columns);
  pack_panel<T>(b.at(0, j), n, columns, panel);
  for_register_rows(0, n, [&](int64_t i, auto rows) {
    RegisterRows<T>{i,    a.at(i, 0), panel, step, panel + i * step,
                    step, step,       true,  unit, inverses ? inverses + i : nullptr}
        .template run<rows()>();
  });
  unpack_panel<T>(panel, n, columns, b.at(0, j));
}

}  // namespace tenon::cpu
