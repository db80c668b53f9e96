// Which type operands of different types are converted to. An operator says in its OpSpec whether
// it wants that; `run` does it.
#pragma once

#include <tenon/core/dispatch/op.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

// PyTorch's promotion: a tensor without dimensions widens another one only by its category (bool,
// integer, floating).
DType result_type(const Tensor& a, const Tensor& b);

inline bool takes_part(const Call& call, size_t i) {
  return call.has(i) && call.in(i).defined() && !(call.op.keeps_types >> i & 1);
}

// Whether some input of the call is not of the type that its operator computes in.
inline bool needs_promotion(const Call& call) {
  if (call.op.promotion == Promotion::none) return false;
  const DType* first = nullptr;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!takes_part(call, i)) continue;
    const DType& type = impl_of(call.in(i)).dtype;
    if (first ? type != *first
              : call.op.promotion == Promotion::floating && !is_floating_point(type))
      return true;
    first = &type;
  }
  return false;
}
// The call with its inputs converted; gradients go back through the conversion.
Outputs run_promoted(const Call& call);

}  // namespace tenon
