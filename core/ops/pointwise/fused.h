// Several pointwise operators as one call, `fused` (docs/operators.md): what a pass over a recorded
// program makes of neighbours, so that values between them never reach memory. Private, and below
// autograd: there is no gradient.
#pragma once

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
class FusedProgram {
 public:
  // A program may have this many at most; plugins/sdk/requests/fused.h repeats it.
  static constexpr size_t kMostInputs = 24, kMostOutputs = 8, kMostSteps = 64;

  struct Step {
    const Op* op;
    DType dtype;  // of the result
    std::vector<FusedValue> operands;
    Attrs attrs;
    size_t first_scalar, num_scalars;  // among those of the call
  };

  size_t num_inputs() const { return num_inputs_; }
  size_t num_scalars() const { return num_scalars_; }
  const std::vector<Step>& steps() const { return steps_; }
  // Returns, for each output, the number of the step that makes it.
  const std::vector<uint32_t>& results() const { return results_; }
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

// Puts a program together. Every function throws an Error for what no program can have, and the
// error of the member's own shape rule for dtypes that it does not take.
class TENON_API FusedBuilder {
 public:
  // Adds an input of this dtype and returns it.
  FusedValue input(DType dtype);
  // Adds a call of `op` as `run` gets it: operands, of which some may be absent, attributes, and
  // how many numbers it takes, which come after those of earlier steps. Returns its result.
  FusedValue step(const Op& op, std::span<const FusedValue> operands, const Attrs& attrs,
                  size_t num_scalars);
  // Does the same by the names that the text of a program has. `attr` is the attribute that the
  // member needs: "reverse", "n", or "dtype" of a copy; or nothing.
  FusedValue step(std::string_view op, std::span<const FusedValue> operands, size_t num_scalars,
                  std::string_view attr = {}, int64_t value = 0);
  // Makes the result of a step the next output.
  void output(FusedValue step);
  // Returns the dtype of an input or of the result of a step.
  DType dtype_of(FusedValue value) const;
  // Returns the program, which is complete. Throws an Error where no step reads an input.
  const FusedProgram& finish();

 private:
  void require_inputs_are_read() const;

  FusedProgram program_;
  std::vector<DType> input_dtypes_;
};

// Runs the program. The inputs have the dtypes for which it was built, and broadcast. If
// `in_place` is not empty, it has an entry for each output: the input that is overwritten with it,
// which then has the shape and dtype of the result, or -1. Throws a ShapeError where a result does
// not have the shape of all inputs together.
TENON_API Outputs run_fused(const FusedProgram& program, Inputs inputs,
                            std::span<const Scalar> scalars = {},
                            std::span<const int32_t> in_place = {});
// Computes the same by running the members one by one, in new tensors.
TENON_API Outputs run_members(const FusedProgram& program, Inputs inputs,
                              std::span<const Scalar> scalars = {});

// The operator `fused` and the attributes of a call of it, with which plans can be made that are
// not run.
extern const Op fused_op;
Attrs fused_attrs(const FusedProgram& program, std::span<const int32_t> in_place = {});

}  // namespace tenon
