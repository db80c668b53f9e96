// Diagonals and triangles of matrices (core/ops/shape.h).
#include <algorithm>
#include <cstdlib>
#include <limits>

#include <tenon/core/dispatch/replica.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// Which diagonal of which two dimensions.
struct Place {
  int64_t offset, dim1, dim2;
  explicit Place(const Attrs& attrs)
      : offset(attrs.get_int("offset")), dim1(attrs.get_int("dim1")), dim2(attrs.get_int("dim2")) {}
  Place(const char* op, int64_t offset, int64_t first, int64_t second, int64_t rank)
      : offset(offset), dim1(wrap_dim(first, rank, op)), dim2(wrap_dim(second, rank, op)) {
    if (dim1 == dim2)
      throw ValueError(fmt::format("{}: dim1 {} and dim2 {} must be different dimensions of {}", op,
                                   first, second, rank));
  }
  Attrs attrs() const { return Attrs().set("offset", offset).set("dim1", dim1).set("dim2", dim2); }
  // Returns how many elements are on the diagonal. The offset may be any number.
  int64_t length(const Shape& shape) const {
    const int64_t rows = shape[dim1], cols = shape[dim2];
    if (offset >= cols || offset <= -rows) return 0;
    return offset >= 0 ? std::min(rows, cols - offset) : std::min(rows + offset, cols);
  }
  // `list` without the two dimensions, and with `last` behind.
  Shape moved(const Shape& list, int64_t last) const {
    Shape result;
    for (int64_t d = 0; d < static_cast<int64_t>(list.size()); ++d)
      if (d != dim1 && d != dim2) result.push_back(list[d]);
    result.push_back(last);
    return result;
  }
  Tensor of(const Tensor& x) const { return diagonal(x, offset, dim1, dim2); }
};

Tensor embed(const Tensor& values, const Shape& shape, const Place& place);

void diagonal_gradient(const GradContext& c, Grads g) {
  g[0] = embed(c.grad(), c.input_shape(0), Place(c.attrs));
}
void execute_diagonal(const Call& call, Outputs& out) {
  auto& x = impl_of(call.in(0));
  const Place place(call.attrs);
  const int64_t row = x.strides[place.dim1], col = x.strides[place.dim2];
  const Shape shape = place.moved(x.shape, place.length(x.shape));
  int64_t first = 0;  // of an empty diagonal, which may lie anywhere
  if (shape.numel() > 0) first = place.offset >= 0 ? place.offset * col : -place.offset * row;
  out.push_back(make_view(call.in(0), shape, place.moved(x.strides, row + col), first));
}
const Op diagonal_op{{
    .name = "diagonal",
    .gradient = diagonal_gradient,
    .execute = execute_diagonal,
}};

void diag_embed_gradient(const GradContext& c, Grads g) { g[0] = Place(c.attrs).of(c.grad()); }
void execute_diag_embed(const Call& call, Outputs& out) {
  const Tensor& values = call.in(0);
  Tensor result = zeros(*call.shape, {.dtype = dtype_of(values), .device = values.device()});
  write_part(Place(call.attrs).of(result), values);
  out.push_back(result);
}
const Op diag_embed_op{{
    .name = "diag_embed",
    .gradient = diag_embed_gradient,
    .execute = execute_diag_embed,
}};

Tensor embed(const Tensor& values, const Shape& shape, const Place& place) {
  return run_as(shape, diag_embed_op, {&values}, place.attrs());
}

// Where row + diagonal >= column, of the shape of the last two dimensions.
Tensor below_diagonal(const Tensor& x, int64_t diagonal) {
  const int64_t rows = shape_of(x)[-2], cols = shape_of(x)[-1];
  // Beyond the corners nothing changes, and the numbers stay small.
  const int64_t first = std::clamp(diagonal, -rows, cols);
  const bool small = std::max(rows, cols) < std::numeric_limits<int32_t>::max() / 2;
  const TensorOptions options{.dtype = small ? i32 : i64, .device = device_read_on(x)};
  return ge(unsqueeze(arange(first, first + rows, 1, options), 1), arange(0, cols, 1, options));
}

Tensor zero_like(const Tensor& x) { return constant(0, dtype_of(x), device_read_on(x)); }

// ---- triangles, with the attribute "diagonal"

void infer_triangle(Infer& infer) { infer.output(infer.in(0).dtype, infer.in(0).shape); }
OpSpec triangle(const char* name, GradRule gradient, DecomposeRule decompose) {
  return {
      .name = name,
      .infer = infer_triangle,
      .gradient = gradient,
      .decompose = decompose,
      .decomposes_halves = true,
  };
}

void tril_gradient(const GradContext& c, Grads g) {
  g[0] = tril(c.grad(), c.attrs.get_int("diagonal"));
}
void decompose_tril(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  out.push_back(where(below_diagonal(x, call.attrs.get_int("diagonal")), x, zero_like(x)));
}
// | `tril triu` | x(…,m,n) -> y | `diagonal` int | zeros where column > row + diagonal, for `triu`
//   where column < row + diagonal; what stands there in x does not count |
const Op tril_op{triangle("tril", tril_gradient, decompose_tril)};

void triu_gradient(const GradContext& c, Grads g) {
  g[0] = triu(c.grad(), c.attrs.get_int("diagonal"));
}
// What is strictly below the diagonal lies on or below the one before.
void decompose_triu(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  const int64_t diagonal = call.attrs.get_int("diagonal"),
                before = std::max(diagonal, std::numeric_limits<int64_t>::min() + 1) - 1;
  out.push_back(where(below_diagonal(x, before), zero_like(x), x));
}
const Op triu_op{triangle("triu", triu_gradient, decompose_triu)};

Tensor run_triangle(const Op& op, const Tensor& x, int64_t diagonal) {
  require_tensor(op.name, x);
  if (shape_of(x).size() < 2)
    throw ShapeError(
        fmt::format("{}: needs at least two dimensions, found shape {}", op.name, shape_of(x)));
  // The number as it was given, though nothing changes beyond the corners: cut off there, it would
  // look to a compiled function as if it followed the size.
  return run(op, {&x}, Attrs().set("diagonal", diagonal));
}

}  // namespace

Tensor diagonal(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  require_tensor("diagonal", x);
  const Place place("diagonal", offset, dim1, dim2, static_cast<int64_t>(shape_of(x).size()));
  return run(diagonal_op, {&x}, place.attrs());
}

Tensor diag_embed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  require_tensor("diag_embed", x);
  const Shape& from = shape_of(x);
  if (from.empty()) throw ShapeError("diag_embed: needs at least one dimension, found shape ()");
  const Place place("diag_embed", offset, dim1, dim2, static_cast<int64_t>(from.size()) + 1);
  int64_t size;
  if (offset == std::numeric_limits<int64_t>::min() ||
      __builtin_add_overflow(from.back(), std::abs(offset), &size))
    size = std::numeric_limits<int64_t>::max();
  Shape shape;
  for (int64_t d = 0, next = 0; d <= static_cast<int64_t>(from.size()); ++d)
    shape.push_back(d == place.dim1 || d == place.dim2 ? size : from[next++]);
  require_addressable("diag_embed", shape);
  return embed(x, shape, place);
}

Tensor diag(const Tensor& x, int64_t diagonal) try {
  require_tensor("diag", x);
  const size_t rank = shape_of(x).size();
  if (rank != 1 && rank != 2)
    throw ShapeError(fmt::format(
        "diag: expects a vector or a matrix, found shape {}; diagonal and diag_embed take others",
        shape_of(x)));
  return rank == 1 ? diag_embed(x, diagonal) : tenon::diagonal(x, diagonal).clone();
} catch (const Error&) {
  rethrow_in("diag");
}

Tensor trace(const Tensor& x) {
  require_tensor("trace", x);
  if (shape_of(x).size() != 2)
    throw ShapeError(fmt::format("trace: expects a matrix, found shape {}", shape_of(x)));
  return sum(diagonal(x));
}

Tensor tril(const Tensor& x, int64_t diagonal) { return run_triangle(tril_op, x, diagonal); }
Tensor triu(const Tensor& x, int64_t diagonal) { return run_triangle(triu_op, x, diagonal); }

}  // namespace tenon
