// Arithmetic that changes a tensor (core/tensor.h).
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

void check_target(const char* op, const Tensor& target) {
  require_tensor(op, target);
  require_mutable(op, target);
}

void check_operand(const char* op, const Tensor& other) {
  require_tensor(op, other, 1);
  if (wants_gradient(other))
    throw AutogradError(fmt::format(
        "{}: the operand requires a gradient, but changing a tensor in place is not "
        "recorded; use its .detach(), tenon::NoGrad, or the operator that returns a new "
        "tensor",
        op));
}

// Writes the result, which must be one that the target holds.
Tensor& write(const char* op, Tensor& target, const Tensor& result) {
  const DType from = dtype_of(result), to = dtype_of(target);
  const bool loses = (is_floating_point(from) && !is_floating_point(to)) ||
                     (from != DType::boolean && to == DType::boolean);
  if (loses)
    throw DTypeError(fmt::format("{}: the result is {}, but the tensor that it changes is {}; {}",
                                 op, from, to, conversion_to(from)));
  if (!(shape_of(result) == shape_of(target)))
    throw ShapeError(fmt::format("{}: the result has shape {}, but the tensor that it changes {}",
                                 op, shape_of(result), shape_of(target)));
  return target.copy_(result);
}

template <class Other>
Tensor& change(const char* op, Tensor& target, const Other& other,
               Tensor (*compute)(const Tensor&, Other)) {
  check_target(op, target);
  return write(op, target, compute(target, other));
}
Tensor& change(const char* op, Tensor& target, const Tensor& other,
               Tensor (*compute)(const Tensor&, const Tensor&)) {
  check_target(op, target);
  check_operand(op, other);
  return write(op, target, compute(target, other));
}

}  // namespace

Tensor& Tensor::add_(const Tensor& other) { return change("add_", *this, other, tenon::add); }
Tensor& Tensor::add_(Number other) { return change<Number>("add_", *this, other, tenon::add); }
Tensor& Tensor::sub_(const Tensor& other) { return change("sub_", *this, other, tenon::sub); }
Tensor& Tensor::sub_(Number other) { return change<Number>("sub_", *this, other, tenon::sub); }
Tensor& Tensor::mul_(const Tensor& other) { return change("mul_", *this, other, tenon::mul); }
Tensor& Tensor::mul_(Number other) { return change<Number>("mul_", *this, other, tenon::mul); }
Tensor& Tensor::div_(const Tensor& other) { return change("div_", *this, other, tenon::div); }
Tensor& Tensor::div_(Number other) { return change<Number>("div_", *this, other, tenon::div); }

}  // namespace tenon
