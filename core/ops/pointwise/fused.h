// Several pointwise operators, and reductions of rows, as one call, `fused` (docs/operators.md):
// what a pass over a recorded program makes of neighbours, so that values between them never reach
// memory. It is below autograd: there is no gradient.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/dispatch/op.h>

namespace tenon {

// What a member reads: an input of the program, the result of an earlier step, or nothing where the
// operator takes a number instead.
struct FusedValue {
  enum Kind : uint8_t { absent, input, step } kind = absent;
  uint32_t index = 0;
};

// Members in the order in which they run. A program knows no shapes: one serves all shapes for
// which its results have one shape, that of all inputs together. It lives as long as the process,
// and programs of equal text are one object.
//
// Where a member reduces, the last dimension of that shape is a row, and a result may also have one
// value for each row: the shape with a last dimension of 1, as keepdim leaves it. The reduction has
// the bits that the device gives for a row-major operand.
class FusedProgram {
 public:
  // A program may have this many at most; plugins/sdk/requests/fused.h repeats it.
  static constexpr size_t kMaxInputs = 24, kMaxOutputs = 8, kMaxSteps = 64;

  struct Step {
    const Op* op;
    DType dtype;  // of the result
    std::vector<FusedValue> operands;
    Attrs attrs;
    size_t first_scalar, num_scalars;  // among those of the call
    // Whether it makes one value of each row. Its attributes then leave out the dimension.
    bool reduces = false;
  };

  size_t num_inputs() const { return num_inputs_; }
  size_t num_scalars() const { return num_scalars_; }
  const std::vector<Step>& steps() const { return steps_; }
  // Returns, for each output, the number of the step that makes it.
  const std::vector<uint32_t>& results() const { return results_; }
  // Returns whether a member reduces rows.
  bool reduces() const {
    return std::any_of(steps_.begin(), steps_.end(), [](auto& step) { return step.reduces; });
  }
  // Returns the program as plugins get it: "mul(x0, _, #1): f32; add(t0, x1): f32 -> t1".
  const std::string& text() const { return text_; }

 private:
  friend class FusedBuilder;
  size_t num_inputs_ = 0, num_scalars_ = 0;
  std::vector<Step> steps_;
  std::vector<uint32_t> results_;
  std::string text_;
};

// Returns whether the operator can be a member: one of the library's own, pointwise, with a result
// for which a plugin is asked.
TENON_API bool can_be_fused(const Op& op);
// Returns whether the operator can be a member that reduces rows: the library's own `sum`, `mean`,
// `amax`, `amin`, `prod`, `var`, `logsumexp`, `any` or `all`.
TENON_API bool can_be_fused_reduction(const Op& op);
// Returns whether a call of it is what a member does: it reduces the last dimension alone, of a
// tensor that is row-major. The attributes are those that `run` gets.
TENON_API bool can_be_fused_reduction(const Op& op, const Shape& dims, const TensorDesc& x);
inline bool can_be_fused_reduction(const Op& op, const Attrs& attrs, const TensorDesc& x) {
  return can_be_fused_reduction(op) && can_be_fused_reduction(op, attrs.get_list("dims"), x);
}

// Puts a program together. Every function throws an Error for what no program can have, and the
// error of the member's own shape rule for dtypes that it does not take.
class TENON_API FusedBuilder {
 public:
  // Adds an input of this dtype and returns it.
  FusedValue input(DType dtype);
  // Adds a call of `op` as `run` gets it: operands, of which some may be absent, attributes, and
  // how many numbers it takes, which come after those of earlier steps. Returns its result. A
  // reduction takes one operand, which has whole rows, and an attribute "dims" of one dimension or
  // none, which is read as the last one.
  FusedValue step(const Op& op, std::span<const FusedValue> operands, const Attrs& attrs,
                  size_t num_scalars);
  // Does the same by the names that the text of a program has. `attr` is the attribute that the
  // member needs: "reverse", "n", "dtype" of a copy, "correction" of a variance; or nothing.
  FusedValue step(std::string_view op, std::span<const FusedValue> operands, size_t num_scalars,
                  std::string_view attr = {}, int64_t value = 0);
  // Makes the result of a step the next output.
  void output(FusedValue step);
  // Returns the dtype of an input or of the result of a step.
  DType dtype_of(FusedValue value) const;
  // Returns the program, which is complete. Throws an Error where no step reads an input.
  const FusedProgram& finish();

 private:
  FusedValue add(FusedProgram::Step step);
  bool is_row_value(const FusedProgram::Step& step) const;
  void require_inputs_are_read() const;

  FusedProgram program_;
  std::vector<DType> input_dtypes_;
  std::vector<bool> row_values_;  // for each step, whether it is made of reductions alone
};

// Runs the program. The inputs have the dtypes for which it was built, and broadcast. If
// `in_place` is not empty, it has an entry for each output: the input that is overwritten with it,
// which then has the shape and dtype of the result, or -1. Throws a ShapeError where a result does
// not have the shape of all inputs together, nor a value for each row of it.
TENON_API Outputs run_fused(const FusedProgram& program, Inputs inputs,
                            std::span<const Scalar> scalars = {},
                            std::span<const int32_t> in_place = {});
// Computes the same by running the members one by one, in new tensors.
TENON_API Outputs run_members(const FusedProgram& program, Inputs inputs,
                              std::span<const Scalar> scalars = {});

// The operator and its attributes, for code that makes plans without running them. `fused_op` is
// that of programs of pointwise members, `fused_rows_op` that of programs which reduce; plugins
// know both as "fused".
extern const Op fused_op, fused_rows_op;
inline const Op& fused_op_of(const FusedProgram& program) {
  return program.reduces() ? fused_rows_op : fused_op;
}
Attrs fused_attrs(const FusedProgram& program, std::span<const int32_t> in_place = {});

}  // namespace tenon
