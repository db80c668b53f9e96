// Square matrices become bidiagonal, and bidiagonal ones diagonal.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/linalg/householder.h"
#include "kernels/linalg/rotations.h"

namespace tenon::cpu {

// a (n, n) is U B V^T with an upper bidiagonal B: half of the work is products with a
// vector, half is products of matrices, as in make_tridiagonal. U and V are products of `left` and
// of `right`.
template <class T>
struct Bidiagonal {
  std::vector<double> diagonal, beside;
  ReflectorBlocks<T> left, right;
};
// Overwrites a.
template <class T>
Bidiagonal<T> make_bidiagonal(T* a, int64_t n);

// QR steps, without a shift where one would cost small singular values their digits, until the
// upper bidiagonal matrix is diagonal to within `epsilon` of each singular value (Demmel and Kahan,
// "Accurate singular values of bidiagonal matrices", 1990). `left` and `right` get the rotations of
// the columns of U and V. Returns false where that takes too long. Elements of d may be negative.
template <class T>
bool diagonalize(double* d, double* e, int64_t n, double epsilon, RotationQueue<T>& left,
                 RotationQueue<T>& right);

}  // namespace tenon::cpu
