// Writing and combining at indices, one element each (core/ops/indexing.h).
#include <limits>

#include <tenon/core/base/module_path.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/indexing/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

int64_t dim_of(const GradContext& c) { return c.attrs.get_int("dim"); }

Tensor cleared_at(const Tensor& x, int64_t dim, const Tensor& index) {
  return scatter(x, dim, index, 0);
}

void infer_scatter(Infer& infer) { infer.output(dtype_of(infer.in(0)), shape_of(infer.in(0))); }

void scatter_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = cleared_at(c.grad(), dim_of(c), c.input(1));
  if (c.needs(2)) g[2] = gather(c.grad(), dim_of(c), c.input(1));
}
// | `scatter` | x, index, src -> y | `dim` | y = x but at index: y[index] = src, of several the
//   last. index and src have one shape, no larger than x except along `dim`; range as embedding;
//   any dtype. y may alias x |
const Op scatter_op{{
    .name = "scatter",
    .inputs = "x index src",
    .infer = infer_scatter,
    .gradient = scatter_gradient,
    .saves_inputs = 2,
    .autocast = AutocastRule::widest,
}};

// ---- scatter_reduce ----

void sum_gradient_of(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = c.grad();
  if (c.needs(2)) g[2] = gather(c.grad(), dim_of(c), c.input(1));
}

// The elements that are the result share the gradient evenly.
void extremum_gradient_of(const GradContext& c, Grads g) {
  const Tensor &x = c.input(0), &index = c.input(1), &src = c.input(2), &y = c.output(0);
  const int64_t dim = dim_of(c);
  const DType t = c.input_dtype(0);
  Tensor own = eq(x, y).to(t);
  if (!c.attrs.get_bool("include_self")) own = cleared_at(own, dim, index);
  const Tensor chosen = eq(src, gather(y, dim, index)).to(t);
  const Tensor share = c.grad() / maximum(scatter_add(own, dim, index, chosen), 1.0);
  if (c.needs(0)) g[0] = own * share;
  if (c.needs(2)) g[2] = chosen * gather(share, dim, index);
}

// The product of the others, PyTorch's formula: an element that is 0 alone is replaced by 1.
void prod_gradient_of(const GradContext& c, Grads g) {
  const Tensor &x = c.input(0), &index = c.input(1), &src = c.input(2), &y = c.output(0);
  const int64_t dim = dim_of(c);
  const bool include_self = c.attrs.get_bool("include_self");
  const auto reduced = [&](const Tensor& a, const Tensor& b) {
    return scatter_reduce(a, dim, index, b, "prod", include_self);
  };
  if (c.needs(0)) {
    const Tensor ones = where(eq(x, 0.0), 1.0, x);
    g[0] = c.grad() * reduced(ones, src) / ones;
  }
  if (!c.needs(2)) return;
  const Tensor zero = eq(src, 0.0);
  const Tensor zeros_there =
      gather(scatter_add(zeros_like(x), dim, index, zero.to(c.input_dtype(0))), dim, index);
  const Tensor single = logical_and(zero, eq(zeros_there, 1.0));
  const Tensor others = gather(c.grad() * reduced(x, where(single, 1.0, src)), dim, index);
  const Tensor all = gather(c.grad() * y, dim, index) / where(zero, 1.0, src);
  g[2] = where(single, others, all);
}

void scatter_reduce_gradient(const GradContext& c, Grads g) {
  const std::string_view reduce = c.attrs.get_string("reduce");
  if (reduce == "sum")
    sum_gradient_of(c, g);
  else if (reduce == "prod")
    prod_gradient_of(c, g);
  else
    extremum_gradient_of(c, g);
  if (c.needs(0) && !c.attrs.get_bool("include_self"))
    g[0] = cleared_at(g[0], dim_of(c), c.input(1));
}
// | `scatter_reduce` | x, index, src -> y | `dim`, `reduce` "sum" "prod" "amax" "amin",
//   `include_self` bool | src is combined with y[index] in index order (deterministic); without
//   `include_self` elements of x that an index names take no part. NaN wins. any but halves |
const Op scatter_reduce_op{{
    .name = "scatter_reduce",
    .inputs = "x index src",
    .infer = infer_scatter,
    .gradient = scatter_reduce_gradient,
    .saves_inputs = 7,
    .saves_outputs = 1,
    .autocast = AutocastRule::widest,
}};

// Checked arguments, without scalars: `src` is cut to the index's shape.
struct Scatter {
  Tensor x, index, src;
  int64_t dim;
};
Scatter checked_scatter(const char* op, const Tensor& x, int64_t dim, const Tensor& index,
                        const Tensor& src) {
  require_defined(op, {{"x", x}, {"index", index}, {"src", src}});
  require_index(op, index, "index");
  const int64_t d = wrap_dim_of(x, dim, op);
  if (dtype_of(src) != dtype_of(x))
    throw DTypeError(fmt::format("{}: x is {}, src {}, but both must have one dtype; {}", op,
                                 dtype_of(x), dtype_of(src), conversion_to(dtype_of(x), "src")));
  const auto vector = [](const Tensor& t) { return shape_of(t).empty() ? t.reshape({1}) : t; };
  Scatter s{vector(x), vector(index), vector(src), d};
  const Shape &to = shape_of(s.x), &at = shape_of(s.index), &from = shape_of(s.src);
  bool fits = to.size() == at.size() && at.size() == from.size();
  for (size_t i = 0; fits && i < to.size(); ++i)
    fits = at[i] <= from[i] && (static_cast<int64_t>(i) == d || at[i] <= to[i]);
  if (!fits && s.index.numel() > 0)
    throw ShapeError(fmt::format(
        "{}: index has shape {}, which must have as many dimensions as x, {}, and src, {}, and be "
        "no larger than src, nor than x except along dim {}",
        op, shape_of(index), shape_of(x), shape_of(src), d));
  for (size_t i = 0; fits && i < to.size(); ++i)
    if (at[i] < from[i]) s.src = s.src.narrow(static_cast<int64_t>(i), 0, at[i]);
  return s;
}

Tensor run_scatter(const Op& op, const Tensor& shaped_as, const Scatter& s, const Attrs& attrs) {
  if (s.index.numel() == 0) {
    // A source that gives nothing has a gradient all the same, which is 0.
    if (!s.src.requires_grad()) return shaped_as.clone();
    return cat({shaped_as.flatten(), s.src.flatten().narrow(0, 0, 0)}).reshape(shape_of(shaped_as));
  }
  if (op.name != scatter_op.name && is_half(s.x)) {
    const Tensor x = s.x.to(DType::f32), src = s.src.to(DType::f32);
    return run(op, {&x, &s.index, &src}, attrs).to(dtype_of(s.x)).reshape(shape_of(shaped_as));
  }
  return run(op, {&s.x, &s.index, &s.src}, attrs).reshape(shape_of(shaped_as));
}

Tensor run_reduce(const char* name, const Tensor& x, int64_t dim, const Tensor& index,
                  const Tensor& src, const char* reduce, bool include_self) {
  const Scatter s = checked_scatter(name, x, dim, index, src);
  return run_scatter(
      scatter_reduce_op, x, s,
      Attrs().set("dim", s.dim).set("reduce", reduce).set("include_self", include_self));
}

Tensor reduce_mean(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                   bool include_self) {
  const Tensor total = run_reduce("scatter_reduce", x, dim, index, src, "sum", include_self);
  if (dtype_of(x) == DType::boolean) return total;  // of truth values: whether one is true
  const Tensor own = include_self ? ones_like(x) : cleared_at(ones_like(x), dim, index);
  const Tensor count = scatter_add(own, dim, index, ones_like(src));
  return is_floating_point(dtype_of(x)) ? total / count : floor_divide(total, count);
}

}  // namespace

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  if (const Autocasting cast{"scatter", {&x, &src}}) return scatter(cast(x), dim, index, cast(src));
  const Scatter s = checked_scatter("scatter", x, dim, index, src);
  return run_scatter(scatter_op, x, s, Attrs().set("dim", s.dim));
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Number value) {
  require_defined("scatter", {{"x", x}, {"index", index}});
  require_held("scatter", dtype_of(x), value);
  return scatter(x, dim, index, constant(value, dtype_of(x), x.device()).expand(shape_of(index)));
}

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) try {
  if (const Autocasting cast{"scatter_add", {&x, &src}})
    return scatter_add(cast(x), dim, index, cast(src));
  return run_reduce("scatter_add", x, dim, index, src, "sum", true);
} catch (const Error&) {
  rethrow_in("scatter_add");
}

Tensor scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce, bool include_self) {
  if (const Autocasting cast{"scatter_reduce", {&x, &src}})
    return scatter_reduce(cast(x), dim, index, cast(src), reduce, include_self);
  if (reduce == "mean") return reduce_mean(x, dim, index, src, include_self);
  for (const char* known : {"sum", "prod", "amax", "amin"})
    if (reduce == known)
      return run_reduce("scatter_reduce", x, dim, index, src, known, include_self);
  throw ValueError(fmt::format(
      "scatter_reduce: reduce must be sum, prod, mean, amax or amin, found \"{}\"", reduce));
}

void scatter_into(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                  bool accumulate) {
  const char* const op = "index_put_";
  const Scatter s = checked_scatter(op, x, dim, index, src);
  if (s.index.numel() == 0) return;
  Attrs attrs = Attrs().set("dim", s.dim);
  if (accumulate) attrs.set("reduce", "sum").set("include_self", true);
  const Tensor* inputs[] = {&x, &s.index, &s.src};
  run_into(x, {accumulate ? scatter_reduce_op : scatter_op, inputs, attrs});
}

// ---- slices ----

Tensor spread_index(const Tensor& index, int64_t dim, const Tensor& source) {
  if (shape_of(source).empty()) return index.reshape({});
  Shape line = Shape::filled(shape_of(source).size(), 1);
  line[dim] = index.numel();
  return index.reshape(line).expand(shape_of(source));
}

namespace {

int64_t require_slices(const char* op, const Tensor& x, int64_t dim, const Tensor& index,
                       const Tensor& source) {
  require_defined(op, {{"x", x}, {"index", index}, {"source", source}});
  require_index(op, index, "index");
  const int64_t d = wrap_dim_of(x, dim, op);
  Shape wanted = shape_of(x);
  if (!wanted.empty()) wanted[d] = index.numel();
  if (shape_of(index).size() > 1 || !(shape_of(source) == wanted))
    throw ShapeError(
        fmt::format("{}: index must be a vector, and source have the shape of x except in dim {}, "
                    "where it is as long; found index {}, source {} and x {}",
                    op, d, shape_of(index), shape_of(source), shape_of(x)));
  if (dtype_of(source) != dtype_of(x))
    throw DTypeError(fmt::format("{}: x is {}, source {}, but both must have one dtype; {}", op,
                                 dtype_of(x), dtype_of(source),
                                 conversion_to(dtype_of(x), "source")));
  return d;
}

// Which slices along `dim` are listed, with size 1 in the other dimensions.
Tensor listed(const char* op, const Tensor& x, int64_t dim, const Tensor& index) {
  require_defined(op, {{"x", x}, {"index", index}});
  require_index(op, index, "index");
  const int64_t d = wrap_dim_of(x, dim, op);
  if (shape_of(index).size() > 1)
    throw ShapeError(
        fmt::format("{}: index must be a vector, found shape {}", op, shape_of(index)));
  const Tensor none = zeros({size_along(x, d)}, {.dtype = DType::boolean, .device = x.device()});
  const PartPath part(op);
  const Tensor mask = scatter(none, 0, index.reshape({-1}), 1);
  if (shape_of(x).empty()) return mask.reshape({});
  Shape line = Shape::filled(shape_of(x).size(), 1);
  line[d] = shape_of(x)[d];
  return mask.reshape(line);
}

}  // namespace

Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                 Number alpha) try {
  if (const Autocasting cast{"index_add", {&x, &source}})
    return index_add(cast(x), dim, index, cast(source), alpha);
  const int64_t d = require_slices("index_add", x, dim, index, source);
  require_held("index_add", dtype_of(x), alpha);
  const bool plain = alpha.f == 1;
  // In a half type the products would be rounded, and then their sum.
  if (!plain && is_half(x)) {
    const Tensor sum = index_add(x.to(DType::f32), d, index, source.to(DType::f32), alpha);
    return sum.to(dtype_of(x));
  }
  const Tensor added = plain ? source : (source * alpha).to(dtype_of(x));
  return scatter_add(x, d, spread_index(index, d, added), added);
} catch (const Error&) {
  rethrow_in("index_add");
}

Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) try {
  if (const Autocasting cast{"index_copy", {&x, &source}})
    return index_copy(cast(x), dim, index, cast(source));
  const int64_t d = require_slices("index_copy", x, dim, index, source);
  return scatter(x, d, spread_index(index, d, source), source);
} catch (const Error&) {
  rethrow_in("index_copy");
}

Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, Number value) try {
  const Tensor mask = listed("index_fill", x, dim, index);
  return masked_fill(x, mask, value);
} catch (const Error&) {
  rethrow_in("index_fill");
}
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) try {
  const Tensor mask = listed("index_fill", x, dim, index);
  return masked_fill(x, mask, value);
} catch (const Error&) {
  rethrow_in("index_fill");
}

}  // namespace tenon
