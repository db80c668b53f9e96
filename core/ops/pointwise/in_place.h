// How a method changes a tensor in place and is recorded.
#pragma once

#include <initializer_list>

#include <tenon/core/tensor.h>

namespace tenon {

struct InPlace {
  const char* name;
  bool reads_operands;  // the gradient rule of the operator reads the values of its operands
  // `compute` returns what its first operator does, after conversions, which may then write over
  // the target (core/dispatch/write_over.h).
  bool writes_over = false;
};

namespace detail {
Tensor& change_in_place(InPlace op, Tensor& target, std::initializer_list<const Tensor*> operands,
                        const void* context, Tensor (*compute)(const void*, const Tensor&));
}  // namespace detail

// Writes compute(target) into the target and returns it. If the target or an operand wants a
// gradient, the change is recorded, and `compute` gets the target as it was before. Throws as
// Tensor::add_; the error of an undefined operand counts the target as argument 0.
template <class Compute>
Tensor& change_in_place(InPlace op, Tensor& target, std::initializer_list<const Tensor*> operands,
                        const Compute& compute) {
  return detail::change_in_place(op, target, operands, &compute,
                                 [](const void* context, const Tensor& before) -> Tensor {
                                   return (*static_cast<const Compute*>(context))(before);
                                 });
}

}  // namespace tenon
