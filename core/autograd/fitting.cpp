#include <tenon/core/autograd/fitting.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/layout.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

void require_fitting(const char* what, const char* name, const Tensor& gradient,
                     const Tensor& tensor, const char* other) {
  auto &g = impl_of(gradient), &t = impl_of(tensor);
  if (g.shape != t.shape)
    throw ShapeError(
        fmt::format("{}: {} has shape {}, {} {}", what, name, g.shape, other, t.shape));
  if (g.dtype != t.dtype)
    throw DTypeError(fmt::format("{}: {} is {}, {} {}", what, name, g.dtype, other, t.dtype));
  if (g.device != t.device)
    throw DeviceError(
        fmt::format("{}: {} is on {}, {} on {}", what, name, g.device, other, t.device));
}

namespace {
Strides strides_for(const TensorImpl& leaf) {
  return is_dense(leaf.shape, leaf.strides) ? leaf.strides : Shape::row_major(leaf.shape);
}
}  // namespace

bool lies_as_leaf(const TensorImpl& gradient, const TensorImpl& leaf) {
  if (gradient.contiguous && leaf.contiguous) return true;
  const Strides wanted = strides_for(leaf);
  for (size_t d = 0; d < wanted.size(); ++d)
    if (gradient.shape[d] != 1 && gradient.strides[d] != wanted[d]) return false;
  return true;
}

Tensor copy_for_leaf(const Tensor& gradient, const TensorImpl& leaf) {
  if (leaf.contiguous) return gradient.clone(contiguous_format);
  const Tensor memory = allocate_tensor(leaf.shape, gradient.dtype(), gradient.device());
  const Tensor copy = make_view(memory, leaf.shape, strides_for(leaf), 0);
  write_part(copy, gradient);
  return copy;
}

}  // namespace tenon
