// Orthogonal decompositions of one matrix on the calling thread. Eigen's take a minute to compile
// for each dtype and level of CPU; these are the textbook's, made of loops over rows. Matrices are
// row-major without gaps, and scaled while they are decomposed, so that squares neither overflow
// nor vanish.
#pragma once

#include <cstdint>

namespace tenon::cpu {

// x (m, n) = q r, with k columns of q and k rows of r: min(m, n) or m. Either may be null.
template <class T>
void decompose_qr(const T* x, int64_t m, int64_t n, int64_t k, T* q, T* r);

// What of the singular value decomposition x (m, n) = u diag(s) vh is wanted: s alone, min(m, n)
// columns of u and rows of vh too, or all of them.
enum class SvdParts { values, thin, full };
// Returns false where the iteration does not converge. x is finite.
template <class T>
bool decompose_svd(const T* x, int64_t m, int64_t n, SvdParts parts, T* u, T* s, T* vh);

// The eigenvalues w of the symmetric matrix with x's lower triangle, in rising order, and the
// eigenvectors in the columns of v, which may be null. Returns false where the iteration does not
// converge. The triangle is finite.
template <class T>
bool decompose_eigh(const T* x, int64_t n, T* w, T* v);

}  // namespace tenon::cpu
