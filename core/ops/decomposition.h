// Decompositions of matrices and what is solved with them, as in torch.linalg.
//
// Every function takes matrices (…, m, n) in f32 or f64; dimensions before the last two are
// batches. Each throws a ValueError for an undefined tensor, a DTypeError for another dtype (f16
// and bf16 have to be converted first, as in PyTorch), and a ShapeError for a tensor of less than
// two dimensions or, where square matrices (…, n, n) are asked for, for others. Batches and
// matrices may be empty.
//
// Work is queued, so what depends on values is thrown when a result is read: a ValueError for a
// matrix that is singular or not positive definite, or that an iteration cannot take because it has
// NaN or infinities. It names the matrix of the batch. Where the plugin of a device lacks the
// operator of a function (docs/operators.md), that operator is computed on the CPU, with copies
// there and back, even without TENON_CPU_FALLBACK.
//
// Eigenvectors and singular vectors are unique up to their signs, or up to a rotation where values
// are equal; there their gradients are not finite. Losses should not depend on such a choice.
#pragma once

#include <optional>
#include <string_view>

#include <tenon/core/tensor.h>

namespace tenon {

// ---- positive definite matrices ----

// Returns the lower triangular L of symmetric positive definite matrices x = L L^T, or the upper
// triangular L^T if `upper`. Only that triangle of x is read. Throws a ValueError for a matrix that
// is not positive definite. The gradient is that of Murray, "Differentiation of the Cholesky
// decomposition", 2016.
TENON_API Tensor cholesky(const Tensor& x, bool upper = false);
// Returns the solution X (…, n, k) of A X = B, given B (…, n, k) and the factor of A (…, n, n) that
// cholesky returned with this `upper`. Batches broadcast.
TENON_API Tensor cholesky_solve(const Tensor& b, const Tensor& l, bool upper = false);

// ---- linear systems ----

// Returns the solution X of A X = B, or of X A = B unless `left`, for square matrices A (…, n, n)
// and B (…, n, k), or (…, k, n), whose shape X has. Batches broadcast. B may also be a vector (n),
// or vectors (…, n) for a batch of A with as many; then `left` has to be true. Throws a ValueError
// for a singular matrix: a pivot of the LU decomposition is exactly 0.
TENON_API Tensor solve(const Tensor& a, const Tensor& b, bool left = true);
// Returns the solution X of A X = B, or of X A = B unless `left`, for an upper or lower triangular
// A (…, n, n) and B (…, n, k), or (…, k, n). The other triangle of A is not read, nor is its
// diagonal if `unitriangular`: it counts as 1. Batches broadcast. A zero on the diagonal gives
// infinities or NaN.
TENON_API Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left = true,
                                  bool unitriangular = false);
// Returns the inverses (…, n, n) of square matrices. Throws a ValueError for a singular matrix.
// `solve` is faster and more exact than a product with an inverse.
TENON_API Tensor inv(const Tensor& x);
// Returns inv(x), by another name that PyTorch has for it.
TENON_API Tensor inverse(const Tensor& x);

// The factors of P L U: LU (…, m, n) has U on and above its diagonal and below it L, whose own
// diagonal is 1. The pivots (…, min(m, n)) are i32 and counted from 1: row i was exchanged with row
// pivots[i].
struct LUFactor {
  Tensor LU, pivots;
};
// Returns the LU decomposition with row pivots of matrices (…, m, n); of a singular matrix U has
// zeros on its diagonal.
TENON_API LUFactor lu_factor(const Tensor& x);
// Returns the solution X of A X = B, or of X A = B unless `left`, or of these for A^T if `adjoint`,
// given what lu_factor returned for the square A. B is (…, n, k), or (…, k, n); batches broadcast.
// Throws an IndexError for pivots outside [1, n] when the result is read, and a DTypeError unless
// they are i32.
TENON_API Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left = true,
                          bool adjoint = false);

// ---- determinants ----

// Returns the determinants (…) of square matrices; that of an empty one is 1. The gradient of a
// singular matrix is that of one close to it; those of higher order need different singular values
// there.
TENON_API Tensor det(const Tensor& x);
// The sign of a determinant, 1, -1 or 0, and the logarithm of its absolute value.
struct SlogDet {
  Tensor sign, logabsdet;
};
// Returns the determinants of square matrices as sign exp(logabsdet), both of shape (…); they are 0
// and -infinity for a singular one. The sign has no gradient. Of a batch, the gradients of the
// singular matrices alone have infinities and NaN.
TENON_API SlogDet slogdet(const Tensor& x);
// Returns the logarithms (…) of the determinants of square matrices: NaN for a negative
// determinant, -infinity for 0.
TENON_API Tensor logdet(const Tensor& x);

// ---- orthogonal factors ----

// What qr returns: x = Q R.
struct QR {
  Tensor Q, R;
};
// Returns x = Q R with orthonormal columns of Q and an upper triangular R. With k = min(m, n), Q is
// (…, m, k) and R (…, k, n) for `mode` "reduced", and (…, m, m) and (…, m, n) for "complete"; "r"
// gives the R of "reduced" and a Q of shape (0). The gradients are those of Seeger et al.,
// "Auto-differentiating linear algebra", 2017, and Roberts and Roberts, "QR and LQ decomposition
// matrix backpropagation algorithms", 2020. A gradient needs k independent first columns, and m <=
// n for "complete". Throws a ValueError for another mode.
TENON_API QR qr(const Tensor& x, std::string_view mode = "reduced");

// What svd returns: x = U diag(S) Vh.
struct SVD {
  Tensor U, S, Vh;
};
// Returns the singular value decomposition x = U diag(S) Vh, with S (…, k) in falling order. With k
// = min(m, n), U is (…, m, m) and Vh (…, n, n), or (…, m, k) and (…, k, n) unless `full_matrices`;
// the gradients of vectors beyond the first k are ignored. The gradient is that of Townsend,
// "Differentiating the singular value decomposition", 2016.
TENON_API SVD svd(const Tensor& x, bool full_matrices = true);
// Returns the singular values (…, min(m, n)) alone, in falling order. Their gradient is finite
// where some are equal.
TENON_API Tensor svdvals(const Tensor& x);

// What eigh returns.
struct Eigh {
  Tensor eigenvalues, eigenvectors;
};
// Returns the eigenvalues (…, n) of symmetric matrices in rising order, and the orthonormal
// eigenvectors in the columns of (…, n, n). Only the lower triangle is read, or the upper one if
// `UPLO` is "U". The gradient is that of Giles, "An extended collection of matrix derivative
// results", 2008. Throws a ValueError for another UPLO.
TENON_API Eigh eigh(const Tensor& x, std::string_view UPLO = "L");
// Returns the eigenvalues (…, n) alone, in rising order. Their gradient is finite where some are
// equal. Throws as eigh.
TENON_API Tensor eigvalsh(const Tensor& x, std::string_view UPLO = "L");

// ---- matrices of any rank ----

// The options of pinv and matrix_rank.
struct RankOptions {
  // Singular values of at most max(atol, rtol largest) count as 0. By default atol is 0, and rtol
  // is 0 where an atol above 0 is given, otherwise max(m, n) times the dtype's epsilon. Neither may
  // be negative.
  std::optional<double> atol = {}, rtol = {};
  bool hermitian =
      false;  // whether the matrices are symmetric, which is faster: only a lower half is read
};
// Returns the pseudoinverses (…, n, m), by singular values. The gradient is that of Golub and
// Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose
// variables separate", 1973, which takes the rank as constant. Throws a ValueError for a negative
// option, and a ShapeError for `hermitian` matrices that are not square.
TENON_API Tensor pinv(const Tensor& x, const RankOptions& options = {});
// Returns how many singular values of each matrix count as more than 0: i64 of shape (…). Throws as
// pinv.
TENON_API Tensor matrix_rank(const Tensor& x, const RankOptions& options = {});

// What lstsq returns: the solution (…, n, k), the sums of squares of A X - B (…, k), or shape (0)
// unless m > n, the rank of A (…) in i64, and its singular values (…, min(m, n)).
struct Lstsq {
  Tensor solution, residuals, rank, singular_values;
};
// Returns the X of the smallest norm that minimizes the norm of A X - B, for A (…, m, n) and B (…,
// m, k), or vectors (…, m) for a batch of A with as many. Batches broadcast. Singular values of at
// most rcond times the largest count as 0; by default rcond is max(m, n) times the dtype's epsilon.
// All of PyTorch's drivers, "gels", "gelsy", "gelsd" and "gelss", are computed by singular values;
// unlike PyTorch's, the residuals are there for matrices of any rank, so that nothing has to wait
// for values. Throws a ValueError for another driver or a negative rcond.
TENON_API Lstsq lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond = {},
                      std::string_view driver = "gelsy");

// ---- norms of matrices ----

// Returns the norm of the matrices in two dimensions of x: "fro", the root of the sum of squares,
// or "nuc", the sum of the singular values. The result has the other dimensions of x, or with
// keepdim also these two with size 1. "fro" takes every floating dtype. Throws a ValueError for
// another word, or unless `dims` names two dimensions, and an IndexError for one that x does not
// have.
TENON_API Tensor matrix_norm(const Tensor& x, std::string_view ord = "fro",
                             const Shape& dims = {-2, -1}, bool keepdim = false);
// The same with a number: the largest (ord 2) or smallest (-2) singular value, the largest (1) or
// smallest (-1) sum of absolute values of a column, or of a row (plus or minus infinity). Sums take
// every floating dtype. Throws a ValueError for another order, or if a smallest is wanted of none.
TENON_API Tensor matrix_norm(const Tensor& x, double ord, const Shape& dims = {-2, -1},
                             bool keepdim = false);
// Returns the condition numbers (…): the quotient of the largest and the smallest singular value (p
// = 2), or its inverse (-2), for matrices of any shape; with another order of matrix_norm, the norm
// times that of the inverse of square matrices. For a singular matrix it is infinite in all orders
// but 2 and -2 (there a quotient with 0), and 0 for one without elements. Throws a ValueError for
// another order.
TENON_API Tensor cond(const Tensor& x, double p = 2);
// The same for square matrices with p "fro" or "nuc".
TENON_API Tensor cond(const Tensor& x, std::string_view p);

}  // namespace tenon
