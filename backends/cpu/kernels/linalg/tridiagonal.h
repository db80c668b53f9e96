// Symmetric matrices become tridiagonal, and tridiagonal ones diagonal.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/linalg/householder.h"
#include "kernels/linalg/rotations.h"

namespace tenon::cpu {

// The symmetric a (n, n), of which the lower triangle is read and overwritten, is Q T Q^T with a
// tridiagonal T. Half of the work is products with a vector, half is products of matrices
// (Dongarra, Hammarling and Sorensen, "Block reduction of matrices to condensed forms for
// eigenvalue computations", 1989). Writes the diagonal (n) and the elements beside it (n - 1);
// returns Q.
template <class T>
ReflectorBlocks<T> make_tridiagonal(T* a, int64_t n, double* diagonal, double* beside);

// QR steps with Wilkinson's shift until the tridiagonal matrix is diagonal to within `epsilon`
// (Golub and Van Loan, "Matrix Computations", 4th ed., 8.3). `rotations` gets those of the columns.
// Returns false where that takes too long.
template <class T>
bool diagonalize(double* d, double* e, int64_t n, double epsilon, RotationQueue<T>& rotations);

}  // namespace tenon::cpu
