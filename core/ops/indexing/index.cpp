// Selection by index (core/ops/indexing.h).
#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/indexing/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// ---- index_select and gather, which are linear in x ----

void index_select_backward_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = index_select(c.grad(), c.attrs.get_int("dim"), c.input(1));
}
// | `index_select_backward` | g, index -> gx | `dim` | adds |
const Op index_select_backward_op{{
    .name = "index_select_backward",
    .infer = infer_given_shape,
    .gradient = index_select_backward_gradient,
    .saves_inputs = 2,
}};

void infer_index_select(Infer& infer) {
  Shape shape = shape_of(infer.in(0));
  shape[static_cast<size_t>(infer.attrs.get_int("dim"))] = shape_of(infer.in(1))[0];
  infer.output(dtype_of(infer.in(0)), shape);
}
void index_select_gradient(const GradContext& c, Grads g) {
  if (c.needs(0))
    g[0] = add_slices_at(c.input_shape(0), c.grad(), c.attrs.get_int("dim"), c.input(1));
}
// | `index_select` | x, index(k) i64/i32 -> y | `dim` | range as embedding; any dtype |
const Op index_select_op{{
    .name = "index_select",
    .inputs = "x index",
    .infer = infer_index_select,
    .gradient = index_select_gradient,
    .saves_inputs = 2,
}};

// ---- embedding ----

Tensor look_up(const Tensor& weight, const Tensor& indices, int64_t padding_idx);

void embedding_backward_gradient(const GradContext& c, Grads g) {
  if (!c.needs(0)) return;
  int64_t padding = c.attrs.get_int("padding_idx");
  const Tensor& indices = c.input(1);
  Tensor rows = look_up(c.grad(), indices, padding);
  // The row of the padding index has no gradient.
  g[0] = padding < 0 ? rows : where(unsqueeze(eq(indices, padding), -1), 0.0, rows);
}
void decompose_embedding_backward(const Call& call, Outputs& out) {
  const Shape& shape = *call.shape;
  Tensor indices = flatten(call.in(1)), rows = call.in(0).reshape({indices.numel(), shape[1]});
  int64_t padding = call.attrs.get_int("padding_idx");
  if (padding >= 0) rows = where(unsqueeze(eq(indices, padding), 1), 0.0, rows);
  out.push_back(run_as(shape, index_select_backward_op, {&rows, &indices}, Attrs().set("dim", 0)));
}
// | `embedding_backward` | g(…,d), indices -> gweight(v,d) | `padding_idx` int, -1 for none | rows
//   equal to padding_idx get no gradient; adds in index order (deterministic) |
const Op embedding_backward_op{{
    .name = "embedding_backward",
    .infer = infer_given_shape,
    .gradient = embedding_backward_gradient,
    .saves_inputs = 2,
    .decompose = decompose_embedding_backward,
}};

// (…, d) for indices (…) and a weight (v, d).
Shape looked_up_shape(Shape indices, const Shape& weight) {
  indices.push_back(weight[1]);
  return indices;
}
void infer_embedding(Infer& infer) {
  infer.output(dtype_of(infer.in(0)),
               looked_up_shape(shape_of(infer.in(1)), shape_of(infer.in(0))));
}
void embedding_gradient(const GradContext& c, Grads g) {
  if (c.needs(0))
    g[0] = run_as(c.input_shape(0), embedding_backward_op, {&c.grad(), &c.input(1)}, c.attrs);
}
void decompose_embedding(const Call& call, Outputs& out) {
  const Tensor &weight = call.in(0), &indices = call.in(1);
  out.push_back(index_select(weight, 0, flatten(indices))
                    .reshape(looked_up_shape(shape_of(indices), shape_of(weight))));
}
// | `embedding` | weight(v,d), indices(…) i64/i32 -> y(…,d) | | index outside [0,v):
//   TN_CODE_OUT_OF_RANGE, naming position, index and v |
const Op embedding_op{{
    .name = "embedding",
    .inputs = "weight indices",
    .infer = infer_embedding,
    .gradient = embedding_gradient,
    .saves_inputs = 2,
    .core_attr = "padding_idx",
    .decompose = decompose_embedding,
}};

Tensor look_up(const Tensor& weight, const Tensor& indices, int64_t padding_idx) {
  return run(embedding_op, {&weight, &indices}, Attrs().set("padding_idx", padding_idx));
}

}  // namespace

Tensor run_adding(const Op& op, const Shape& shape, const Tensor& values, int64_t dim,
                  const Tensor& index) {
  const Attrs attrs = Attrs().set("dim", dim);
  if (!is_half(values)) return run_as(shape, op, {&values, &index}, attrs);
  const Tensor wide = values.to(DType::f32);
  return run_as(shape, op, {&wide, &index}, attrs).to(dtype_of(values));
}

Tensor add_slices_at(const Shape& shape, const Tensor& values, int64_t dim, const Tensor& index) {
  return run_adding(index_select_backward_op, shape, values, dim, index);
}

Tensor embedding(const Tensor& indices, const Tensor& weight, int64_t padding_idx) {
  require_defined("embedding", {{"indices", indices}, {"weight", weight}});
  require_index("embedding", indices, "indices");
  const Shape& table = shape_of(weight);
  if (table.size() != 2)
    throw ShapeError(fmt::format("embedding: weight must have shape (v, d), found {}", table));
  if (padding_idx < -1 || padding_idx >= table[0])
    throw IndexError(fmt::format("embedding: padding_idx {} must lie in [0, {}), or be -1 for none",
                                 padding_idx, table[0]));
  return look_up(weight, indices, padding_idx);
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  require_defined("index_select", {{"x", x}, {"index", index}});
  require_index("index_select", index, "index");
  if (shape_of(index).size() > 1)
    throw ShapeError(fmt::format("index_select: index must have one dimension, found shape {}",
                                 shape_of(index)));
  int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "index_select");
  Tensor list = shape_of(index).empty() ? index.reshape({1}) : index;
  return run(index_select_op, {&x, &list}, Attrs().set("dim", d));
}

}  // namespace tenon
