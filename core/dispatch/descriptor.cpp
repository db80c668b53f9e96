#include <algorithm>

#include <tenon/core/dispatch/descriptor.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/layout.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

TensorDesc describe(const TensorImpl& t) {
  return {t.dtype, t.shape, t.strides, t.contiguous, t.format, t.numel};
}

TensorDesc describe(DType dtype, const Shape& shape, const Strides& strides) {
  return {
      dtype,        shape, strides, is_contiguous(shape, strides), suggested_format(shape, strides),
      shape.numel()};
}

bool elements_overlap(const Shape& shape, const Strides& strides) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return false;
  const DimsByStride by(shape, strides);
  int64_t reach = 0;  // of the dimensions so far: the distance from the first element to the last
  for (size_t i = 0; i < by.count; ++i) {
    const int64_t stride = strides[by.dims[i]];
    int64_t extent;
    if (stride <= reach) return true;
    // What leaves int64 lies in no memory.
    if (__builtin_mul_overflow(shape[by.dims[i]] - 1, stride, &extent) ||
        __builtin_add_overflow(reach, extent, &reach))
      return true;
  }
  return false;
}

int32_t alias_of(const Tensor& out, Inputs inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    auto &a = impl_of(*inputs[i]), &b = impl_of(out);
    if (a.storage == b.storage && a.offset == b.offset && a.dtype == b.dtype &&
        a.shape == b.shape && a.strides == b.strides)
      return static_cast<int32_t>(i);
  }
  return -1;
}

CallDesc::CallDesc(const Call& call, const TensorImpl* common)
    : op(&call.op),
      attrs(call.attrs),
      num_scalars(call.scalars.size()),
      wanted(call.wanted),
      flat(common != nullptr) {
  inputs.reserve(call.inputs.size());
  for (auto* t : call.inputs)
    inputs.push_back(t ? std::optional(describe(impl_of(*t))) : std::nullopt);
  if (call.shape) shape = *call.shape;
  format = call.format;
  if (!call.out) return;
  out = describe(impl_of(*call.out));
  out_input = alias_of(*call.out, call.inputs);
}

const Shape& CallDesc::shape_of_all() const {
  if (out) return out->shape;
  return (*std::find_if(inputs.begin(), inputs.end(), [](auto& t) { return t.has_value(); }))
      ->shape;
}

}  // namespace tenon
