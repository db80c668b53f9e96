#include <algorithm>
#include <optional>

#include <tenon/core/dispatch/detour.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

// Returns the strides with which `shape` visits the elements of x in the same order, or nothing if
// that takes a copy. Dimensions of x that follow each other in memory without a gap form a run, and
// the new shape has to divide each run exactly.
std::optional<Strides> strides_for(const TensorImpl& x, const Shape& shape) {
  if (x.contiguous || x.numel == 0) return shape.contiguous_strides();
  Strides result = Shape::filled(shape.size(), 1);
  size_t to = shape.size();
  int64_t run = 1, stride = x.shape.empty() ? 1 : x.strides.back();
  for (size_t from = x.shape.size(); from-- > 0;) {
    run *= x.shape[from];
    bool seam = from == 0 || (x.shape[from - 1] != 1 && x.strides[from - 1] != run * stride);
    if (!seam) continue;
    int64_t filled = 1;
    while (to > 0 && (filled < run || shape[to - 1] == 1)) {
      result[to - 1] = filled * stride;
      filled *= shape[--to];
    }
    if (filled != run) return std::nullopt;
    if (from > 0) {
      run = 1;
      stride = x.strides[from - 1];
    }
  }
  return result;
}

// Replaces a -1 and checks the number of elements.
Shape complete_shape(const char* op, const Tensor& x, Shape shape) {
  int64_t numel = impl_of(x).numel, known = 1;
  size_t unknown = Shape::max_rank;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      if (unknown != Shape::max_rank)
        throw ShapeError(
            fmt::format("{}: only one dimension of the new shape {} may be -1", op, shape));
      unknown = i;
    } else if (shape[i] < 0) {
      throw ShapeError(fmt::format("{}: the new shape {} holds a negative dimension", op, shape));
    } else if (__builtin_mul_overflow(known, shape[i], &known)) {
      known = -1;
      break;
    }
  }
  bool fits = unknown == Shape::max_rank ? known == numel : known > 0 && numel % known == 0;
  if (!fits)
    throw ShapeError(
        fmt::format("{}: cannot give shape {} to a tensor of shape {}, which has {} elements", op,
                    shape, shape_of(x), numel));
  if (unknown != Shape::max_rank) shape[unknown] = numel / known;
  require_addressable(op, shape);  // an empty tensor fits any shape that has a dimension of 0
  return shape;
}

// ---- operators ----

void view_gradient(const GradContext& c, Grads g) { g[0] = c.grad().reshape(c.input_shape(0)); }
void execute_view(const Call& call, Outputs& out) {
  const Shape& shape = *call.shape;
  auto& x = impl_of(call.in(0));
  auto strides = strides_for(x, shape);
  if (!strides)
    throw ShapeError(
        fmt::format("view: shape {} does not fit a tensor of shape {} and strides {} without a "
                    "copy; use reshape",
                    shape, x.shape, x.strides));
  out.push_back(make_view(call.in(0), shape, *strides, 0));
}
const Op view_op{{.name = "view", .gradient = view_gradient, .execute = execute_view}};

void permute_gradient(const GradContext& c, Grads g) {
  Shape dims = c.attrs.get_list("dims"), inverse = dims;
  for (size_t i = 0; i < dims.size(); ++i) inverse[at(dims[i])] = static_cast<int64_t>(i);
  g[0] = permute(c.grad(), inverse);
}
void execute_permute(const Call& call, Outputs& out) {
  Shape dims = call.attrs.get_list("dims"), shape = dims, strides = dims;
  auto& x = impl_of(call.in(0));
  for (size_t i = 0; i < dims.size(); ++i) {
    shape[i] = x.shape[at(dims[i])];
    strides[i] = x.strides[at(dims[i])];
  }
  out.push_back(make_view(call.in(0), shape, strides, 0));
}
const Op permute_op{{.name = "permute", .gradient = permute_gradient, .execute = execute_permute}};

void expand_gradient(const GradContext& c, Grads g) { g[0] = sum_to(c.grad(), c.input_shape(0)); }
void execute_expand(const Call& call, Outputs& out) {
  const Shape& shape = *call.shape;
  Strides strides = Shape::filled(shape.size(), 0);
  auto& x = impl_of(call.in(0));
  size_t lead = shape.size() - x.shape.size();
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (x.shape[i] == shape[lead + i]) strides[lead + i] = x.strides[i];
  out.push_back(make_view(call.in(0), shape, strides, 0));
}
const Op expand_op{{.name = "expand", .gradient = expand_gradient, .execute = execute_expand}};

void unsqueeze_gradient(const GradContext& c, Grads g) {
  g[0] = squeeze(c.grad(), c.attrs.get_int("dim"));
}
void execute_unsqueeze(const Call& call, Outputs& out) {
  auto& x = impl_of(call.in(0));
  size_t dim = at(call.attrs.get_int("dim"));
  Shape shape = x.shape, strides = x.strides;
  strides.insert(dim, dim < shape.size() ? shape[dim] * strides[dim] : 1);
  shape.insert(dim, 1);
  out.push_back(make_view(call.in(0), shape, strides, 0));
}
const Op unsqueeze_op{{
    .name = "unsqueeze",
    .gradient = unsqueeze_gradient,
    .execute = execute_unsqueeze,
}};

void squeeze_gradient(const GradContext& c, Grads g) {
  g[0] = unsqueeze(c.grad(), c.attrs.get_int("dim"));
}
void execute_squeeze(const Call& call, Outputs& out) {
  auto& x = impl_of(call.in(0));
  size_t dim = at(call.attrs.get_int("dim"));
  Shape shape = x.shape, strides = x.strides;
  shape.erase(dim);
  strides.erase(dim);
  out.push_back(make_view(call.in(0), shape, strides, 0));
}
const Op squeeze_op{{.name = "squeeze", .gradient = squeeze_gradient, .execute = execute_squeeze}};

}  // namespace

Tensor view(const Tensor& x, const Shape& shape) {
  require_tensor("view", x);
  if (shape == shape_of(x)) return x;
  return run_as(complete_shape("view", x, shape), view_op, {&x});
}

Tensor reshape(const Tensor& x, const Shape& shape) {
  require_tensor("reshape", x);
  if (shape == shape_of(x)) return x;
  Shape full = complete_shape("reshape", x, shape);
  if (strides_for(impl_of(x), full)) return run_as(full, view_op, {&x});
  const Detour detour("reshape", x);
  Tensor copy = x.contiguous();
  return run_as(full, view_op, {&copy});
}

Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  require_tensor("flatten", x);
  const Shape& from = shape_of(x);
  if (from.empty()) return reshape(x, {1});
  int64_t rank = static_cast<int64_t>(from.size());
  int64_t start = wrap_dim(start_dim, rank, "flatten"), end = wrap_dim(end_dim, rank, "flatten");
  if (start > end)
    throw ValueError(
        fmt::format("flatten: start_dim {} comes after end_dim {} for a tensor of shape {}",
                    start_dim, end_dim, from));
  Shape shape;
  int64_t merged = 1;
  for (int64_t d = 0; d < rank; ++d) {
    if (d >= start && d <= end) merged *= from[at(d)];
    if (d < start || d > end) shape.push_back(from[at(d)]);
    if (d == end) shape.push_back(merged);
  }
  return reshape(x, shape);
}

Tensor permute(const Tensor& x, const Shape& dims) {
  require_tensor("permute", x);
  int64_t rank = static_cast<int64_t>(shape_of(x).size());
  Shape wrapped = dims;
  uint32_t seen = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    wrapped[i] = wrap_dim(dims[i], rank, "permute");
    seen |= 1u << wrapped[i];
  }
  if (dims.size() != at(rank) || seen != (1u << rank) - 1)
    throw ValueError(
        fmt::format("permute: dims {} must hold each dimension of a tensor of shape {} once", dims,
                    shape_of(x)));
  return run(permute_op, {&x}, Attrs().set("dims", wrapped));
}

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  require_tensor("transpose", x);
  int64_t rank = static_cast<int64_t>(shape_of(x).size());
  if (rank == 0) return x;
  Shape dims = Shape::filled(at(rank), 0);
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
  std::swap(dims[at(wrap_dim(dim0, rank, "transpose"))],
            dims[at(wrap_dim(dim1, rank, "transpose"))]);
  return run(permute_op, {&x}, Attrs().set("dims", dims));
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  require_tensor("unsqueeze", x);
  int64_t wrapped = wrap_new_dim(dim, static_cast<int64_t>(shape_of(x).size()), "unsqueeze");
  return run(unsqueeze_op, {&x}, Attrs().set("dim", wrapped));
}

Tensor squeeze(const Tensor& x, int64_t dim) {
  require_tensor("squeeze", x);
  const Shape& shape = shape_of(x);
  if (shape.empty() && (dim == 0 || dim == -1)) return x;
  int64_t wrapped = wrap_dim(dim, static_cast<int64_t>(shape.size()), "squeeze");
  return shape[at(wrapped)] == 1 ? run(squeeze_op, {&x}, Attrs().set("dim", wrapped)) : x;
}

Tensor squeeze(const Tensor& x) {
  require_tensor("squeeze", x);
  Shape shape;
  for (int64_t d : shape_of(x))
    if (d != 1) shape.push_back(d);
  return reshape(x, shape);
}

Tensor expand(const Tensor& x, const Shape& shape) {
  require_tensor("expand", x);
  const Shape& from = shape_of(x);
  if (shape == from) return x;
  auto refuse = [&](const char* why) {
    throw ShapeError(fmt::format("expand: cannot expand shape {} to {}: {}", from, shape, why));
  };
  if (shape.size() < from.size()) refuse("it has fewer dimensions");
  Shape full = shape;
  size_t lead = shape.size() - from.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i < lead) {
      if (shape[i] < 0) refuse("a new dimension needs a size");
      continue;
    }
    if (shape[i] == -1) full[i] = from[i - lead];
    if (full[i] < 0 || (from[i - lead] != 1 && from[i - lead] != full[i]))
      refuse("only dimensions of size 1 can be expanded");
  }
  if (!is_addressable(full)) refuse_extent(fmt::format("expand: from {}", from), full);
  return run_as(full, expand_op, {&x});
}

Tensor Tensor::reshape(const Shape& shape) const { return tenon::reshape(*this, shape); }
Tensor Tensor::view(const Shape& shape) const { return tenon::view(*this, shape); }
Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const {
  return tenon::flatten(*this, start_dim, end_dim);
}
Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const {
  return tenon::transpose(*this, dim0, dim1);
}
Tensor Tensor::permute(const Shape& dims) const { return tenon::permute(*this, dims); }
Tensor Tensor::unsqueeze(int64_t dim) const { return tenon::unsqueeze(*this, dim); }
Tensor Tensor::squeeze(int64_t dim) const { return tenon::squeeze(*this, dim); }
Tensor Tensor::expand(const Shape& shape) const { return tenon::expand(*this, shape); }
Tensor Tensor::t() const {
  require_tensor("t", *this);
  if (dim() > 2)
    throw ShapeError(
        fmt::format("t: expects a matrix, found shape {}; use transpose or permute", shape()));
  return dim() < 2 ? *this : tenon::transpose(*this, 0, 1);
}

}  // namespace tenon
