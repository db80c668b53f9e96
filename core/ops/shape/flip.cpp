// Elements in another order along dimensions (core/ops/shape.h).
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

void flip_gradient(const GradContext& c, Grads g) {
  g[0] = flip(c.grad(), c.attrs.get_list("dims"));
}
void infer_flip(Infer& infer) {
  const auto rank = static_cast<int64_t>(shape_of(infer.in(0)).size());
  for (int64_t dim : infer.attrs.get_list("dims"))
    if (dim < 0 || dim >= rank)
      infer.shape_error(fmt::format("dim {} of a tensor of {} dimensions", dim, rank));
  infer.output(dtype_of(infer.in(0)), shape_of(infer.in(0)));
}
void decompose_flip(const Call& call, Outputs& out) {
  Tensor x = call.in(0);
  for (int64_t d : call.attrs.get_list("dims")) {
    const TensorOptions options{.dtype = i64, .device = x.device()};
    x = index_select(x, d, arange(x.size(d) - 1, -1, -1, options));
  }
  out.push_back(x);
}
// | `flip` | x -> y | `dims` ints | any; the order of elements along these dimensions is reversed |
const Op flip_op{{
    .name = "flip",
    .infer = infer_flip,
    .gradient = flip_gradient,
    .decompose = decompose_flip,
    .decomposes_halves = true,
}};

// Writes the parts that the shift separates, along dimension d and those behind it.
void write_shifted(const Tensor& to, const Tensor& from, const Shape& shifts, size_t d) {
  if (d == shifts.size()) return write_part(to, from);
  const auto dim = static_cast<int64_t>(d);
  const int64_t shift = shifts[d], rest = from.size(dim) - shift;
  if (shift == 0) return write_shifted(to, from, shifts, d + 1);
  write_shifted(narrow(to, dim, shift, rest), narrow(from, dim, 0, rest), shifts, d + 1);
  write_shifted(narrow(to, dim, 0, shift), narrow(from, dim, rest, shift), shifts, d + 1);
}

void roll_gradient(const GradContext& c, Grads g);
void infer_roll(Infer& infer) {
  const Shape &shape = shape_of(infer.in(0)), shifts = infer.attrs.get_list("shifts");
  bool fits = shifts.size() == shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) fits = shifts[d] >= 0 && shifts[d] <= shape[d];
  if (!fits) infer.shape_error(fmt::format("shifts {} of a tensor of shape {}", shifts, shape));
  infer.output(dtype_of(infer.in(0)), shape);
}
void decompose_roll(const Call& call, Outputs& out) {
  const Tensor& x = call.in(0);
  Tensor result = allocate_tensor(shape_of(x), dtype_of(x), x.device());
  write_shifted(result, x, call.attrs.get_list("shifts"), 0);
  out.push_back(result);
}
// | `roll` | x -> y | `shifts` ints | any; a shift for each dimension, from 0 to its size n: y[(k +
//   shift) mod n] = x[k] |
const Op roll_op{{
    .name = "roll",
    .infer = infer_roll,
    .gradient = roll_gradient,
    .decompose = decompose_roll,
    .decomposes_halves = true,
}};

// `shifts` has a number for each dimension, from 0 to its size.
void roll_gradient(const GradContext& c, Grads g) {
  Shape back = c.attrs.get_list("shifts");
  for (size_t d = 0; d < back.size(); ++d)
    if (back[d] > 0) back[d] = c.input_shape(0)[d] - back[d];
  g[0] = run(roll_op, {&c.grad()}, Attrs().set("shifts", back));
}

}  // namespace

Tensor flip(const Tensor& x, const Shape& dims) {
  require_tensor("flip", x);
  if (dims.empty() || shape_of(x).empty()) {
    if (!dims.empty()) wrap_dims(dims, 0, "flip");
    return clone(x);
  }
  const Shape wrapped = wrap_dims(dims, static_cast<int64_t>(shape_of(x).size()), "flip");
  return run(flip_op, {&x}, Attrs().set("dims", wrapped));
}

Tensor fliplr(const Tensor& x) {
  require_tensor("fliplr", x);
  if (shape_of(x).size() < 2)
    throw ShapeError(
        fmt::format("fliplr: needs at least two dimensions, found shape {}", shape_of(x)));
  return flip(x, 1);
}

Tensor flipud(const Tensor& x) {
  require_tensor("flipud", x);
  if (shape_of(x).empty()) throw ShapeError("flipud: needs at least one dimension, found shape ()");
  return flip(x, 0);
}

Tensor roll(const Tensor& x, const Shape& shifts, const Shape& dims) {
  require_tensor("roll", x);
  const Shape& shape = shape_of(x);
  if (dims.empty() && shifts.size() == 1) return reshape(roll(flatten(x), shifts, 0), shape);
  if (shifts.size() != dims.size() || dims.empty())
    throw ValueError(
        fmt::format("roll: needs as many shifts as dims, found {} and {}", shifts, dims));
  Shape moved = Shape::filled(shape.size(), 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = wrap_dim(dims[i], static_cast<int64_t>(shape.size()), "roll"),
                  size = shape[d];
    if (size > 0) moved[d] = ((moved[d] + shifts[i] % size) % size + size) % size;
  }
  return run(roll_op, {&x}, Attrs().set("shifts", moved));
}

Tensor rot90(const Tensor& x, int64_t k, const Shape& dims) {
  require_tensor("rot90", x);
  if (dims.size() != 2)
    throw ValueError(fmt::format("rot90: dims must be two dimensions, found {}", dims));
  const int64_t rank = static_cast<int64_t>(shape_of(x).size()),
                from = wrap_dim(dims[0], rank, "rot90"), to = wrap_dim(dims[1], rank, "rot90");
  if (from == to)
    throw ValueError(fmt::format("rot90: dims must be two different dimensions, found {}", dims));
  switch ((k % 4 + 4) % 4) {
    case 1:
      return transpose(flip(x, to), from, to);
    case 2:
      return flip(x, {from, to});
    case 3:
      return transpose(flip(x, from), from, to);
    default:
      return clone(x);
  }
}

}  // namespace tenon
