// A fused program and its members one by one, which have to give the same bits on one device.
#pragma once

#include <string_view>
#include <vector>

#include <tenon/conformance/case.h>
#include <tenon/core/ops/pointwise/fused.h>

namespace tenon::conformance {

// Puts a program together, and keeps the tensors and numbers that it is run with.
class FusedCase {
 public:
  // Throws a ValueError if it is undefined.
  FusedValue in(const Tensor& x);
  // For what the program overwrites.
  FusedValue in_copy(const Tensor& x);
  // The member of this name that takes the operands. A default-made value is an absent operand. The
  // numbers are converted to what the member's dtype takes.
  FusedValue of(std::string_view op, const std::vector<FusedValue>& operands,
                const std::vector<double>& numbers = {}, std::string_view attr = {},
                int64_t value = 0);
  // a op number, and number op a.
  FusedValue with(std::string_view op, FusedValue a, double number);
  FusedValue after(double number, std::string_view op, FusedValue a);
  FusedValue cast(FusedValue a, DType dtype);
  // `over`: the input that is overwritten with it.
  void out(FusedValue step, FusedValue over = {});
  DType dtype_of(FusedValue value) const { return builder_.dtype_of(value); }

  // Throws a Mismatch where a result of the program has not the bits of the members'. NaN equals
  // NaN: which of two a sum takes is left open.
  List run();

 private:
  FusedBuilder builder_;
  List inputs_;
  std::vector<Scalar> scalars_;
  std::vector<int32_t> over_;
};

}  // namespace tenon::conformance
