// gather (core/ops/indexing.h).
#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/indexing/indexing.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

void gather_backward_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = gather(c.grad(), c.attrs.get_int("dim"), c.input(1));
}
// | `gather_backward` | g, index -> gx | `dim` | adds |
const Op gather_backward_op{{
    .name = "gather_backward",
    .infer = infer_given_shape,
    .gradient = gather_backward_gradient,
    .saves_inputs = 2,
}};

void infer_gather(Infer& infer) {
  const Shape &x = shape_of(infer.in(0)), &index = shape_of(infer.in(1));
  size_t dim = static_cast<size_t>(infer.attrs.get_int("dim"));
  bool fits = x.size() == index.size();
  for (size_t d = 0; fits && d < x.size(); ++d) fits = d == dim || index[d] <= x[d];
  if (!fits)
    infer.shape_error(
        fmt::format("index has shape {}, which must have as many dimensions as the input's {} and "
                    "be no larger except along dim {}",
                    index, x, dim));
  infer.output(dtype_of(infer.in(0)), index);
}
void gather_gradient(const GradContext& c, Grads g) {
  if (c.needs(0)) g[0] = add_at(c.input_shape(0), c.grad(), c.attrs.get_int("dim"), c.input(1));
}
// | `gather` | x, index -> y | `dim` | index has y's shape; range as embedding; any dtype |
const Op gather_op{{
    .name = "gather",
    .inputs = "x index",
    .infer = infer_gather,
    .gradient = gather_gradient,
    .saves_inputs = 2,
}};

}  // namespace

Tensor add_at(const Shape& shape, const Tensor& values, int64_t dim, const Tensor& index) {
  if (shape.empty()) return values.reshape({});
  return run_adding(gather_backward_op, shape, values, dim, index);
}

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) {
  require_defined("gather", {{"x", x}, {"index", index}});
  require_index("gather", index, "index");
  if (shape_of(x).empty() && shape_of(index).empty()) {
    wrap_dim(dim, 1, "gather");
    return gather(x.reshape({1}), 0, index.reshape({1})).reshape({});
  }
  int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), "gather");
  return run(gather_op, {&x, &index}, Attrs().set("dim", d));
}

}  // namespace tenon
