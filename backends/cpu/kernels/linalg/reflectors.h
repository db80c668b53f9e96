// Orthogonal decompositions of one matrix on the calling thread: those of small matrices, in loops
// over rows, and what those in blocks (householder.h) share with them. Eigen's are slower
// (docs/benchmarks.md) and take a minute to compile for each dtype and level of CPU. Matrices are
// row-major without gaps, and scaled while they are decomposed, so that squares neither overflow
// nor vanish.
//
// Householder reflectors H = 1 - tau v v^T with v[0] = 1 (Golub and Van Loan, "Matrix
// Computations", 4th ed., 5.1), and the rotations and scales that orthogonal decompositions share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <Eigen/Core>

#include "simd/packet.h"

namespace tenon::cpu {

template <class T>
T dot(const T* a, const T* b, int64_t n) {
  using Vector = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, 1>>;
  return Vector(a, n).dot(Vector(b, n));
}
// y += factor x
template <class T>
void add_scaled(T* __restrict y, T factor, const T* __restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}
// x = c x - s y and y = s x + c y
template <class T>
void rotate(T* __restrict x, T* __restrict y, int64_t n, T c, T s) {
  for (int64_t i = 0; i < n; ++i) {
    const T a = x[i], b = y[i];
    x[i] = c * a - s * b;
    y[i] = s * a + c * b;
  }
}

// Columns i of to (n, count), `step` apart, are rows order[i] of `rows`, `stride` apart, in tiles
// that stay in the cache.
template <class T>
void write_columns(const T* rows, int64_t stride, const std::vector<int64_t>& order, int64_t n,
                   T* to, int64_t step) {
  constexpr int64_t kTile = 16;
  const auto count = static_cast<int64_t>(order.size());
  for (int64_t begin = 0; begin < count; begin += kTile)
    for (int64_t j = 0; j < n; j += kTile)
      for (int64_t i = begin; i < std::min(count, begin + kTile); ++i) {
        const T* const row = rows + order[static_cast<size_t>(i)] * stride;
        for (int64_t c = j; c < std::min(n, j + kTile); ++c) to[c * step + i] = row[c];
      }
}

// The exponent e for which 2^-e x has its largest element in [0.5, 1); 0 where that is 0, infinite
// or NaN.
template <class T>
int exponent_of(const T* x, int64_t n) {
  Vec<T> most{}, difference{};
  for_lanes<T>(n, [&](int64_t i, auto part) {
    const Vec<T> v = load(x + i, part);
    most = max_vec<T>(most, Eigen::internal::pabs(v));
    difference += v - v;  // not 0 where an element is no number
  });
  if (sum_lanes<T>(difference) != 0) return 0;
  int exponent = 0;
  std::frexp(Eigen::internal::predux_max(most), &exponent);
  return exponent;
}

// x *= 2^exponent, by two factors, of which each is a number where the exponent is that of one.
template <class T>
void scale(T* x, int64_t n, int exponent) {
  const T first = std::ldexp(T(1), exponent / 2),
          second = std::ldexp(T(1), exponent - exponent / 2);
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] * first * second;
}

// The norm of n elements, also where their squares are too small for a double. Below 1e-290 it is
// 0: matrices are scaled, so that such numbers, which rounding leaves behind, do not count.
template <class T>
double norm_of(const T* x, int64_t n, int64_t stride) {
  const auto scaled_by = [&](double unit) {
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double value = x[i * stride] / unit;
      squares += value * value;
    }
    return squares;
  };
  const double squares = scaled_by(1);
  if (!(squares < 1e-280)) return std::sqrt(squares);
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max<double>(largest, std::abs(x[i * stride]));
  return largest < 1e-290 ? 0 : largest * std::sqrt(scaled_by(largest));
}

// Makes x, n elements `stride` apart, into v except v[0], whose place gets the only element of H x
// that is not 0, with the sign that LAPACK's has. Returns tau.
template <class T>
T make_reflector(T* x, int64_t n, int64_t stride) {
  const double below = norm_of(x + stride, n - 1, stride);
  if (below == 0) return 0;
  const double alpha = x[0], beta = -std::copysign(std::hypot(alpha, below), alpha);
  for (int64_t i = 1; i < n; ++i) x[i * stride] = static_cast<T>(x[i * stride] / (alpha - beta));
  x[0] = static_cast<T>(beta);
  return static_cast<T>((beta - alpha) / beta);
}

// The reflectors of a QR decomposition: those of the columns of a (m, n), below its diagonal.
template <class T>
class Reflectors {
 public:
  // Decomposes a (m, n) in place. Where `order` is there, the column of the largest norm is taken
  // next, and order[j] says which it was.
  Reflectors(T* a, int64_t m, int64_t n, int64_t* order) : a_(a), m_(m), n_(n) {
    v_.resize(static_cast<size_t>(m)), w_.resize(static_cast<size_t>(std::max(m, n)));
    if (order) std::iota(order, order + n, 0);
    for (int64_t j = 0; j < std::min(m, n); ++j) {
      if (order) take_largest(j, order);
      taus_.push_back(make_reflector(a + j * n + j, m - j, n));
      apply(j, a + j * n + j + 1, n, n - j - 1);
    }
  }

  // y (m, columns) = Q y, of which column i >= n is that of a unit matrix.
  void apply_all(T* y, int64_t columns) {
    for (auto j = static_cast<int64_t>(taus_.size()); j-- > 0;)
      apply(j, y + j * columns, columns, columns);
  }

 private:
  void take_largest(int64_t j, int64_t* order) {
    const auto squares = w_.data();
    std::fill(squares, squares + n_ - j, T(0));
    for (int64_t i = j; i < m_; ++i)
      for (int64_t c = j; c < n_; ++c) squares[c - j] += a_[i * n_ + c] * a_[i * n_ + c];
    const int64_t best = j + (std::max_element(squares, squares + n_ - j) - squares);
    if (best == j) return;
    std::swap(order[j], order[best]);
    for (int64_t i = 0; i < m_; ++i) std::swap(a_[i * n_ + j], a_[i * n_ + best]);
  }

  // y = H_j y for the rows from j on, which begin at `y`, `step` apart.
  void apply(int64_t j, T* y, int64_t step, int64_t columns) {
    const T tau = taus_[static_cast<size_t>(j)];
    if (tau == 0 || columns == 0) return;
    const int64_t rows = m_ - j;
    v_[0] = 1;
    for (int64_t i = 1; i < rows; ++i) v_[static_cast<size_t>(i)] = a_[(j + i) * n_ + j];
    std::fill(w_.begin(), w_.begin() + columns, T(0));
    for (int64_t i = 0; i < rows; ++i)
      add_scaled(w_.data(), v_[static_cast<size_t>(i)], y + i * step, columns);
    for (int64_t i = 0; i < rows; ++i)
      add_scaled(y + i * step, -tau * v_[static_cast<size_t>(i)], w_.data(), columns);
  }

  T* const a_;
  const int64_t m_, n_;
  std::vector<T> taus_, v_, w_;
};

}  // namespace tenon::cpu
