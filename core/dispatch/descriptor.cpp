#include <algorithm>

#include <tenon/core/dispatch/descriptor.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

TensorDesc describe(const TensorImpl& t) {
  return {t.dtype, t.shape, t.strides, t.contiguous, t.numel};
}

bool TensorDesc::shares_places() const {
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] > 1 && strides[i] == 0) return true;
  return false;
}

CallDesc::CallDesc(const Call& call, const Shape* common)
    : op(&call.op),
      attrs(call.attrs),
      num_scalars(call.scalars.size()),
      wanted(call.wanted),
      flat(common != nullptr) {
  for (auto* t : call.inputs)
    inputs.push_back(t ? std::optional(describe(impl_of(*t))) : std::nullopt);
  if (call.shape) shape = *call.shape;
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
