#include "kernels/linalg/tridiagonal.h"

#include <limits>
#include <utility>

#include "kernels/linalg/gemm.h"
#include "kernels/linalg/reflectors.h"
#include "simd/packet.h"

namespace tenon::cpu {
namespace {

// Rows of the lower triangle that are updated at once, and the size up to which each reflector
// updates them.
constexpr int64_t kUpdatedRows = 128, kUpdatedAtOnce = 48;

// y (n) = a x, of which only the lower triangle is read, once: four rows together.
template <class T>
void multiply_symmetric(const T* a, int64_t step, int64_t n, const T* x, T* y) {
  std::fill(y, y + n, T(0));
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const T* const rows[4] = {a + i * step, a + (i + 1) * step, a + (i + 2) * step,
                              a + (i + 3) * step};
    Vec<T> sums[4]{}, factors[4];
    for (int r = 0; r < 4; ++r) factors[r] = splat(x[i + r]);
    for_lanes<T>(i, [&](int64_t j, auto part) {
      const Vec<T> other = load(x + j, part);
      Vec<T> sum = load(y + j, part);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        const Vec<T> v = load(rows[r] + j, part);
        sums[r] += v * other;
        sum += v * factors[r];
      }
      store(y + j, sum, part);
    });
    for (int64_t r = 0; r < 4; ++r) {
      T sum = sum_lanes<T>(sums[r]);
      for (int64_t c = 0; c < 4; ++c) sum += (c <= r ? rows[r][i + c] : rows[c][i + r]) * x[i + c];
      y[i + r] = sum;
    }
  }
  for (; i < n; ++i) {
    T sum = a[i * step + i] * x[i];
    for (int64_t j = 0; j < i; ++j) {
      const T value = a[i * step + j];
      sum += value * x[j];
      y[j] += value * x[i];
    }
    y[i] = sum;
  }
}

// A panel of the last rows of the leading block of `size` rows. The panel's reflectors change the
// rest of the matrix only after the last step, by - L^T R, where L has the rows v, w, v, w … and R
// the rows w, v, w, v …
template <class T>
class TridiagonalPanel {
 public:
  TridiagonalPanel(T* a, int64_t n, int64_t size, int64_t count)
      : a_(a), n_(n), size_(size), block_(0, size - 1, count) {
    const bool at_once = size <= kUpdatedAtOnce;
    left_.resize(static_cast<size_t>((at_once ? 1 : 2 * count) * size));
    if (at_once) return;
    right_.resize(left_.size());
    few_.resize(static_cast<size_t>(2 * count));
  }

  ReflectorBlock<T> reduce(double* diagonal, double* beside) {
    const bool at_once = size_ <= kUpdatedAtOnce;
    for (int64_t s = 0; s < block_.count(); ++s) {
      const int64_t i = size_ - 1 - s;
      if (!at_once) catch_up(s, i);
      const T tau = block_.tau(s) = reduce_row(i, block_.vector(s), diagonal, beside);
      if (tau != 0) at_once ? update(tau, block_.vector(s), i) : delay(s, tau, block_.vector(s), i);
    }
    block_.close();
    if (at_once) return std::move(block_);
    const int64_t rest = size_ - block_.count(), terms = 2 * block_.count();
    for (int64_t i = 0; i < rest; i += kUpdatedRows) {
      const int64_t rows = std::min(kUpdatedRows, rest - i);
      add_product<T>(rows, i + rows, terms, -1, {left_.data() + i, 1, size_},
                     {right_.data(), size_, 1}, {a_ + i * n_, n_, 1});
    }
    return std::move(block_);
  }

 private:
  // Applies the delayed updates of the steps before s to row i, which step s reduces.
  void catch_up(int64_t s, int64_t i) {
    const MatrixView<const T> left{left_.data(), size_, 1}, right{right_.data(), size_, 1};
    for (int64_t q = 0; q < 2 * s; ++q) few_[static_cast<size_t>(q)] = right(q, i);
    add_product<T>(i + 1, 2 * s, -1, left.turned(), few_.data(), a_ + i * n_);
  }
  T reduce_row(int64_t i, T* v, double* diagonal, double* beside) {
    T* const row = a_ + i * n_;
    diagonal[i] = static_cast<double>(row[i]);
    const T tau = reflect_last(row, i);
    beside[i - 1] = static_cast<double>(row[i - 1]);
    std::copy(row, row + i - 1, v);
    v[i - 1] = 1;
    return tau;
  }
  // Subtracts v w^T + w v^T from the leading i rows.
  void update(T tau, const T* v, int64_t i) {
    T* const w = left_.data();
    multiply_symmetric(a_, n_, i, v, w);
    finish(tau, v, w, i);
    for (int64_t r = 0; r < i; ++r) {
      T* const row = a_ + r * n_;
      for (int64_t c = 0; c <= r; ++c) row[c] -= v[r] * w[c] + w[r] * v[c];
    }
  }
  // Keeps v and w, by which `catch_up` and the end of `reduce` do the same later.
  void delay(int64_t s, T tau, const T* v, int64_t i) {
    const MatrixView<T> left{left_.data(), size_, 1}, right{right_.data(), size_, 1};
    T* const w = &left(2 * s + 1, 0);
    multiply_symmetric(a_, n_, i, v, w);
    std::fill(few_.begin(), few_.end(), T(0));
    add_product<T>(2 * s, i, 1, right, v, few_.data());
    add_product<T>(i, 2 * s, -1, left.turned(), few_.data(), w);
    finish(tau, v, w, i);
    std::copy(v, v + i, &left(2 * s, 0));
    std::copy(v, v + i, &right(2 * s + 1, 0));
    std::copy(w, w + i, &right(2 * s, 0));
  }
  // From w = A v.
  static void finish(T tau, const T* v, T* w, int64_t i) {
    for (int64_t j = 0; j < i; ++j) w[j] *= tau;
    add_scaled(w, -tau / 2 * dot(w, v, i), v, i);
  }

  T* const a_;
  const int64_t n_, size_;
  ReflectorBlock<T> block_;
  std::vector<T> left_, right_, few_;
};

// The matrix is scaled, so elements beside the diagonal that are smaller than this are rounding
// errors and count as 0. The product of two larger ones does not underflow to 0, which would end a
// step too early.
constexpr double kVanished = 0x1p-511;
// The reciprocal of a larger one, and its products with elements, do not overflow.
constexpr double kInvertible = 1e-280;

// The eigenvalue of the last two rows and columns up to `end` that is closer to d[end].
double shift_of(const double* d, const double* e, int64_t end) {
  const double half = (d[end - 1] - d[end]) / 2, off = e[end - 1];
  if (half == 0) return d[end] - std::abs(off);
  return d[end] - off / (half + std::copysign(std::hypot(half, off), half)) * off;
}

// One step on rows `start` to `end`.
template <class T>
void qr_step(double* d, double* e, int64_t start, int64_t end, RotationQueue<T>& rotations) {
  double x = d[start] - shift_of(d, e, end), z = e[start];
  rotations.begin(start);
  for (int64_t k = start; k < end && z != 0; ++k) {
    // The rotation turns (x, z) into (c x - s z, 0). `next` does not wait for the root.
    const double squares = x * x + z * z, a = d[k], b = e[k], f = d[k + 1];
    double r, c, s, next;
    if (squares > kInvertible) {
      const double inverse = 1 / squares;
      r = std::sqrt(squares);
      c = x / r, s = -z / r;
      next = (x * x - z * z) * inverse * b - x * z * inverse * (a - f);
    } else {
      r = std::hypot(x, z), c = x / r, s = -z / r;
      next = s * (c * a - s * b) + c * (c * b - s * f);
    }
    if (k > start) e[k - 1] = r;
    d[k] = c * (c * a - s * b) - s * (c * b - s * f);
    d[k + 1] = s * (s * a + c * b) + c * (s * b + c * f);
    e[k] = x = next;
    if (k + 1 < end) {
      z = -s * e[k + 1];
      e[k + 1] *= c;
    }
    rotations.add(static_cast<T>(c), static_cast<T>(s));
  }
}

}  // namespace

template <class T>
ReflectorBlocks<T> make_tridiagonal(T* a, int64_t n, double* diagonal, double* beside) {
  ReflectorBlocks<T> blocks;
  int64_t size = n;
  while (size > 1) {
    const int64_t count = std::min(kReflectorPanel, size - 1);
    blocks.push_back(TridiagonalPanel<T>(a, n, size, count).reduce(diagonal, beside));
    size -= count;
  }
  if (n > 0) diagonal[0] = static_cast<double>(a[0]);
  return blocks;
}

template <class T>
bool diagonalize(double* d, double* e, int64_t n, double epsilon, RotationQueue<T>& rotations) {
  int64_t steps = 0, end = n - 1;
  while (end > 0) {
    for (int64_t i = 0; i < end; ++i)
      if (std::abs(e[i]) <= epsilon * (std::abs(d[i]) + std::abs(d[i + 1])) ||
          std::abs(e[i]) < kVanished)
        e[i] = 0;
    while (end > 0 && e[end - 1] == 0) --end;
    if (end <= 0) break;
    if (++steps > 30 * n) return false;
    int64_t start = end - 1;
    while (start > 0 && e[start - 1] != 0) --start;
    qr_step(d, e, start, end, rotations);
  }
  rotations.flush();
  return true;
}

template ReflectorBlocks<float> make_tridiagonal(float*, int64_t, double*, double*);
template ReflectorBlocks<double> make_tridiagonal(double*, int64_t, double*, double*);
template bool diagonalize(double*, double*, int64_t, double, RotationQueue<float>&);
template bool diagonalize(double*, double*, int64_t, double, RotationQueue<double>&);

}  // namespace tenon::cpu
