// argmax and argmin (core/ops/reduction.h).
#include <tenon/core/format.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

void infer_argument(Infer& infer) {
  const Shape& shape = shape_of(infer.in(0));
  infer.require_dtype(dtype_of(infer.in(0)) != DType::boolean, 0, "a floating or integer type",
                      DType::i64);
  size_t dim = static_cast<size_t>(infer.attrs.get_int("dim"));
  if (shape[dim] == 0)
    throw ValueError(
        fmt::format("{}: a tensor of shape {} has no elements to choose from along dim {}",
                    infer.op.name, shape, dim));
  Shape result = shape;
  result.erase(dim);
  infer.output(DType::i64, result);
}
// | `argmax argmin` | x -> y(i64) | `dim` | first of equals; NaN wins |
const Op argmax_op{{.name = "argmax", .infer = infer_argument}};
const Op argmin_op{{.name = "argmin", .infer = infer_argument}};

Tensor argument(const Op& op, const Tensor& x, int64_t dim, bool keepdim) {
  require_tensor(op.name, x);
  if (shape_of(x).empty()) {
    wrap_dim(dim, 1, op.name);
    return argument(op, x.reshape({1}), 0, false);
  }
  int64_t d = wrap_dim(dim, static_cast<int64_t>(shape_of(x).size()), op.name);
  Tensor y = run(op, {&x}, Attrs().set("dim", d));
  return keepdim ? unsqueeze(y, d) : y;
}

}  // namespace

Tensor argmax(const Tensor& x) { return argument(argmax_op, flatten(x), 0, false); }
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim) {
  return argument(argmax_op, x, dim, keepdim);
}
Tensor argmin(const Tensor& x) { return argument(argmin_op, flatten(x), 0, false); }
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim) {
  return argument(argmin_op, x, dim, keepdim);
}

Tensor Tensor::argmax(int64_t dim, bool keepdim) const {
  return tenon::argmax(*this, dim, keepdim);
}

}  // namespace tenon
