// Products of matrices and vectors, and distances. Every function throws a ValueError for an
// undefined tensor, and those that multiply matrices throw a DTypeError for bool. Different dtypes
// are promoted. Whole numbers keep their dtype, in which sums wrap around; their products are slow,
// as no backend has a kernel for them. Distances, angles, covariances and normalize convert
// integers to f32.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <tenon/core/number.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Returns the matrix product of a (…, m, k) and b (…, k, n), of shape (…, m, n), as torch.matmul
// does. Dimensions before the last two are batches and broadcast. A vector `a` is one row and a
// vector `b` one column; the result is without that dimension. Throws a ShapeError that names both
// shapes if they do not fit, or if a tensor has no dimensions.
TENON_API Tensor matmul(const Tensor& a, const Tensor& b);

// Returns the product of the matrices a (m, k) and b (k, n), of shape (m, n). Throws a ShapeError
// for any other shapes.
TENON_API Tensor mm(const Tensor& a, const Tensor& b);

// Returns the products of the matrices in a (batch, m, k) and b (batch, k, n), of shape
// (batch, m, n). Throws a ShapeError for any other shapes.
TENON_API Tensor bmm(const Tensor& a, const Tensor& b);

// Returns the product of the matrix a (m, k) and the vector b (k), of shape (m). Throws a
// ShapeError for any other shapes.
TENON_API Tensor mv(const Tensor& a, const Tensor& b);

// Returns the sum of the products of the elements of two vectors of one length, as a scalar; any
// dtype but bool. Throws a ShapeError for any other shapes.
TENON_API Tensor dot(const Tensor& a, const Tensor& b);
// Returns dot(a, b); the two differ for complex numbers only.
TENON_API Tensor vdot(const Tensor& a, const Tensor& b);
// Returns the sums of products along the last dimensions of a (…, k) and b (…, k). The result has
// all dimensions of a before its last, then those of b. A scalar multiplies the other tensor.
// Throws a ShapeError if the last dimensions differ.
TENON_API Tensor inner(const Tensor& a, const Tensor& b);
// Returns the products of all pairs of elements of the vectors a (m) and b (n), of shape (m, n);
// any dtype. Throws a ShapeError for any other shapes.
TENON_API Tensor outer(const Tensor& a, const Tensor& b);

// Returns beta input + alpha a b for matrices a (m, k) and b (k, n), of shape (m, n), to which
// input broadcasts. If beta is 0, the values of input do not matter, even if they are NaN. Throws a
// ShapeError for other shapes.
TENON_API Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, Number beta = 1,
                       Number alpha = 1);
// Returns beta input + alpha a b for a matrix a (m, k) and a vector b (k), of shape (m). beta and
// errors are those of addmm.
TENON_API Tensor addmv(const Tensor& input, const Tensor& a, const Tensor& b, Number beta = 1,
                       Number alpha = 1);
// Returns beta input + alpha times the sum of the products of the matrices in a (batch, m, k) and
// b (batch, k, n), of shape (m, n). beta and errors are those of addmm.
TENON_API Tensor addbmm(const Tensor& input, const Tensor& a, const Tensor& b, Number beta = 1,
                        Number alpha = 1);
// Returns beta input + alpha a b for each pair of matrices in a (batch, m, k) and b (batch, k, n),
// of shape (batch, m, n). beta and errors are those of addmm.
TENON_API Tensor baddbmm(const Tensor& input, const Tensor& a, const Tensor& b, Number beta = 1,
                         Number alpha = 1);

// Returns sums of products that the equation names, as torch.einsum does: each operand has a letter
// for each of its dimensions, "bij,bjk->bik", and letters that are not in the result are summed
// over. A letter that an operand has twice takes its diagonal; "..." stands for any dimensions,
// which broadcast; without an arrow the result has the letters that occur once, in the order of the
// alphabet. Operands are multiplied from left to right. They have any dtype but bool. Throws a
// ValueError for an equation that cannot be read, and a ShapeError if it does not fit the operands.
TENON_API Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);
// Returns the sums of products over the last `dims` dimensions of a and the first `dims` of b. The
// result has all other dimensions of a, then those of b. Throws a ShapeError if these dimensions
// differ, a ValueError unless both tensors have as many, and a DTypeError for bool.
TENON_API Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims = 2);
// Returns the same over dims_a[i] of a and dims_b[i] of b. Throws a ValueError unless both list
// equally many dimensions, each once, and an IndexError for one that does not exist.
TENON_API Tensor tensordot(const Tensor& a, const Tensor& b, const Shape& dims_a,
                           const Shape& dims_b);
// Returns the Kronecker product: a with each element replaced by its product with b. It has the
// products of their sizes, where missing dimensions in front are 1, and any dtype. Throws a
// ShapeError for more than four dimensions.
TENON_API Tensor kron(const Tensor& a, const Tensor& b);
// Returns the cross products of vectors of three elements along `dim`, by default the first
// dimension of size 3; the others broadcast. Throws a ShapeError if `dim` has another size, and a
// DTypeError for bool.
TENON_API Tensor cross(const Tensor& a, const Tensor& b, std::optional<int64_t> dim = std::nullopt);
// Returns the matrices x (…, m, m) multiplied n times by themselves; n = 0 gives unit matrices, and
// a negative n powers of the inverses, for which inv is called. Throws a ShapeError unless they are
// square, and a DTypeError unless they are floating or n is 0.
TENON_API Tensor matrix_power(const Tensor& x, int64_t n);
// Returns the product of two or more matrices in the order that needs the fewest multiplications
// (Cormen et al., Introduction to Algorithms, 15.2); the first and the last may be vectors. Throws
// a ShapeError for shapes that do not fit, and a ValueError for less than two tensors.
TENON_API Tensor multi_dot(const std::vector<Tensor>& tensors);
// Returns the product of one or more matrices in the order of multi_dot. Throws a ShapeError for
// shapes that do not fit, and a ValueError without a matrix.
TENON_API Tensor chain_matmul(const std::vector<Tensor>& matrices);
// Returns the matrix of the powers x^(n - 1), …, x, 1 of the elements of a vector, a row an
// element, or 1, x, … if `increasing`: shape (length of x, n), where n is by default the length of
// x. Powers of integers and bool are i64. Throws a ShapeError unless x is a vector, and a
// ValueError for a negative n.
TENON_API Tensor vander(const Tensor& x, std::optional<int64_t> n = std::nullopt,
                        bool increasing = false);
// Returns the covariances of the variables in the rows of x (variables, observations), of shape
// (variables, variables), or () of a single one; of a vector, its variance. The sum over the
// observations is divided by n - correction. fweights (observations) are whole numbers that say how
// often each observation counts, aweights (observations) how important it is. Throws a ShapeError
// for other shapes, and a DTypeError for fweights that are not integers or aweights that are not
// floating.
TENON_API Tensor cov(const Tensor& x, int64_t correction = 1, const Tensor& fweights = Tensor(),
                     const Tensor& aweights = Tensor());
// Returns the correlation coefficients of the variables in the rows of x (variables, observations):
// cov divided by both standard deviations, in [-1, 1], of the shape of cov. Throws a ShapeError for
// other shapes.
TENON_API Tensor corrcoef(const Tensor& x);

// ---- distances ----

// Returns the p-norm of the differences of all pairs of rows of a (…, m, k) and b (…, n, k): shape
// (…, m, n); batches broadcast. p may be 0, which counts the elements that differ, or infinite. For
// p = 2 and more than 25 rows the squares come from a product of matrices, which is faster and less
// exact; `compute_mode` "use_mm_for_euclid_dist" or "donot_use_mm_for_euclid_dist" says so for any
// number of rows. The gradient is 0 where the distance is. Throws a ShapeError for other shapes and
// a ValueError for a negative p or another word.
TENON_API Tensor cdist(const Tensor& a, const Tensor& b, double p = 2,
                       std::string_view compute_mode = "use_mm_for_euclid_dist_if_necessary");
// Returns the p-norm of a - b + eps along the last dimension of the shape to which a and b
// broadcast, without it unless keepdim. Throws a ShapeError if they do not broadcast, and otherwise
// as norm.
TENON_API Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p = 2,
                                   double eps = 1e-6, bool keepdim = false);
// Returns the cosine of the angle between a and b along `dim` of the shape to which they broadcast,
// without it: the sum of products divided by both norms, each of which counts as at least eps.
// Throws a ShapeError if they do not broadcast, and an IndexError if there is no such dimension.
TENON_API Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim = 1,
                                   double eps = 1e-8);
// Returns x divided by its p-norm along `dim`, which counts as at least eps. Throws an IndexError
// if x has no such dimension, and otherwise as norm.
TENON_API Tensor normalize(const Tensor& x, double p = 2, const Shape& dim = 1, double eps = 1e-12);

// Returns x W^T + b of shape (…, out) for x (…, in), a weight W (out, in) and a bias b (out), which
// may be undefined. Throws a DTypeError unless all have one floating dtype, and a ShapeError if the
// shapes do not fit.
TENON_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());

// Returns relu(linear(x, weight, bias)), in one step if the device's plugin offers that. Shapes and
// errors are those of linear.
TENON_API Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());

// Sets how exactly devices multiply f32 in matrix products and convolutions, as
// torch.set_float32_matmul_precision does. "highest", the default, multiplies in f32. "high" lets a
// device round the factors to TF32, which has 10 bits of mantissa and is several times as fast on
// GPUs that have it. The setting applies to calls of all threads from now on; a gradient is
// computed with the precision of its forward call. Throws a ValueError for any other word.
TENON_API void set_float32_matmul_precision(std::string_view precision);

// Returns the current setting, "highest" or "high".
TENON_API std::string_view float32_matmul_precision();

}  // namespace tenon
