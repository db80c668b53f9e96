#include "kernels/linalg/factor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/linalg/gemm.h"
#include "kernels/linalg/registers.h"
#include "runtime/common.h"
#include "runtime/nest.h"

namespace tenon::cpu {

namespace {

// Sizes up to which loops over single elements are the fastest.
constexpr int64_t kTinyCholesky = 16, kTinyLu = 12;
// Sizes up to which matrices are no longer divided: triangular ones, those of Cholesky, columns of
// LU, and triangular ones with one right-hand side.
constexpr int64_t kSmallTriangle = 128, kSmallCholesky = 128, kFewColumns = 16, kLargeVector = 512;
// Right-hand sides from which on the diagonal is inverted.
constexpr int64_t kManyColumns = 8;
// Rows of a triangular matrix that are solved one after the other for one right-hand side.
constexpr int64_t kVectorRows = 16;
// Rows of a product with a vector that a thread takes at once.
constexpr int64_t kVectorStrip = 64;
// Multiply-adds and terms of products from which on Eigen's are faster, because its operands are
// packed in both directions (docs/benchmarks.md), and rows or columns that a thread takes at once:
// whole tiles of Eigen, so that results do not depend on where they are cut.
constexpr int64_t kLargeProduct = 1 << 23, kDeep = 64, kSharedRows = 192;
// Multiply-adds below which waking another thread costs more than it saves.
constexpr int64_t kUnsharedWork = 1 << 19, kUnsharedVectorWork = 1 << 15;

constexpr int64_t parts_of(int64_t n, int64_t part) { return (n + part - 1) / part; }
int64_t half(int64_t n) { return n / 2 / 16 * 16; }

// x = a^-1 x. Rows of a are contiguous.
template <class T>
void solve_vector(MatrixView<const T> a, int64_t n, T* x, bool upper, bool unit, bool threads) {
  if (n > kLargeVector) {
    const int64_t h = n / 2, first = upper ? h : 0, second = h - first, rows = upper ? h : n - h;
    solve_vector(a.at(first, first), n - rows, x + first, upper, unit, threads);
    // In strips, so that results do not depend on where threads cut: the last rows of a product are
    // summed in another order.
    const auto part = [&](int64_t begin, int64_t end, uint32_t) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t r = second + i * kVectorStrip,
                      size = std::min(kVectorStrip, second + rows - r);
        add_product<T>(size, n - rows, T(-1), a.at(r, first), x + first, x + r);
      }
    };
    const int64_t strips = parts_of(rows, kVectorStrip);
    threads ? parallel_for(strips, 1 + kUnsharedVectorWork / n * 8 / kVectorStrip, part)
            : part(0, strips, 0);
    return solve_vector(a.at(second, second), rows, x + second, upper, unit, threads);
  }
  for (int64_t done = 0; done < n; done += kVectorRows) {
    const int64_t rows = std::min(kVectorRows, n - done), i = upper ? n - done - rows : done,
                  solved = upper ? i + rows : 0;
    add_product<T>(rows, done, T(-1), a.at(i, solved), x + solved, x + i);
    for (int64_t s = 0; s < rows; ++s) {
      const int64_t r = upper ? i + rows - 1 - s : i + s;
      const T value = unit ? x[r] : x[r] /= a(r, r);
      for (int64_t t = upper ? i : r + 1; t < (upper ? r : i + rows); ++t) x[t] -= a(t, r) * value;
    }
  }
}

// Whether all elements of the diagonal have inverses by which to multiply.
template <class T>
bool find_inverses(MatrixView<const T> a, int64_t n, T* inverses) {
  for (int64_t i = 0; i < n; ++i) {
    inverses[i] = 1 / a(i, i);
    if (!std::isnormal(a(i, i)) || !std::isnormal(inverses[i])) return false;
  }
  return true;
}

// The lower triangle of a small matrix becomes L.
template <class T>
int64_t cholesky_loops(MatrixView<T> a, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    T pivot = a(j, j);
    for (int64_t t = 0; t < j; ++t) pivot -= a(j, t) * a(j, t);
    if (!(pivot > 0)) return j;  // NaN is not positive either
    a(j, j) = pivot = std::sqrt(pivot);
    for (int64_t i = j + 1; i < n; ++i) {
      T value = a(i, j);
      for (int64_t t = 0; t < j; ++t) value -= a(i, t) * a(j, t);
      a(i, j) = value / pivot;
    }
  }
  return -1;
}

// The upper triangle of `from` becomes the transposed of L in `to`.
template <class T, int Count>
int64_t cholesky_tile(const T* from, int64_t step, MatrixView<T> to) {
  T x[Count][Count];
#pragma GCC unroll 8
  for (int r = 0; r < Count; ++r)
#pragma GCC unroll 8
    for (int c = r; c < Count; ++c) x[r][c] = from[r * step + c];
#pragma GCC unroll 8
  for (int r = 0; r < Count; ++r) {
    if (!(x[r][r] > 0)) return r;  // NaN is not positive either
    const T pivot = x[r][r] = std::sqrt(x[r][r]);
#pragma GCC unroll 8
    for (int c = r + 1; c < Count; ++c) x[r][c] /= pivot;
#pragma GCC unroll 8
    for (int s = r + 1; s < Count; ++s)
#pragma GCC unroll 8
      for (int c = s; c < Count; ++c) x[s][c] -= x[r][s] * x[r][c];
  }
#pragma GCC unroll 8
  for (int r = 0; r < Count; ++r)
#pragma GCC unroll 8
    for (int c = r; c < Count; ++c) to(r, c) = x[r][c];
  return -1;
}

// The upper triangle of u becomes the transposed of L. What comes behind column `end` must stay as
// it is.
template <class T>
int64_t cholesky_small(MatrixView<T> u, int64_t n, int64_t end) {
  constexpr int64_t panel = kPanelColumns<T>,
                    corner_columns = (kRegisterRows + panel - 1) / panel * panel;
  alignas(64) T corner[kRegisterRows * corner_columns];
  int64_t failed = -1;
  for_register_rows(0, n, [&](int64_t i, auto rows) {
    if (failed >= 0) return;
    constexpr int count = rows();
    const MatrixView<const T> above = u.at(0, i).turned();
    for (int r = 0; r < count; ++r)
      std::copy_n(&u(i + r, i), corner_columns, corner + r * corner_columns);
    for (int64_t j = 0; j < count; j += panel)
      RegisterRows<T>{i, above, &u(0, i + j), u.row, corner + j, corner_columns, panel}
          .template run<count>();
    failed = cholesky_tile<T, count>(corner, corner_columns, u.at(i, i));
    if (failed >= 0) failed += i;
    for (int64_t j = i + count; j < n && failed < 0; j += panel)
      RegisterRows<T>{i, above, &u(0, j), u.row, &u(i, j), u.row, std::min(panel, end - j), true}
          .template run<count>();
  });
  return failed;
}

template <class T>
void swap_rows(MatrixView<T> a, int64_t columns, int64_t i, int64_t j) {
  if (i != j) std::swap_ranges(&a(i, 0), &a(i, 0) + columns, &a(j, 0));
}

// A few columns of m rows or few rows.
template <class T>
int64_t lu_loops(MatrixView<T> a, int64_t m, int64_t n, int32_t* pivots) {
  int64_t zero = -1;
  for (int64_t j = 0; j < n; ++j) {
    int64_t best = j;
    for (int64_t i = j + 1; i < m; ++i)
      if (std::abs(a(i, j)) > std::abs(a(best, j))) best = i;
    pivots[j] = static_cast<int32_t>(best);
    swap_rows(a, n, j, best);
    const T pivot = a(j, j);
    if (pivot == 0) {
      if (zero < 0) zero = j;
      continue;  // the column below is 0 already
    }
    for (int64_t i = j + 1; i < m; ++i) {
      const T factor = a(i, j) /= pivot;
      for (int64_t c = j + 1; c < n; ++c) a(i, c) -= factor * a(j, c);
    }
  }
  return zero;
}

// The first of the largest elements of x. A NaN is only chosen where it comes first of all. Behind
// the n elements are others that are 0 or NaN, for a vector.
template <class T>
int64_t place_of_largest(const T* x, int64_t n) {
  if (std::isnan(x[0])) return 0;
  constexpr int64_t part = 1 << 22;  // lanes count in T
  int64_t best = 0;
  for (int64_t begin = 0; begin < n; begin += part) {
    const T before = std::abs(x[best]);
    Vec<T> largest = splat(before), place{}, here = Eigen::internal::plset<Vec<T>>(T(0));
    for (int64_t i = begin; i < std::min(n, begin + part); i += kWidth<T>) {
      const Vec<T> size = Eigen::internal::pabs(load(x + i));
      const auto larger = size > largest;
      largest = larger ? size : largest;
      place = larger ? here : place;
      here += splat(static_cast<T>(kWidth<T>));
    }
    const T most = Eigen::internal::predux_max(largest);
    if (!(most > before)) continue;
    place = largest == splat(most) ? place : splat(static_cast<T>(part));
    best = begin + static_cast<int64_t>(Eigen::internal::predux_min(place));
  }
  return best;
}

// A few columns of m rows. Elements of a column are contiguous and followed by zeros.
template <class T>
int64_t lu_columns(T* a, int64_t step, int64_t m, int64_t n, int32_t* pivots) {
  int64_t zero = -1;
  for (int64_t j = 0; j < n; ++j) {
    T* const column = a + j * step;
    const int64_t best = j + place_of_largest(column + j, m - j);
    pivots[j] = static_cast<int32_t>(best);
    for (int64_t c = 0; c < n; ++c) std::swap(a[c * step + j], a[c * step + best]);
    const T pivot = column[j];
    if (pivot == 0) {
      if (zero < 0) zero = j;
      continue;  // the column below is 0 already
    }
    const Vec<T> divisor = splat(pivot);
    for (int64_t i = j + 1; i < m; i += kWidth<T>) store(column + i, load(column + i) / divisor);
    for (int64_t c = j + 1; c < n; ++c) {
      T* const other = a + c * step;
      const Vec<T> factor = splat(other[j]);
      for (int64_t i = j + 1; i < m; i += kWidth<T>)
        store(other + i, load(other + i) - factor * load(column + i));
    }
  }
  return zero;
}

}  // namespace

template <class T>
template <class Task>
void Factorizer<T>::share(int64_t n, int64_t work, Task&& task) const {
  const auto part = [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t i = begin; i < end; ++i) task(i);
  };
  threads_ > 1 ? parallel_for(n, kUnsharedWork / (work + 1) + 1, part) : part(0, n, 0);
}

template <class T>
void Factorizer<T>::subtract_product(int64_t m, int64_t n, int64_t k, ConstView a, ConstView b,
                                     View c, Part wanted) const {
  // Of the upper triangle, panels get longer to the right and strips shorter downwards, and so they
  // come from both ends.
  const bool all = wanted == Part::all;
  const auto mixed = [&](int64_t i, int64_t count) {
    return all ? i : i % 2 == 0 ? i / 2 : count - 1 - i / 2;
  };
  if (k >= kDeep && m * n * k >= kLargeProduct) {
    if (a.col < 0)  // Eigen takes no rows and columns from the last to the first
      return subtract_product(m, n, k, {&a(m - 1, k - 1), -a.row, -a.col},
                              {&b(k - 1, 0), -b.row, b.col}, {&c(m - 1, 0), -c.row, c.col});
    const bool rows = !all || m > n;
    const int64_t cut = all ? kSharedRows : kSharedRows / 2, strips = parts_of(rows ? m : n, cut);
    return share(strips, cut * (rows ? n : m) * k, [&](int64_t i) {
      const int64_t begin = mixed(i, strips) * cut, size = std::min(cut, (rows ? m : n) - begin);
      if (!rows) return add_product<T>(m, size, k, T(-1), a, b.at(0, begin), c.at(0, begin));
      const int64_t j = all ? 0 : begin;
      add_product<T>(size, n - j, k, T(-1), a.at(begin, 0), b.at(0, j), c.at(begin, j));
    });
  }
  // A task is a panel and a strip of its rows.
  const int64_t panels = parts_of(n, kPanelColumns<T>),
                strip = threads_ > 1 && all ? std::min(m, kSharedRows) : m,
                strips = m == 0 ? 0 : parts_of(m, strip);
  share(panels * strips, strip * kPanelColumns<T> * k, [&](int64_t task) {
    const int64_t j = mixed(task / strips, panels), begin = task % strips * strip,
                  needed = all ? m : std::min(m, (j + 1) * kPanelColumns<T>);
    subtract_panel<T>(j, begin, std::min(needed, begin + strip), n, k, a, b, c);
  });
}

template <class T>
void Factorizer<T>::solve_lower(ConstView a, int64_t n, View b, int64_t k, bool unit) const {
  if (n <= kSmallTriangle) {
    T inverses[kSmallTriangle];
    const bool multiply = !unit && k >= kManyColumns && find_inverses(a, n, inverses);
    return share(parts_of(k, kPanelColumns<T>), n * n / 2 * kPanelColumns<T>, [&](int64_t panel) {
      solve_panel<T>(panel, a, n, b, k, unit, multiply ? inverses : nullptr);
    });
  }
  const int64_t h = half(n), rest = n - h;
  solve_lower(a, h, b, k, unit);
  subtract_product(rest, k, h, a.at(h, 0), b, b.at(h, 0));
  solve_lower(a.at(h, h), rest, b.at(h, 0), k, unit);
}

template <class T>
void Factorizer<T>::solve_triangular(ConstView a, int64_t n, View b, int64_t k, bool upper,
                                     bool unit) {
  if (k == 1) return solve_vector<T>(a, n, b.data, upper, unit, threads_ > 1);
  if (upper)  // from the last row to the first
    solve_lower({&a(n - 1, n - 1), -a.row, -a.col}, n, {&b(n - 1, 0), -b.row, b.col}, k, unit);
  else
    solve_lower(a, n, b, k, unit);
}

template <class T>
int64_t Factorizer<T>::cholesky_upper(View u, int64_t n, int64_t end) {
  if (n <= kSmallCholesky) return cholesky_small(u, n, end);
  const int64_t h = half(n), rest = n - h;
  if (const int64_t pivot = cholesky_upper(u, h, h); pivot >= 0) return pivot;
  const View right = u.at(0, h), corner = u.at(h, h);
  solve_lower(u.turned(), h, right, rest, false);
  subtract_product(rest, rest, h, right.turned(), right, corner, Part::upper);
  const int64_t pivot = cholesky_upper(corner, rest, end - h);
  return pivot < 0 ? pivot : h + pivot;
}

template <class T>
int64_t Factorizer<T>::cholesky(ConstView a, View l, int64_t n) {
  if (n <= kTinyCholesky) {
    for (int64_t i = 0; i < n; ++i) std::copy_n(&a(i, 0), i + 1, &l(i, 0));
    const int64_t failed = cholesky_loops(l, n);
    for (int64_t i = 0; i < n; ++i) std::fill(&l(i, 0) + i + 1, &l(i, 0) + n, T(0));
    return failed;
  }
  const int64_t step = (n + kPanelColumns<T> - 1) / 16 * 16 + 16;
  scratch_.resize(static_cast<size_t>(n * step));
  const View u{scratch_.data(), step, 1};
  constexpr int64_t block = 64;
  for (int64_t i = 0; i < n; i += block)
    for (int64_t j = 0; j <= i; j += block)
      move_tile(sizeof(T), &u(j, i), step, 1, &a(i, j), 1, a.row, std::min(block, n - j),
                std::min(block, n - i));
  const int64_t failed = cholesky_upper(u, n, step);
  for (int64_t i = 0; i < n; i += block) {
    for (int64_t j = 0; j <= i; j += block)
      move_tile(sizeof(T), &l(i, j), l.row, 1, &u(j, i), 1, step, std::min(block, n - i),
                std::min(block, n - j));
    for (int64_t r = i; r < std::min(n, i + block); ++r)
      std::fill(&l(r, 0) + r + 1, &l(r, 0) + n, T(0));
  }
  return failed;
}

template <class T>
void Factorizer<T>::exchange(View a, int64_t columns, const int32_t* pivots, int64_t begin,
                             int64_t end) {
  for (int64_t i = begin; i < end; ++i) swap_rows(a, columns, i, int64_t{pivots[i]});
}

// m >= n.
template <class T>
int64_t Factorizer<T>::tall_lu(View a, int64_t m, int64_t n, int32_t* pivots) {
  if (m <= kTinyLu) return lu_loops(a, m, n, pivots);
  if (n <= kFewColumns) {
    const int64_t step = (m + 15) / 16 * 16 + 16;
    if (scratch_.size() < static_cast<size_t>(step * n))
      scratch_.resize(static_cast<size_t>(step * n));
    move_tile(sizeof(T), scratch_.data(), step, 1, a.data, 1, a.row, n, m);
    for (int64_t c = 0; c < n; ++c)
      std::fill(scratch_.data() + c * step + m, scratch_.data() + (c + 1) * step, T(0));
    const int64_t zero = lu_columns(scratch_.data(), step, m, n, pivots);
    move_tile(sizeof(T), a.data, a.row, 1, scratch_.data(), 1, step, m, n);
    return zero;
  }
  const int64_t h = std::max<int64_t>(kFewColumns, n / 2 / kFewColumns * kFewColumns), rest = n - h;
  const int64_t first = tall_lu(a, m, h, pivots);
  const View right = a.at(0, h);
  exchange(right, rest, pivots, 0, h);
  solve_lower(a, h, right, rest, true);
  subtract_product(m - h, rest, h, a.at(h, 0), right, a.at(h, h));
  const int64_t second = tall_lu(a.at(h, h), m - h, rest, pivots + h);
  for (int64_t i = h; i < n; ++i) pivots[i] += static_cast<int32_t>(h);
  exchange(a, h, pivots, h, n);
  return first >= 0 || second < 0 ? first : h + second;
}

template <class T>
int64_t Factorizer<T>::lu(View a, int64_t m, int64_t n, int32_t* pivots) {
  if (n <= m) return tall_lu(a, m, n, pivots);
  const int64_t zero = tall_lu(a, m, m, pivots);
  exchange(a.at(0, m), n - m, pivots, 0, m);
  solve_lower(a, m, a.at(0, m), n - m, true);
  return zero;
}

template class Factorizer<float>;
template class Factorizer<double>;

}  // namespace tenon::cpu
