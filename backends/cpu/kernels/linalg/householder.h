// Blocks of Householder reflectors whose products are products of matrices: P_1 ... P_b =
// 1 - V T V^T with an upper triangular T (Schreiber and Van Loan, "A storage-efficient WY
// representation for products of Householder transformations", 1989). One matrix on the calling
// thread, as in reflectors.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/linalg/view.h"

namespace tenon::cpu {

// How many columns are reduced before the rest of the matrix is updated.
inline constexpr int64_t kReflectorPanel = 32;

// Makes the contiguous x (n) into v except v[0], whose place gets the only element of H x that is
// not 0, as make_reflector does. Returns tau.
template <class T>
T reflect(T* x, int64_t n);
// The same, but the element that stays is the last one.
template <class T>
T reflect_last(T* x, int64_t n);

template <class T>
class ReflectorBlock {
 public:
  // For `count` reflectors, which change the rows [first, first + length).
  ReflectorBlock(int64_t first, int64_t length, int64_t count);

  int64_t first() const { return first_; }
  int64_t length() const { return length_; }
  int64_t count() const { return count_; }
  // The vector of reflector i, all `length` elements of it.
  T* vector(int64_t i) { return v_.data() + i * length_; }
  T& tau(int64_t i) { return taus_[static_cast<size_t>(i)]; }

  // Makes T, once vectors [begin, end) are there.
  void close(int64_t begin, int64_t end);
  void close() { close(0, count_); }
  // y (length, columns) = Q y, or Q^T y. Rows of y are contiguous.
  void apply(MatrixView<T> y, int64_t columns, bool turned) const;
  // y (rows, length) = y Q, or y Q^T.
  void apply_right(MatrixView<T> y, int64_t rows, bool turned) const;

 private:
  MatrixView<const T> vectors() const { return {v_.data() + begin_ * length_, length_, 1}; }

  int64_t first_, length_, count_;
  int64_t begin_ = 0, end_ = 0;  // what T is of
  std::vector<T> v_, taus_, t_;
};

template <class T>
using ReflectorBlocks = std::vector<ReflectorBlock<T>>;

// Decomposes a (m, n): its upper triangle becomes R, and what is below has no meaning.
template <class T>
ReflectorBlocks<T> blocked_qr(T* a, int64_t m, int64_t n);
// y (m, columns) = Q y; `unit` says that y is a unit matrix.
template <class T>
void apply_all(const ReflectorBlocks<T>& blocks, T* y, int64_t columns, bool unit);
// q (n, n), whose rows are `stride` apart, = Q^T
template <class T>
void turned_product(const ReflectorBlocks<T>& blocks, int64_t n, T* q, int64_t stride);

extern template class ReflectorBlock<float>;
extern template class ReflectorBlock<double>;

}  // namespace tenon::cpu
