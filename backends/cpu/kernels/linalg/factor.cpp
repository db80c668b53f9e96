#include "kernels/linalg/factor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <Eigen/Core>

#include "kernels/linalg/gemm.h"
#include "runtime/common.h"

namespace tenon::cpu {
namespace {

// Sizes up to which a matrix is no longer divided, and multiply-adds up to which a product is not
// worth its blocks.
constexpr int64_t kFewRows = 32, kFewColumns = 16;
// Up to this size Eigen's triangular systems are no faster than a loop (docs/benchmarks.md), and
// from this one on they are halved, as products use all threads for one right-hand side as well.
constexpr int64_t kSmallTriangle = 8, kLargeTriangle = 256;
// So many right-hand sides are solved together, whatever the number of threads is.
constexpr int64_t kSolvedTogether = 128;
constexpr int64_t kSmallProduct = 1 << 12;

// b = a^-1 b, along the rows or the columns of b, whichever are contiguous.
template <class T>
void solve_small(MatrixView<const T> a, int64_t n, MatrixView<T> b, int64_t k, bool upper,
                 bool unit) {
  const auto place = [&](int64_t step) { return upper ? n - 1 - step : step; };
  if (b.col == 1) {
    for (int64_t s = 0; s < n; ++s) {
      const int64_t i = place(s);
      T* const row = &b(i, 0);
      for (int64_t t = 0; t < s; ++t) {
        const int64_t j = place(t);
        const T factor = a(i, j);
        const T* const other = &b(j, 0);
        for (int64_t c = 0; c < k; ++c) row[c] -= factor * other[c];
      }
      if (unit) continue;
      const T pivot = a(i, i);
      for (int64_t c = 0; c < k; ++c) row[c] /= pivot;
    }
    return;
  }
  for (int64_t c = 0; c < k; ++c)
    for (int64_t s = 0; s < n; ++s) {
      const int64_t i = place(s);
      T value = b(i, c);
      for (int64_t t = 0; t < s; ++t) value -= a(i, place(t)) * b(place(t), c);
      b(i, c) = unit ? value : value / a(i, i);
    }
}

// Whether all elements of the diagonal have inverses, by which Eigen multiplies.
template <class T>
bool has_inverses(MatrixView<const T> a, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!std::isnormal(a(i, i)) || !std::isnormal(1 / a(i, i))) return false;
  return true;
}

template <class T, int order>
using Strided =
    Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, order>, 0, Eigen::OuterStride<>>;

// b = a^-1 b by Eigen. The columns of a are contiguous, and so are the rows or columns of b.
template <class T, unsigned mode>
void solve_by_eigen(MatrixView<const T> a, int64_t n, MatrixView<T> b, int64_t k) {
  using Triangle =
      Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0,
                 Eigen::OuterStride<>>;
  const Triangle triangle(a.data, n, n, Eigen::OuterStride<>(a.row));
  if (b.col == 1) {
    Strided<T, Eigen::RowMajor> x(b.data, n, k, Eigen::OuterStride<>(b.row));
    triangle.template triangularView<mode>().solveInPlace(x);
  } else {
    Strided<T, Eigen::ColMajor> x(b.data, n, k, Eigen::OuterStride<>(b.col));
    triangle.template triangularView<mode>().solveInPlace(x);
  }
}

// The same for many right-hand sides, on all threads where there are several.
template <class T>
void solve_blocks(MatrixView<const T> a, int64_t n, MatrixView<T> b, int64_t k, bool upper,
                  bool unit, uint32_t threads) {
  const auto solve =
      upper  ? unit ? solve_by_eigen<T, Eigen::UnitUpper> : solve_by_eigen<T, Eigen::Upper>
       : unit ? solve_by_eigen<T, Eigen::UnitLower>
             : solve_by_eigen<T, Eigen::Lower>;
  const auto part = [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t i = begin * kSolvedTogether; i < std::min(k, end * kSolvedTogether);
         i += kSolvedTogether)
      solve(a, n, b.at(0, i), std::min(kSolvedTogether, k - i));
  };
  const int64_t parts = (k + kSolvedTogether - 1) / kSolvedTogether;
  threads > 1 ? parallel_for(parts, 1, part) : part(0, parts, 0);
}

template <class T>
int64_t cholesky_small(MatrixView<T> a, int64_t n) {
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

template <class T>
void swap_rows(MatrixView<T> a, int64_t columns, int64_t i, int64_t j) {
  if (i == j) return;
  for (int64_t c = 0; c < columns; ++c) std::swap(a(i, c), a(j, c));
}

// A few columns of m rows.
template <class T>
int64_t lu_small(MatrixView<T> a, int64_t m, int64_t n, int32_t* pivots) {
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

}  // namespace

template <class T>
void Factorizer<T>::subtract_product(int64_t m, int64_t n, int64_t k, ConstView a, ConstView b,
                                     View c) {
  if (m == 0 || n == 0 || k == 0) return;
  if (c.col != 1 && c.row == 1)
    return subtract_product(n, m, k, b.turned(), a.turned(), c.turned());
  const GemmShape shape{m, n, k, a.row, a.col, b.row, b.col};
  if (shape.work() <= kSmallProduct) {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t l = 0; l < k; ++l) {
        const T factor = a(i, l);
        for (int64_t j = 0; j < n; ++j) c(i, j) -= factor * b(l, j);
      }
    return;
  }
  const Gemm<T> gemm(shape, threads_);
  constexpr size_t line = 64;
  if (product_.size() < static_cast<size_t>(m * n)) product_.resize(static_cast<size_t>(m * n));
  if (workspace_.size() < gemm.workspace_bytes() + line)
    workspace_.resize(gemm.workspace_bytes() + line);
  char* const scratch =
      workspace_.data() + (line - reinterpret_cast<uintptr_t>(workspace_.data()) % line) % line;
  gemm.run(a.data, b.data, nullptr, product_.data(), scratch);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) c(i, j) -= product_[static_cast<size_t>(i * n + j)];
}

template <class T>
void Factorizer<T>::solve_triangular(ConstView a, int64_t n, View b, int64_t k, bool upper,
                                     bool unit) {
  if (n > kSmallTriangle && n <= kLargeTriangle && (unit || has_inverses<T>(a, n)))
    return solve_blocks<T>(a, n, b, k, upper, unit, threads_);
  if (n <= kFewRows) return solve_small<T>(a, n, b, k, upper, unit);
  const int64_t h = n / 2, rest = n - h;
  if (upper) {
    solve_triangular(a.at(h, h), rest, b.at(h, 0), k, upper, unit);
    subtract_product(h, k, rest, a.at(0, h), b.at(h, 0), b);
    solve_triangular(a, h, b, k, upper, unit);
  } else {
    solve_triangular(a, h, b, k, upper, unit);
    subtract_product(rest, k, h, a.at(h, 0), b, b.at(h, 0));
    solve_triangular(a.at(h, h), rest, b.at(h, 0), k, upper, unit);
  }
}

template <class T>
int64_t Factorizer<T>::cholesky(View a, int64_t n) {
  if (n <= kFewRows) return cholesky_small(a, n);
  const int64_t h = n / 2, rest = n - h;
  if (const int64_t pivot = cholesky(a, h); pivot >= 0) return pivot;
  const View below = a.at(h, 0), corner = a.at(h, h);
  solve_triangular(a, h, below.turned(), rest, false, false);  // X = below L^-T
  subtract_product(rest, rest, h, below, below.turned(), corner);
  const int64_t pivot = cholesky(corner, rest);
  return pivot < 0 ? pivot : h + pivot;
}

template <class T>
void Factorizer<T>::exchange(View a, int64_t columns, const int32_t* pivots, int64_t begin,
                             int64_t end) {
  for (int64_t i = begin; i < end; ++i) swap_rows(a, columns, i, int64_t{pivots[i]});
}

// m >= n.
template <class T>
int64_t Factorizer<T>::tall_lu(View a, int64_t m, int64_t n, int32_t* pivots) {
  if (n <= kFewColumns) return lu_small(a, m, n, pivots);
  const int64_t h = n / 2, rest = n - h;
  const int64_t first = tall_lu(a, m, h, pivots);
  const View right = a.at(0, h);
  exchange(right, rest, pivots, 0, h);
  solve_triangular(a, h, right, rest, false, true);
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
  solve_triangular(a, m, a.at(0, m), n - m, false, true);
  return zero;
}

template class Factorizer<float>;
template class Factorizer<double>;

}  // namespace tenon::cpu
