// The dtype to which operands of different dtypes are converted. An operator requests this in its
// OpSpec, and `run` does it.
#pragma once

#include <tenon/core/dispatch/op.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

// PyTorch's promotion: a tensor without dimensions changes the dtype of one with dimensions only if
// its category (bool, integer, floating) is higher.
DType result_type(const Tensor& a, const Tensor& b);

inline bool is_promoted(const Call& call, size_t i) {
  return call.has(i) && call.in(i).defined() && !(call.op.keeps_types >> i & 1);
}

// Returns whether an input of the call does not have the dtype in which the operator computes.
inline bool needs_promotion(const Call& call) {
  if (call.op.promotion == Promotion::none) return false;
  const DType* first = nullptr;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!is_promoted(call, i)) continue;
    const DType& type = impl_of(call.in(i)).dtype;
    if (first ? type != *first
              : call.op.promotion == Promotion::floating && !is_floating_point(type))
      return true;
    first = &type;
  }
  return false;
}
// Makes the call with converted inputs. Gradients go back through the conversion.
Outputs run_promoted(const Call& call);

}  // namespace tenon
