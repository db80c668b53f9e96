// What the rules of `fused` are made of: the shape rules of its members, and how it is decomposed.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <tenon/core/ops/pointwise/fused.h>

namespace tenon {

// Returns the program that has this text. Throws an Error if there is none.
const FusedProgram& fused_program(std::string_view text);

// The shape of one value for each row.
Shape row_values(Shape shape);
// The attributes with which a member that reduces is called by itself.
Attrs attrs_over_rows(const FusedProgram::Step& step, const Shape& shape);

// The operands of one member, of which its shape rule makes the result.
class FusedShapes {
 public:
  void add(const std::optional<TensorDesc>& operand) { operands_.push_back(operand); }
  // An operand of which only the dtype matters; or none.
  void add(std::optional<DType> dtype);
  // Throws what the shape rule throws, and a DTypeError for operands of several dtypes.
  TensorDesc infer(const FusedProgram::Step& step) const;

 private:
  TensorDesc infer_reduction(const FusedProgram::Step& step) const;
  void require_one_dtype(const Op& op) const;

  std::vector<std::optional<TensorDesc>> operands_;
};

// Returns what the steps make of such inputs. Throws a DTypeError where that is not what the
// program says, and a ShapeError where a reduction has no whole rows.
std::vector<TensorDesc> infer_steps(const FusedProgram& program,
                                    std::span<const TensorDesc> inputs);

// Runs a member by whatever the device has for it, in a new tensor.
Tensor run_step(const FusedProgram::Step& step, Inputs operands, std::span<const Scalar> scalars);

// Runs a program that no plugin of the device takes: those members by themselves that it refuses
// too, and the others in smaller programs. Where it refuses none, all are run one by one.
Outputs run_parts(const FusedProgram& program, Inputs inputs, std::span<const Scalar> scalars);

}  // namespace tenon
