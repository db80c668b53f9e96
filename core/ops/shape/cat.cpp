// Joining and splitting along a dimension (core/ops/shape.h).
#include <algorithm>

#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

void infer_cat(Infer& infer) {
  size_t dim = static_cast<size_t>(infer.attrs.get_int("dim"));
  Shape shape = shape_of(infer.in(0));
  for (size_t i = 1; i < infer.size(); ++i) {
    const Shape& other = shape_of(infer.in(i));
    bool fits = other.size() == shape.size();
    for (size_t d = 0; fits && d < shape.size(); ++d) fits = d == dim || other[d] == shape[d];
    if (!fits)
      infer.shape_error(
          fmt::format("tensor {} has shape {}, which does not continue {} along dim {}; all other "
                      "dimensions must be equal",
                      i, other, shape_of(infer.in(0)), dim));
    if (__builtin_add_overflow(shape[dim], other[dim], &shape[dim]))
      infer.shape_error(fmt::format(
          "the sizes of {} tensors like {} along dim {} add up to more than can be addressed",
          infer.size(), other, dim));
  }
  infer.output(dtype_of(infer.in(0)), shape);
}

void cat_gradient(const GradContext& c, Grads g) {
  int64_t dim = c.attrs.get_int("dim"), start = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    int64_t length = c.input_shape(i)[static_cast<size_t>(dim)];
    if (c.needs(i)) g[i] = narrow(c.grad(), dim, start, length);
    start += length;
  }
}

void decompose_cat(const Call& call, Outputs& out) {
  int64_t dim = call.attrs.get_int("dim"), start = 0;
  Shape shape = shape_of(call.in(0));
  shape[static_cast<size_t>(dim)] = 0;
  for (auto* t : call.inputs) shape[static_cast<size_t>(dim)] += t->size(dim);
  Tensor result = allocate_tensor(shape, dtype_of(call.in(0)), call.in(0).device());
  for (auto* t : call.inputs) {
    write_part(narrow(result, dim, start, t->size(dim)), *t);
    start += t->size(dim);
  }
  out.push_back(result);
}

// | `cat` | x0, x1, … -> y | `dim` | any |
const Op cat_op{{
    .name = "cat",
    .infer = infer_cat,
    .gradient = cat_gradient,
    .autocast = AutocastRule::widest,
    .decompose = decompose_cat,
}};

// Each piece is a tensor of its own, so a number far beyond what anybody uses is refused before it
// takes all memory.
void require_few_pieces(const char* op, int64_t pieces, int64_t dim, const Shape& shape) {
  constexpr int64_t most = int64_t{1} << 24;
  if (pieces > most)
    throw ValueError(fmt::format(
        "{}: dim {} of shape {} would be split into {} pieces, and at most {} are made; "
        "take larger ones",
        op, dim, shape, pieces, most));
}

std::vector<Tensor> split_evenly(const char* op, const Tensor& x, int64_t size, int64_t dim) {
  const int64_t total = shape_of(x)[static_cast<size_t>(dim)];
  if (total == 0) return {x};
  require_few_pieces(op, (total - 1) / size + 1, dim, shape_of(x));
  std::vector<Tensor> pieces;
  for (int64_t start = 0; start < total;) {
    const int64_t length = std::min(size, total - start);
    pieces.push_back(narrow(x, dim, start, length));
    start += length;
  }
  return pieces;
}

// Whether x has shape (0,), which may stand beside tensors of any shape, as in PyTorch.
bool is_nothing(const Tensor& x) { return shape_of(x) == Shape{0}; }

// The format of channels that all have, or contiguous_format.
MemoryFormat format_of_all(const std::vector<Tensor>& tensors) {
  const MemoryFormat format = tensors[0].suggest_memory_format();
  for (auto& t : tensors)
    if (t.suggest_memory_format() != format) return contiguous_format;
  return format;
}

}  // namespace

Tensor cat(std::span<const Tensor> tensors, int64_t dim) {
  if (tensors.empty()) throw ValueError("cat: needs at least one tensor");
  for (size_t i = 0; i < tensors.size(); ++i) require_tensor("cat", tensors[i], "tensors", i);
  DType dtype = dtype_of(tensors[0]);
  for (auto& t : tensors) dtype = promote(dtype, dtype_of(t));
  const auto first = std::find_if_not(tensors.begin(), tensors.end(), is_nothing);
  const Shape& shape = shape_of(first == tensors.end() ? tensors[0] : *first);
  if (shape.empty())
    throw ShapeError("cat: tensors without dimensions cannot be joined; use stack");
  const int64_t wrapped = wrap_dim(dim, static_cast<int64_t>(shape.size()), "cat");

  Shape none = shape;
  none[static_cast<size_t>(wrapped)] = 0;
  std::vector<Tensor> kept;
  kept.reserve(tensors.size());
  for (auto& t : tensors) {
    if (!is_nothing(t))
      kept.push_back(t.to(dtype));
    else if (first == tensors.end() || wants_gradient(t))
      kept.push_back(t.to(dtype).reshape(none));  // so that it gets a gradient, without elements
  }
  std::vector<const Tensor*> inputs;
  inputs.reserve(kept.size());
  for (auto& t : kept) inputs.push_back(&t);
  return run_all({cat_op,
                  inputs,
                  Attrs().set("dim", wrapped),
                  {},
                  ~0u,
                  nullptr,
                  nullptr,
                  format_of_all(kept)})[0];
}

Tensor cat(const std::vector<Tensor>& tensors, int64_t dim) {
  return cat(std::span<const Tensor>(tensors), dim);
}

Tensor stack(std::span<const Tensor> tensors, int64_t dim) try {
  if (tensors.empty()) throw ValueError("stack: needs at least one tensor");
  require_tensor("stack", tensors[0], "tensors", 0);
  const int64_t place =
      wrap_new_dim(dim, static_cast<int64_t>(shape_of(tensors[0]).size()), "stack");
  std::vector<Tensor> rows;
  rows.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    require_tensor("stack", tensors[i], "tensors", i);
    if (!(shape_of(tensors[i]) == shape_of(tensors[0])))
      throw ShapeError(
          fmt::format("stack: tensor {} has shape {}, the first has {}; all must be equal", i,
                      shape_of(tensors[i]), shape_of(tensors[0])));
    rows.push_back(unsqueeze(tensors[i], place));
  }
  return cat(rows, place);
} catch (const Error&) {
  rethrow_in("stack");
}

Tensor stack(const std::vector<Tensor>& tensors, int64_t dim) {
  return stack(std::span<const Tensor>(tensors), dim);
}

std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim) {
  require_tensor("split", x);
  int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "split"),
          total = shape_of(x)[static_cast<size_t>(d)];
  if (size < 0 || (size == 0 && total > 0))
    throw ValueError(fmt::format("split: size must be positive, found {}", size));
  return split_evenly("split", x, size, d);
}

std::vector<Tensor> split(const Tensor& x, const Shape& sizes, int64_t dim) {
  require_tensor("split", x);
  int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "split"), total = 0;
  bool fits = true;
  for (int64_t size : sizes)
    fits = fits && size >= 0 && !__builtin_add_overflow(total, size, &total);
  if (!fits || total != shape_of(x)[static_cast<size_t>(d)])
    throw ValueError(fmt::format(
        "split: sizes {} {}, but must be 0 or more and add up to {}, dim {} of shape {}", sizes,
        fits ? fmt::format("add up to {}", total) : "do not add up",
        shape_of(x)[static_cast<size_t>(d)], dim, shape_of(x)));
  std::vector<Tensor> pieces;
  int64_t start = 0;
  for (int64_t size : sizes) {
    pieces.push_back(narrow(x, d, start, size));
    start += size;
  }
  return pieces;
}

std::vector<Tensor> unbind(const Tensor& x, int64_t dim) {
  require_tensor("unbind", x);
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "unbind"),
                count = shape_of(x)[static_cast<size_t>(d)];
  require_few_pieces("unbind", count, d, shape_of(x));
  std::vector<Tensor> slices;
  for (int64_t i = 0; i < count; ++i) slices.push_back(select(x, d, i));
  return slices;
}

std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t dim) {
  require_tensor("tensor_split", x);
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "tensor_split"),
                total = shape_of(x)[static_cast<size_t>(d)];
  if (sections <= 0)
    throw ValueError(
        fmt::format("tensor_split: the number of sections must be positive, found {}", sections));
  require_few_pieces("tensor_split", sections, d, shape_of(x));
  std::vector<Tensor> pieces;
  for (int64_t i = 0, start = 0; i < sections; ++i) {
    const int64_t length = total / sections + (i < total % sections);
    pieces.push_back(narrow(x, d, start, length));
    start += length;
  }
  return pieces;
}

std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<int64_t>& indices,
                                 int64_t dim) {
  require_tensor("tensor_split", x);
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "tensor_split");
  std::vector<Tensor> pieces;
  int64_t start = 0;
  for (int64_t end : indices) {
    pieces.push_back(slice(x, d, start, end));
    start = end;
  }
  pieces.push_back(slice(x, d, start, shape_of(x)[static_cast<size_t>(d)]));
  return pieces;
}

namespace {

std::vector<Tensor> each(const char* op, const std::vector<Tensor>& tensors,
                         Tensor (*change)(const Tensor&)) {
  if (tensors.empty()) throw ValueError(fmt::format("{}: needs at least one tensor", op));
  std::vector<Tensor> changed;
  for (size_t i = 0; i < tensors.size(); ++i) {
    require_tensor(op, tensors[i], "tensors", i);
    changed.push_back(change(tensors[i]));
  }
  return changed;
}

// A vector as a column; a matrix as it is.
Tensor as_columns(const Tensor& x) {
  return shape_of(x).size() < 2 ? unsqueeze(atleast_1d(x), 1) : x;
}

}  // namespace

Tensor hstack(const std::vector<Tensor>& tensors) try {
  const auto parts = each("hstack", tensors, atleast_1d);
  return cat(parts, shape_of(parts[0]).size() == 1 ? 0 : 1);
} catch (const Error&) {
  rethrow_in("hstack");
}
Tensor vstack(const std::vector<Tensor>& tensors) try {
  return cat(each("vstack", tensors, atleast_2d), 0);
} catch (const Error&) {
  rethrow_in("vstack");
}
Tensor dstack(const std::vector<Tensor>& tensors) try {
  return cat(each("dstack", tensors, atleast_3d), 2);
} catch (const Error&) {
  rethrow_in("dstack");
}
Tensor column_stack(const std::vector<Tensor>& tensors) try {
  return cat(each("column_stack", tensors, as_columns), 1);
} catch (const Error&) {
  rethrow_in("column_stack");
}

Tensor block_diag(const std::vector<Tensor>& tensors) try {
  const auto blocks = each("block_diag", tensors, atleast_2d);
  int64_t width = 0, before = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Shape& shape = shape_of(blocks[i]);
    if (shape.size() > 2)
      throw ShapeError(
          fmt::format("block_diag: tensor {} has shape {}, but must be a matrix", i, shape));
    width += shape[1];
  }
  std::vector<Tensor> rows;
  for (auto& block : blocks) {
    const int64_t behind = width - before - shape_of(block)[1];
    rows.push_back(pad(block, {before, behind}));
    before += shape_of(block)[1];
  }
  return cat(rows, 0);
} catch (const Error&) {
  rethrow_in("block_diag");
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  require_tensor("chunk", x);
  if (chunks <= 0)
    throw ValueError(fmt::format("chunk: the number of chunks must be positive, found {}", chunks));
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "chunk"),
                total = shape_of(x)[static_cast<size_t>(d)];
  if (total > 0) return split_evenly("chunk", x, (total - 1) / chunks + 1, d);
  require_few_pieces("chunk", chunks, d, shape_of(x));
  return std::vector<Tensor>(static_cast<size_t>(chunks),
                             x.slice(d, 0, 0));  // as many as were asked for
}

}  // namespace tenon
