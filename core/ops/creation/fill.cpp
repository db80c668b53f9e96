// One value everywhere.
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/ops/creation/factory.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape/writable.h>

namespace tenon {

// | `fill` | -> y | ; value | any dtype, any strides; value is `i` for integers and bool |
const Op fill_op{{.name = "fill", .by_element = true, .scalars = 1}};

Tensor constant(Number number, DType dtype, Device device) {
  Tensor x = allocate_tensor({}, dtype, device);
  Scalar scalar = scalar_for(dtype, number);
  run_into(x, {fill_op, {}, no_attrs, {&scalar, 1}}, Target::new_result);
  return x;
}

Tensor& Tensor::fill_(Number value) {
  require_writable("fill_", *this);
  require_held("fill_", dtype(), value);
  Scalar scalar = scalar_for(dtype(), value);
  run_into(*this, {fill_op, {}, no_attrs, {&scalar, 1}});
  return *this;
}

}  // namespace tenon
