#include <tenon/core/format.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/linalg/matrices.h>

namespace tenon {

void require_matrices(const char* op, const Tensor& x, const char* name) {
  require_tensor(op, x, name);
  if (shape_of(x).size() < 2)
    throw ShapeError(fmt::format("{}: expects matrices (…, m, n), found shape {} for {}", op,
                                 shape_of(x), name));
  if (dtype_of(x) != DType::f32 && dtype_of(x) != DType::f64)
    throw DTypeError(fmt::format("{}: {} needs f32 or f64, found {}; {}", op, name, dtype_of(x),
                                 conversion_to(DType::f32)));
}

void require_square(const char* op, const Tensor& x, const char* name) {
  require_matrices(op, x, name);
  if (shape_of(x)[-1] != shape_of(x)[-2])
    throw ShapeError(fmt::format("{}: expects square matrices (…, n, n), found shape {} for {}", op,
                                 shape_of(x), name));
}

Tensor unit_like(const Tensor& x, int64_t n) {
  const NoGrad guard;
  return eye(n, {.dtype = dtype_of(x), .device = x.device()});
}

Shape batches_of(const Tensor& x) {
  return Shape(shape_of(x).span().first(shape_of(x).size() - 2));
}

Shape matrices_of(Shape batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

Tensor as_matrices(const Tensor& x) { return unsqueeze(unsqueeze(x, -1), -1); }

Tensor run_system(const Op& op, const Tensor& a, const Tensor& b, const Attrs& attrs) {
  const Shape batch_a = batches_of(a), batch_b = batches_of(b);
  if (batch_a == batch_b) return run(op, {&a, &b}, attrs);
  if (batch_a.empty()) {
    const Tensor rows = movedim(b, -2, 0);
    const Shape& shape = shape_of(rows);
    const int64_t columns = Shape(shape.span().subspan(1)).numel();
    const Tensor flat = reshape(rows, {shape[0], columns});
    return movedim(reshape(run(op, {&a, &flat}, attrs), shape), 0, -2);
  }
  const Shape batch = broadcast_shapes(batch_a, batch_b, op.name);
  const Tensor left = expand(a, matrices_of(batch, shape_of(a)[-2], shape_of(a)[-1])),
               right = expand(b, matrices_of(batch, shape_of(b)[-2], shape_of(b)[-1]));
  return run(op, {&left, &right}, attrs);
}

void require_system(const char* op, const Tensor& a, const Tensor& b, bool left) {
  require_tensor(op, b, "b");
  require_same_dtype(op, {"a", a}, {"b", b});
  const Shape &sa = shape_of(a), &sb = shape_of(b);
  if (sb.size() < 2 || sb[left ? -2 : -1] != sa[left ? -2 : -1])
    throw ShapeError(fmt::format(
        "{}: a matrix of shape {} and a right-hand side of shape {} do not fit: that needs shape "
        "{}",
        op, sa, sb, left ? fmt::format("(…, {}, k)", sa[-2]) : fmt::format("(…, k, {})", sa[-1])));
}

bool is_vector_for(const Tensor& a, const Tensor& b) {
  const Shape &sa = shape_of(a), &sb = shape_of(b);
  return sb.size() == 1 || (sb.size() + 1 == sa.size() && sb == Shape(sa.span().first(sb.size())));
}

}  // namespace tenon
