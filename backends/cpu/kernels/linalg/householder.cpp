#include "kernels/linalg/householder.h"

#include <limits>

#include "kernels/linalg/gemm.h"
#include "kernels/linalg/reflectors.h"
#include "simd/packet.h"

namespace tenon::cpu {
namespace {

// Columns whose reflectors are applied one by one, and the length up to which all are: smaller
// products gain nothing.
constexpr int64_t kOneByOne = 8, kShort = 16;

// The norm of the contiguous x, whose squares do not overflow.
template <class T>
double length_of(const T* x, int64_t n) {
  constexpr double kSafe = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon() * 1e3;
  const double squares = sums_of_row<1, T>(n, [x](int64_t i, auto part, Vec<T>* sums) {
    const Vec<T> v = load(x + i, part);
    sums[0] += v * v;
  })[0];
  return squares < kSafe ? norm_of(x, n, 1) : std::sqrt(squares);
}

template <class T>
T reflect_parts(T& pivot, T* rest, int64_t n) {
  const double below = length_of(rest, n);
  if (below == 0) {
    std::fill(rest, rest + n, T(0));
    return 0;
  }
  const double alpha = pivot, beta = -std::copysign(std::hypot(alpha, below), alpha);
  const double inverse = 1 / (alpha - beta);
  for (int64_t i = 0; i < n; ++i) rest[i] = static_cast<T>(rest[i] * inverse);
  pivot = static_cast<T>(beta);
  return static_cast<T>((beta - alpha) / beta);
}

// y (length, columns) = (1 - tau v v^T) y, a column at a time.
template <class T>
void apply_to_rows(const T* v, T tau, int64_t length, MatrixView<T> y, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c) {
    T sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += v[i] * y(i, c);
    for (int64_t i = 0; i < length; ++i) y(i, c) -= tau * sum * v[i];
  }
}

// Columns [begin, end) of a panel of a (m, n) lie in the vectors of `block`, where reflectors take
// their places; R goes to a.
template <class T>
void reduce_panel(ReflectorBlock<T>& block, int64_t begin, int64_t end, T* a, int64_t n) {
  const int64_t first = block.first(), length = block.length();
  if (end - begin > kOneByOne) {
    const int64_t middle = begin + (end - begin) / 2;
    reduce_panel(block, begin, middle, a, n);
    block.close(begin, middle);
    block.apply_right({block.vector(middle), length, 1}, end - middle, false);
    return reduce_panel(block, middle, end, a, n);
  }
  for (int64_t j = begin; j < end; ++j) {
    T* const column = block.vector(j);
    const T tau = block.tau(j) = reflect(column + j, length - j);
    for (int64_t i = 0; i <= j; ++i) {
      a[(first + i) * n + first + j] = column[i];
      column[i] = i == j;
    }
    for (int64_t c = j + 1; c < end && tau != 0; ++c) {
      T* const other = block.vector(c) + j;
      add_scaled(other, -tau * dot(column + j, other, length - j), column + j, length - j);
    }
  }
}

}  // namespace

template <class T>
T reflect(T* x, int64_t n) {
  return reflect_parts(x[0], x + 1, n - 1);
}
template <class T>
T reflect_last(T* x, int64_t n) {
  return reflect_parts(x[n - 1], x, n - 1);
}

template <class T>
ReflectorBlock<T>::ReflectorBlock(int64_t first, int64_t length, int64_t count)
    : first_(first), length_(length), count_(count) {
  v_.resize(static_cast<size_t>(count * length)), taus_.resize(static_cast<size_t>(count));
}

template <class T>
void ReflectorBlock<T>::close(int64_t begin, int64_t end) {
  begin_ = begin, end_ = end;
  if (length_ <= kShort) return;
  const int64_t n = end - begin;
  std::vector<T> products(static_cast<size_t>(n * n));
  t_.assign(static_cast<size_t>(n * n), T(0));
  add_product<T>(n, n, length_, 1, vectors(), vectors().turned(), {products.data(), n, 1});
  // Column j is -tau_j T V^T v_j above the diagonal.
  const MatrixView<T> t{t_.data(), n, 1}, g{products.data(), n, 1};
  for (int64_t j = 0; j < n; ++j) {
    t(j, j) = tau(begin + j);
    for (int64_t i = 0; i < j; ++i) {
      T sum = 0;
      for (int64_t l = i; l < j; ++l) sum += t(i, l) * g(l, j);
      t(i, j) = -t(j, j) * sum;
    }
  }
}

template <class T>
void ReflectorBlock<T>::apply(MatrixView<T> y, int64_t columns, bool turned) const {
  const int64_t n = end_ - begin_;
  if (length_ <= kShort) {
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = turned ? begin_ + step : end_ - 1 - step;
      apply_to_rows(v_.data() + i * length_, taus_[static_cast<size_t>(i)], length_, y, columns);
    }
    return;
  }
  std::vector<T> w(static_cast<size_t>(2 * n * columns));
  const MatrixView<T> first{w.data(), columns, 1}, second{w.data() + n * columns, columns, 1};
  const MatrixView<const T> t{t_.data(), n, 1};
  add_product<T>(n, columns, length_, 1, vectors(), y, first);
  add_product<T>(n, columns, n, 1, turned ? t.turned() : t, first, second);
  add_product<T>(length_, columns, n, -1, vectors().turned(), second, y);
}

template <class T>
void ReflectorBlock<T>::apply_right(MatrixView<T> y, int64_t rows, bool turned) const {
  const int64_t n = end_ - begin_;
  if (length_ <= kShort) {
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = turned ? end_ - 1 - step : begin_ + step;
      const T *const v = v_.data() + i * length_, tau = taus_[static_cast<size_t>(i)];
      for (int64_t r = 0; r < rows && tau != 0; ++r)
        add_scaled(&y(r, 0), -tau * dot(&y(r, 0), v, length_), v, length_);
    }
    return;
  }
  std::vector<T> w(static_cast<size_t>(2 * n * rows));
  const MatrixView<T> first{w.data(), n, 1}, second{w.data() + n * rows, n, 1};
  const MatrixView<const T> t{t_.data(), n, 1};
  add_product<T>(rows, n, length_, 1, y, vectors().turned(), first);
  add_product<T>(rows, n, n, 1, first, turned ? t.turned() : t, second);
  add_product<T>(rows, length_, n, -1, second, vectors(), y);
}

template <class T>
ReflectorBlocks<T> blocked_qr(T* a, int64_t m, int64_t n) {
  ReflectorBlocks<T> blocks;
  const int64_t k = std::min(m, n);
  for (int64_t j = 0; j < k; j += kReflectorPanel) {
    ReflectorBlock<T>& block = blocks.emplace_back(j, m - j, std::min(kReflectorPanel, k - j));
    const int64_t count = block.count();
    for (int64_t i = j; i < m; ++i)
      for (int64_t c = 0; c < count; ++c) block.vector(c)[i - j] = a[i * n + j + c];
    reduce_panel(block, 0, count, a, n);
    block.close();
    block.apply({a + j * n + j + count, n, 1}, n - j - count, true);
  }
  return blocks;
}

template <class T>
void apply_all(const ReflectorBlocks<T>& blocks, T* y, int64_t columns, bool unit) {
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    // Columns in front of the block's are still those of a unit matrix.
    const int64_t first = block->first(), skipped = unit ? std::min(first, columns) : 0;
    block->apply({y + first * columns + skipped, columns, 1}, columns - skipped, false);
  }
}

template <class T>
void turned_product(const ReflectorBlocks<T>& blocks, int64_t n, T* q, int64_t stride) {
  std::fill(q, q + n * stride, T(0));
  for (int64_t i = 0; i < n; ++i) q[i * stride + i] = 1;
  // Of blocks later in the product, rows and columns are among those of the earlier ones.
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block)
    block->apply_right({q + block->first() * (stride + 1), stride, 1}, block->length(), true);
}

template class ReflectorBlock<float>;
template class ReflectorBlock<double>;
template float reflect(float*, int64_t);
template double reflect(double*, int64_t);
template float reflect_last(float*, int64_t);
template double reflect_last(double*, int64_t);
template ReflectorBlocks<float> blocked_qr(float*, int64_t, int64_t);
template ReflectorBlocks<double> blocked_qr(double*, int64_t, int64_t);
template void apply_all(const ReflectorBlocks<float>&, float*, int64_t, bool);
template void apply_all(const ReflectorBlocks<double>&, double*, int64_t, bool);
template void turned_product(const ReflectorBlocks<float>&, int64_t, float*, int64_t);
template void turned_product(const ReflectorBlocks<double>&, int64_t, double*, int64_t);

}  // namespace tenon::cpu
