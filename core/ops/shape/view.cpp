#include <algorithm>
#include <optional>

#include <tenon/core/extent.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

using Grads = std::span<Tensor>;

size_t at(int64_t i) { return static_cast<size_t>(i); }

// Strides with which `shape` walks over the same elements in the same order; none where only a copy
// could do it. Dimensions of the source that lie seamlessly behind each other form a run; each run
// must be split up exactly.
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
        throw ShapeError(std::string(op) + ": only one dimension of " + shape.str() + " may be -1");
      unknown = i;
    } else if (shape[i] < 0) {
      throw ShapeError(std::string(op) + ": " + shape.str() + " holds a negative dimension");
    } else if (__builtin_mul_overflow(known, shape[i], &known)) {
      known = -1;
      break;
    }
  }
  bool fits = unknown == Shape::max_rank ? known == numel : known > 0 && numel % known == 0;
  if (!fits)
    throw ShapeError(std::string(op) + ": cannot give shape " + shape.str() +
                     " to a tensor of shape " + shape_of(x).str() + ", which has " +
                     std::to_string(numel) + " elements");
  if (unknown != Shape::max_rank) shape[unknown] = numel / known;
  require_addressable(op, shape);  // without elements any product would do
  return shape;
}

Tensor view_of(const Tensor& x, const Shape& shape, const Strides& strides, int64_t offset = 0) {
  return make_view(x, shape, strides, offset);
}

// ---- operators ----

const Op view_op{
    {.name = "view",
     .gradient = [](const GradContext& c, Grads g) { g[0] = c.grad().reshape(c.input_shape(0)); },
     .execute =
         [](const Call& call, Outputs& out) {
           Shape shape = call.attrs.get_list("shape");
           auto strides = strides_for(impl_of(call.in(0)), shape);
           if (!strides)
             throw ShapeError("view: shape " + shape.str() + " does not fit a tensor of shape " +
                              shape_of(call.in(0)).str() + " and strides " +
                              call.in(0).strides().str() + " without a copy; use reshape");
           out.push_back(view_of(call.in(0), shape, *strides));
         }}};

const Op permute_op{{.name = "permute",
                     .gradient =
                         [](const GradContext& c, Grads g) {
                           Shape dims = c.attrs.get_list("dims"), inverse = dims;
                           for (size_t i = 0; i < dims.size(); ++i)
                             inverse[at(dims[i])] = static_cast<int64_t>(i);
                           g[0] = permute(c.grad(), inverse);
                         },
                     .execute =
                         [](const Call& call, Outputs& out) {
                           Shape dims = call.attrs.get_list("dims"), shape = dims, strides = dims;
                           auto& x = impl_of(call.in(0));
                           for (size_t i = 0; i < dims.size(); ++i) {
                             shape[i] = x.shape[at(dims[i])];
                             strides[i] = x.strides[at(dims[i])];
                           }
                           out.push_back(view_of(call.in(0), shape, strides));
                         }}};

const Op expand_op{
    {.name = "expand",
     .gradient = [](const GradContext& c, Grads g) { g[0] = sum_to(c.grad(), c.input_shape(0)); },
     .execute =
         [](const Call& call, Outputs& out) {
           Shape shape = call.attrs.get_list("shape");
           Strides strides = Shape::filled(shape.size(), 0);
           auto& x = impl_of(call.in(0));
           size_t lead = shape.size() - x.shape.size();
           for (size_t i = 0; i < x.shape.size(); ++i)
             if (x.shape[i] == shape[lead + i]) strides[lead + i] = x.strides[i];
           out.push_back(view_of(call.in(0), shape, strides));
         }}};

Tensor slice_backward(const Tensor& gradient, const Shape& shape, int64_t dim, int64_t start,
                      int64_t step);

const Op slice_op{{.name = "slice",
                   .gradient =
                       [](const GradContext& c, Grads g) {
                         g[0] = slice_backward(c.grad(), c.input_shape(0), c.attrs.get_int("dim"),
                                               c.attrs.get_int("start"), c.attrs.get_int("step"));
                       },
                   .execute =
                       [](const Call& call, Outputs& out) {
                         auto& x = impl_of(call.in(0));
                         size_t dim = at(call.attrs.get_int("dim"));
                         int64_t start = call.attrs.get_int("start"),
                                 step = call.attrs.get_int("step");
                         Shape shape = x.shape, strides = x.strides;
                         shape[dim] = call.attrs.get_int("length");
                         strides[dim] *= step;
                         out.push_back(view_of(call.in(0), shape, strides,
                                               shape[dim] > 0 ? start * x.strides[dim] : 0));
                       }}};

void decompose_slice_backward(const Call& call, Outputs& out) {
  int64_t dim = call.attrs.get_int("dim"), start = call.attrs.get_int("start"),
          step = call.attrs.get_int("step");
  Tensor result =
      zeros(*call.shape, {.dtype = dtype_of(call.in(0)), .device = call.in(0).device()});
  write_part(slice(result, dim, start, start + call.in(0).size(dim) * step, step), call.in(0));
  out.push_back(result);
}

const Op slice_backward_op{{.name = "slice_backward",
                            .infer = infer_given_shape,
                            .gradient =
                                [](const GradContext& c, Grads g) {
                                  int64_t dim = c.attrs.get_int("dim"),
                                          start = c.attrs.get_int("start"),
                                          step = c.attrs.get_int("step");
                                  int64_t length = c.input_shape(0)[at(dim)];
                                  g[0] = slice(c.grad(), dim, start, start + length * step, step);
                                },
                            .decompose = decompose_slice_backward}};

const Op select_op{{.name = "select",
                    .gradient =
                        [](const GradContext& c, Grads g) {
                          int64_t dim = c.attrs.get_int("dim");
                          g[0] = slice_backward(unsqueeze(c.grad(), dim), c.input_shape(0), dim,
                                                c.attrs.get_int("index"), 1);
                        },
                    .execute =
                        [](const Call& call, Outputs& out) {
                          auto& x = impl_of(call.in(0));
                          size_t dim = at(call.attrs.get_int("dim"));
                          Shape shape = x.shape, strides = x.strides;
                          int64_t offset = call.attrs.get_int("index") * strides[dim];
                          shape.erase(dim);
                          strides.erase(dim);
                          out.push_back(
                              view_of(call.in(0), shape, strides, shape.numel() > 0 ? offset : 0));
                        }}};

const Op unsqueeze_op{
    {.name = "unsqueeze",
     .gradient = [](const GradContext& c,
                    Grads g) { g[0] = squeeze(c.grad(), c.attrs.get_int("dim")); },
     .execute =
         [](const Call& call, Outputs& out) {
           auto& x = impl_of(call.in(0));
           size_t dim = at(call.attrs.get_int("dim"));
           Shape shape = x.shape, strides = x.strides;
           strides.insert(dim, dim < shape.size() ? shape[dim] * strides[dim] : 1);
           shape.insert(dim, 1);
           out.push_back(view_of(call.in(0), shape, strides));
         }}};

const Op squeeze_op{
    {.name = "squeeze",
     .gradient = [](const GradContext& c,
                    Grads g) { g[0] = unsqueeze(c.grad(), c.attrs.get_int("dim")); },
     .execute =
         [](const Call& call, Outputs& out) {
           auto& x = impl_of(call.in(0));
           size_t dim = at(call.attrs.get_int("dim"));
           Shape shape = x.shape, strides = x.strides;
           shape.erase(dim);
           strides.erase(dim);
           out.push_back(view_of(call.in(0), shape, strides));
         }}};

Tensor slice_backward(const Tensor& gradient, const Shape& shape, int64_t dim, int64_t start,
                      int64_t step) {
  return run_as(shape, slice_backward_op, {&gradient},
                Attrs().set("dim", dim).set("start", start).set("step", step));
}

Tensor run_slice(const Tensor& x, int64_t dim, int64_t start, int64_t length, int64_t step) {
  return run(slice_op, {&x},
             Attrs().set("dim", dim).set("start", start).set("step", step).set("length", length));
}

}  // namespace

Tensor view(const Tensor& x, const Shape& shape) {
  require_tensor("view", x);
  if (shape == shape_of(x)) return x;
  return run(view_op, {&x}, Attrs().set("shape", complete_shape("view", x, shape)));
}

Tensor reshape(const Tensor& x, const Shape& shape) {
  require_tensor("reshape", x);
  if (shape == shape_of(x)) return x;
  Shape full = complete_shape("reshape", x, shape);
  if (strides_for(impl_of(x), full)) return run(view_op, {&x}, Attrs().set("shape", full));
  Tensor copy = x.contiguous();
  return run(view_op, {&copy}, Attrs().set("shape", full));
}

Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  require_tensor("flatten", x);
  const Shape& from = shape_of(x);
  if (from.empty()) return reshape(x, {1});
  int64_t rank = static_cast<int64_t>(from.size());
  int64_t start = wrap_dim(start_dim, rank, "flatten"), end = wrap_dim(end_dim, rank, "flatten");
  if (start > end)
    throw ValueError("flatten: start_dim " + std::to_string(start_dim) + " comes after end_dim " +
                     std::to_string(end_dim) + " for a tensor of shape " + from.str());
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
    throw ValueError("permute: dims " + dims.str() +
                     " must hold each dimension of a tensor of shape " + shape_of(x).str() +
                     " once");
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
  int64_t wrapped = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()) + 1, "unsqueeze");
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
    throw ShapeError("expand: cannot expand shape " + from.str() + " to " + shape.str() + ": " +
                     why);
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
  if (!is_addressable(full)) refuse_extent("expand: from " + from.str(), full);
  return run(expand_op, {&x}, Attrs().set("shape", full));
}

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  require_tensor("narrow", x);
  int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "narrow"),
          size = shape_of(x)[at(d)];
  int64_t from = start < 0 ? start + size : start;
  if (from < 0 || length < 0 || from > size || length > size - from)
    throw IndexError("narrow: start " + std::to_string(start) + " and length " +
                     std::to_string(length) + " do not lie within dim " + std::to_string(dim) +
                     " of shape " + shape_of(x).str());
  return run_slice(x, d, from, length, 1);
}

Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  require_tensor("slice", x);
  int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "slice"),
          size = shape_of(x)[at(d)];
  if (step <= 0) throw ValueError("slice: step must be positive, found " + std::to_string(step));
  auto bound = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  int64_t first = bound(start), last = bound(end);
  int64_t length = last > first ? (last - first - 1) / step + 1 : 0;
  return run_slice(x, d, first, length, length > 1 ? step : 1);
}

Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  require_tensor("select", x);
  int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "select"),
          size = shape_of(x)[at(d)];
  int64_t wrapped = index < 0 ? index + size : index;
  if (wrapped < 0 || wrapped >= size)
    throw IndexError("select: index " + std::to_string(index) + " is out of range for dim " +
                     std::to_string(dim) + " of shape " + shape_of(x).str());
  return run(select_op, {&x}, Attrs().set("dim", d).set("index", wrapped));
}

Tensor Tensor::reshape(Shape shape) const { return tenon::reshape(*this, shape); }
Tensor Tensor::view(Shape shape) const { return tenon::view(*this, shape); }
Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const {
  return tenon::flatten(*this, start_dim, end_dim);
}
Tensor Tensor::transpose(int64_t a, int64_t b) const { return tenon::transpose(*this, a, b); }
Tensor Tensor::permute(std::initializer_list<int64_t> dims) const {
  return tenon::permute(*this, Shape(dims));
}
Tensor Tensor::unsqueeze(int64_t dim) const { return tenon::unsqueeze(*this, dim); }
Tensor Tensor::squeeze(int64_t dim) const { return tenon::squeeze(*this, dim); }
Tensor Tensor::expand(Shape shape) const { return tenon::expand(*this, shape); }
Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  return tenon::narrow(*this, dim, start, length);
}
Tensor Tensor::slice(int64_t dim, int64_t start, int64_t end, int64_t step) const {
  return tenon::slice(*this, dim, start, end, step);
}
Tensor Tensor::select(int64_t dim, int64_t index) const { return tenon::select(*this, dim, index); }

Tensor Tensor::t() const {
  require_tensor("t", *this);
  if (dim() > 2)
    throw ShapeError("t: expects a matrix, found shape " + shape().str() +
                     "; use transpose or permute");
  return dim() < 2 ? *this : tenon::transpose(*this, 0, 1);
}

}  // namespace tenon
