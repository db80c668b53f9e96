// Norms of matrices, and condition numbers (core/ops/decomposition.h).
#include <cmath>
#include <limits>

#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/decomposition.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/linalg/matrices.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>

namespace tenon {

namespace {

// Two different dimensions of x, as numbers that are not negative: those of rows and columns.
Shape matrix_dims(const Tensor& x, const Shape& dims) {
  require_tensor("matrix_norm", x);
  const auto rank = static_cast<int64_t>(shape_of(x).size());
  if (rank < 2)
    throw ShapeError(
        fmt::format("matrix_norm: expects matrices (…, m, n), found shape {}", shape_of(x)));
  if (!is_floating_point(dtype_of(x)))
    throw DTypeError(fmt::format("matrix_norm: x must be floating, found {}; {}", dtype_of(x),
                                 conversion_to(DType::f32)));
  if (dims.size() != 2)
    throw ValueError(fmt::format("matrix_norm: dims must name two dimensions, found {}", dims));
  const Shape wrapped{wrap_dim(dims[0], rank, "matrix_norm"),
                      wrap_dim(dims[1], rank, "matrix_norm")};
  if (wrapped[0] == wrapped[1])
    throw ValueError(fmt::format("matrix_norm: dims must name two dimensions, found {}", dims));
  return wrapped;
}

// The singular values of the matrices in dimensions `dims`, in the last dimension.
Tensor values_of(const Tensor& x, const Shape& dims) { return svdvals(movedim(x, dims, {-2, -1})); }
// With dimensions of size 1 where the matrices were.
Tensor kept(const Tensor& y, Shape dims, bool keepdim) {
  if (!keepdim) return y;
  if (dims[0] > dims[1]) dims = {dims[1], dims[0]};
  return unsqueeze(unsqueeze(y, dims[0]), dims[1]);
}

bool is_empty(const Tensor& x) { return shape_of(x)[-1] == 0 || shape_of(x)[-2] == 0; }

bool is_order(double ord) {
  const double size = std::abs(ord);
  return size == 1 || size == 2 || std::isinf(size);
}

// The norm of x times that of its inverse; infinite where that does not exist, which is replaced so
// that nothing fails.
template <class Order>
Tensor cond_by_inverse(const Tensor& x, Order p) {
  require_square("cond", x);
  const Tensor pivots = diagonal(lu_factor(x.detach()).LU, 0, -2, -1);
  const Tensor singular = any(eq(pivots, 0), -1);
  const Tensor regular = where(as_matrices(singular), unit_like(x, shape_of(x)[-1]), x);
  const Tensor product = matrix_norm(x, p) * matrix_norm(inv(regular), p);
  return where(singular, std::numeric_limits<double>::infinity(), product);
}

}  // namespace

Tensor matrix_norm(const Tensor& x, std::string_view ord, const Shape& dims, bool keepdim) try {
  if (const Autocasting cast{"matrix_norm", {&x}}) return matrix_norm(cast(x), ord, dims, keepdim);
  const Shape both = matrix_dims(x, dims);
  if (ord == "fro") return norm(x, 2, both, keepdim);
  if (ord != "nuc")
    throw ValueError(
        fmt::format("matrix_norm: ord must be \"fro\", \"nuc\" or a number, found \"{}\"", ord));
  return kept(sum(values_of(x, both), -1), both, keepdim);
} catch (const Error&) {
  rethrow_in("matrix_norm");
}

Tensor matrix_norm(const Tensor& x, double ord, const Shape& dims, bool keepdim) try {
  if (const Autocasting cast{"matrix_norm", {&x}}) return matrix_norm(cast(x), ord, dims, keepdim);
  const Shape both = matrix_dims(x, dims);
  if (!is_order(ord))
    throw ValueError(fmt::format(
        "matrix_norm: ord must be 1, -1, 2, -2, inf or -inf, or a word, found {}", ord));
  // The largest of no sizes is 0, as no size is negative; there is no smallest.
  const auto extreme = [&](const Tensor& y, int64_t dim, bool keep) {
    if (y.size(dim) > 0) return ord > 0 ? amax(y, dim, keep) : amin(y, dim, keep);
    if (ord > 0) return sum(y, dim, keep);
    throw ValueError(fmt::format("matrix_norm: the order {} has nothing to choose from in shape {}",
                                 ord, shape_of(x)));
  };
  if (std::abs(ord) == 2) return kept(extreme(values_of(x, both), -1, false), both, keepdim);
  // Columns for 1, rows for infinity.
  int64_t summed = both[0], chosen = both[1];
  if (std::isinf(ord)) std::swap(summed, chosen);
  if (!keepdim && chosen > summed) --chosen;
  return extreme(sum(abs(x), summed, keepdim), chosen, keepdim);
} catch (const Error&) {
  rethrow_in("matrix_norm");
}

Tensor cond(const Tensor& x, double p) {
  require_matrices("cond", x);
  if (!is_order(p))
    throw ValueError(
        fmt::format("cond: p must be 1, -1, 2, -2, inf or -inf, or a word, found {}", p));
  if (is_empty(x)) return sum(x, {-2, -1});
  if (std::abs(p) != 2) return cond_by_inverse(x, p);
  const Tensor values = svdvals(x);
  const Tensor largest = values.select(-1, 0), smallest = values.select(-1, -1);
  return p > 0 ? largest / smallest : smallest / largest;
}

Tensor cond(const Tensor& x, std::string_view p) {
  require_matrices("cond", x);
  if (p != "fro" && p != "nuc")
    throw ValueError(fmt::format("cond: p must be \"fro\", \"nuc\" or a number, found \"{}\"", p));
  return is_empty(x) ? sum(x, {-2, -1}) : cond_by_inverse(x, p);
}

}  // namespace tenon
