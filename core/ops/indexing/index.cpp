#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

using Grads = std::span<Tensor>;

// ---- embedding ----

Tensor lookup(const Tensor& weight, const Tensor& indices, int64_t padding_idx);
void decompose_embedding_backward(const Call& call, Outputs& out);

const Op embedding_backward_op{
    {.name = "embedding_backward",
     .infer = infer_given_shape,
     .gradient =
         [](const GradContext& c, Grads g) {
           if (!c.needs(0)) return;
           int64_t padding = c.attrs.get_int("padding_idx");
           const Tensor& indices = c.input(1);
           Tensor rows = lookup(c.grad(), indices, padding);
           // Rows of the padding index passed nothing on.
           g[0] = padding < 0 ? rows : where(unsqueeze(eq(indices, padding), -1), 0.0, rows);
         },
     .saves_inputs = 2,
     .decompose = decompose_embedding_backward}};

const Op embedding_op{
    {.name = "embedding",
     .infer =
         [](Infer& infer) {
           Shape shape = shape_of(infer.in(1));
           shape.push_back(shape_of(infer.in(0))[1]);
           infer.output(dtype_of(infer.in(0)), shape);
         },
     .gradient =
         [](const GradContext& c, Grads g) {
           if (!c.needs(0)) return;
           g[0] =
               run_as(c.input_shape(0), embedding_backward_op, {&c.grad(), &c.input(1)}, c.attrs);
         },
     .saves_inputs = 2,
     .decompose =
         [](const Call& call, Outputs& out) {
           Shape shape = shape_of(call.in(1));
           shape.push_back(shape_of(call.in(0))[1]);
           out.push_back(index_select(call.in(0), 0, flatten(call.in(1))).reshape(shape));
         }}};

Tensor lookup(const Tensor& weight, const Tensor& indices, int64_t padding_idx) {
  return run(embedding_op, {&weight, &indices}, Attrs().set("padding_idx", padding_idx));
}

// ---- index_select and gather: linear in x ----

const Op index_select_backward_op{{.name = "index_select_backward",
                                   .infer = infer_given_shape,
                                   .gradient =
                                       [](const GradContext& c, Grads g) {
                                         if (c.needs(0))
                                           g[0] = index_select(c.grad(), c.attrs.get_int("dim"),
                                                               c.input(1));
                                       },
                                   .saves_inputs = 2}};

const Op index_select_op{{.name = "index_select",
                          .infer =
                              [](Infer& infer) {
                                Shape shape = shape_of(infer.in(0));
                                shape[static_cast<size_t>(infer.attrs.get_int("dim"))] =
                                    shape_of(infer.in(1))[0];
                                infer.output(dtype_of(infer.in(0)), shape);
                              },
                          .gradient =
                              [](const GradContext& c, Grads g) {
                                if (c.needs(0))
                                  g[0] = run_as(c.input_shape(0), index_select_backward_op,
                                                {&c.grad(), &c.input(1)}, c.attrs);
                              },
                          .saves_inputs = 2}};

void decompose_embedding_backward(const Call& call, Outputs& out) {
  const Shape& shape = *call.shape;
  Tensor indices = flatten(call.in(1)), rows = call.in(0).reshape({indices.numel(), shape[1]});
  int64_t padding = call.attrs.get_int("padding_idx");
  if (padding >= 0) rows = where(unsqueeze(eq(indices, padding), 1), 0.0, rows);
  out.push_back(run_as(shape, index_select_backward_op, {&rows, &indices}, Attrs().set("dim", 0)));
}

const Op gather_backward_op{{.name = "gather_backward",
                             .infer = infer_given_shape,
                             .gradient =
                                 [](const GradContext& c, Grads g) {
                                   if (c.needs(0))
                                     g[0] = gather(c.grad(), c.attrs.get_int("dim"), c.input(1));
                                 },
                             .saves_inputs = 2}};

void infer_gather(Infer& infer) {
  const Shape &x = shape_of(infer.in(0)), &index = shape_of(infer.in(1));
  size_t dim = static_cast<size_t>(infer.attrs.get_int("dim"));
  bool fits = x.size() == index.size();
  for (size_t d = 0; fits && d < x.size(); ++d) fits = d == dim || index[d] <= x[d];
  if (!fits)
    infer.shape_error("index has shape " + index.str() +
                      ", which must have as many dimensions as the input's " + x.str() +
                      " and be no larger but along dim " + std::to_string(dim));
  infer.output(dtype_of(infer.in(0)), index);
}

const Op gather_op{
    {.name = "gather",
     .infer = infer_gather,
     .gradient =
         [](const GradContext& c, Grads g) {
           if (c.needs(0))
             g[0] = run_as(c.input_shape(0), gather_backward_op, {&c.grad(), &c.input(1)}, c.attrs);
         },
     .saves_inputs = 2}};

}  // namespace

Tensor embedding(const Tensor& indices, const Tensor& weight, int64_t padding_idx) {
  require_defined("embedding", {&indices, &weight});
  require_index("embedding", indices, "indices");
  const Shape& table = shape_of(weight);
  if (table.size() != 2)
    throw ShapeError("embedding: weight must have shape (v, d), found " + table.str());
  if (padding_idx < -1 || padding_idx >= table[0])
    throw IndexError("embedding: padding_idx " + std::to_string(padding_idx) + " must lie in [0, " +
                     std::to_string(table[0]) + "), or be -1 for none");
  return lookup(weight, indices, padding_idx);
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  require_defined("index_select", {&x, &index});
  require_index("index_select", index, "index");
  if (shape_of(index).size() > 1)
    throw ShapeError("index_select: index must have one dimension, found shape " +
                     shape_of(index).str());
  int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "index_select");
  Tensor list = shape_of(index).empty() ? index.reshape({1}) : index;
  return run(index_select_op, {&x, &list}, Attrs().set("dim", d));
}

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) {
  require_defined("gather", {&x, &index});
  require_index("gather", index, "index");
  if (shape_of(x).empty() && shape_of(index).empty()) {
    wrap_dim(dim, 1, "gather");
    return gather(x.reshape({1}), 0, index.reshape({1})).reshape({});
  }
  int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "gather");
  return run(gather_op, {&x, &index}, Attrs().set("dim", d));
}

}  // namespace tenon
