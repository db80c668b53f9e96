#include <utility>

#include "kernels/pointwise/fused_members.h"
#include "kernels/pointwise/fused_rows.h"

namespace tenon::cuda {
namespace {

using sdk::FusedOperand, sdk::FusedRequest, sdk::FusedStep, sdk::text;

class RowsWriter {
 public:
  RowsWriter(const FusedRequest& program, const std::vector<bool>& wanted, const FusedRows& rows)
      : program_(program), rows_(rows) {
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i]) (is_row_value(i) ? of_rows_ : outputs_).push_back(i);
  }

  std::string source() {
    out_ = program_comment(program_);
    out_ += kFusedIncludes;
    arguments();
    for (auto& reduction : rows_.reductions) operand(reduction);
    results("compute", outputs_);
    if (!of_rows_.empty()) results("compute_row_values", of_rows_);
    kernel();
    return std::move(out_);
  }

 private:
  bool is_row_value(size_t output) const {
    return program_.is_row_value({FusedOperand::step, program_.results[output]});
  }
  const char* input_type(size_t i) const { return type_of(program_.input_dtypes[i]); }
  const char* output_type(size_t i) const {
    return type_of(program_.steps[program_.results[i]].dtype);
  }
  size_t num_inputs() const { return rows_.inputs.size(); }
  size_t rank() const { return rows_.sizes.size(); }

  // In the order of their alignment, so that there are no gaps; and what the reductions of a row
  // have made.
  void arguments() {
    out_ += "struct Arguments {\n";
    for (size_t i = 0; i < num_inputs(); ++i) out_ += text("  const {}* x{};\n", input_type(i), i);
    for (auto* list : {&outputs_, &of_rows_})
      for (const size_t i : *list) out_ += text("  {}* y{};\n", output_type(i), i);
    if (program_.num_scalars) out_ += text("  tn_scalar numbers[{}];\n", program_.num_scalars);
    out_ += text("  double parameters[{}];\n", rows_.reductions.size());
    out_ += text("  int64_t steps[{}];\n", num_inputs());
    if (rank()) {
      out_ += "  // Innermost dimension first.\n";
      out_ += text("  int64_t strides[{}][{}];\n", num_inputs(), rank());
      out_ += text("  Divider sizes[{}];\n", rank());
    }
    out_ += "  uint32_t rows, cols;\n};\n\nstruct Row {\n";
    for (auto& r : rows_.reductions)
      out_ += text("  {} t{};\n", type_of(program_.steps[r.step].dtype), r.step);
    out_ += "};\n\n";
  }

  // The parameters of a function of one element of each input, and the steps before `end` in it.
  void begin_function(const std::string& declaration) {
    out_ += text("__device__ inline {}([[maybe_unused]] const Arguments& a, ", declaration);
    out_ += "[[maybe_unused]] const Row& row";
    for (size_t i = 0; i < num_inputs(); ++i)
      out_ += text(", [[maybe_unused]] {} x{}", input_type(i), i);
  }
  void steps(size_t end) {
    for (size_t s = 0; s < end; ++s) {
      const FusedStep& step = program_.steps[s];
      out_ += text("  [[maybe_unused]] const {} t{} = {};\n", type_of(step.dtype), s,
                   step.member->reduces ? text("row.t{}", s) : member_expression(program_, step));
    }
  }

  // What a reduction folds.
  void operand(const FusedRows::Reduction& r) {
    const FusedOperand& operand = program_.steps[r.step].operands[0];
    begin_function(text("{} operand{}", type_of(r.dtype), r.step));
    out_ += ") {\n";
    steps(r.step);
    out_ += text("  return widen({}{});\n}\n\n", operand.kind == FusedOperand::input ? "x" : "t",
                 operand.index);
  }

  void results(const char* name, const std::vector<size_t>& outputs) {
    begin_function(std::string("void ") + name);
    for (const size_t i : outputs) out_ += text(", {}& y{}", output_type(i), i);
    out_ += ") {\n";
    steps(program_.steps.size());
    for (const size_t i : outputs) out_ += text("  y{} = t{};\n", i, program_.results[i]);
    out_ += "}\n\n";
  }

  void kernel() {
    out_ += text("extern \"C\" __global__ void __launch_bounds__({})\n", rows_.block);
    out_ += "    fused_kernel(const __grid_constant__ Arguments a) {\n";
    out_ += "  __shared__ Moments shared[32];  // or any smaller accumulator\n";
    out_ += text("  const Group group = Group::of({});\n", rows_.lanes);
    out_ += "  const int64_t turns = group.turns(a.rows);\n";
    out_ += "  for (int64_t turn = 0; turn < turns; ++turn) {\n";
    out_ += "    const int64_t task = turn * group.count + group.index;\n";
    out_ += "    const bool inside = task < a.rows;\n";
    out_ += "    const int64_t number = inside ? task : 0;\n";
    places();
    out_ += "    [[maybe_unused]] Row row;\n";
    for (size_t k = 0; k < rows_.reductions.size(); ++k) reduce(k);
    out_ += "    for (int64_t i = group.lane; inside && i < a.cols; i += group.lanes) {\n";
    store("compute", outputs_, "i", "number * a.cols + i");
    out_ += "    }\n";
    if (!of_rows_.empty()) {
      out_ += "    wait_for_group(group);\n    if (inside && group.lane == 0) {\n";
      store("compute_row_values", of_rows_, "0", "number");
      out_ += "    }\n";
    }
    out_ += "  }\n}\n";
  }

  // Where the row begins in each input.
  void places() {
    for (size_t i = 0; i < num_inputs(); ++i)
      out_ += text("    const {}* x{} = a.x{};\n", input_type(i), i, i);
    if (rank()) out_ += "    uint32_t left = static_cast<uint32_t>(number);\n";
    for (size_t d = 0; d < rank(); ++d) {
      const bool last = d + 1 == rank();
      out_ += "    {\n";
      if (!last) out_ += text("      const uint32_t rest = a.sizes[{}].quotient(left);\n", d);
      out_ += last ? std::string("      const int64_t at = left;\n")
                   : text("      const int64_t at = left - rest * a.sizes[{}].divisor;\n", d);
      for (size_t i = 0; i < num_inputs(); ++i)
        out_ += text("      x{} += at * a.strides[{}][{}];\n", i, i, d);
      out_ += last ? "    }\n" : "      left = rest;\n    }\n";
    }
  }

  std::string elements(std::string_view index) const {
    std::string all;
    for (size_t i = 0; i < num_inputs(); ++i)
      all += rows_.inputs[i] == FusedRows::Access::one ? text(", *x{}", i)
             : rows_.inputs[i] == FusedRows::Access::line
                 ? text(", x{}[{}]", i, index)
                 : text(", x{}[{} * a.steps[{}]]", i, index, i);
    return all;
  }

  void reduce(size_t k) {
    const auto& r = rows_.reductions[k];
    const FusedStep& step = program_.steps[r.step];
    const std::string_view name = r.reducer;
    const std::string reducer =
        name == "Any" || name == "All" ? std::string(name) : text("{}<{}>", name, type_of(r.dtype));
    out_ += text("    row.t{} = cast<{}>(reduce_row<{}, {}>(\n", r.step, type_of(step.dtype),
                 reducer, r.per_load);
    out_ += text("        group, inside ? a.cols : 0, a.parameters[{}], shared,\n", k);
    out_ +=
        text("        [&](int64_t i) { return operand{}(a, row{}); }));\n", r.step, elements("i"));
  }

  void store(const char* function, const std::vector<size_t>& outputs, std::string_view index,
             const char* at) {
    for (const size_t i : outputs) out_ += text("      {} y{};\n", output_type(i), i);
    if (outputs.empty()) return;
    out_ += text("      {}(a, row{}", function, elements(index));
    for (const size_t i : outputs) out_ += text(", y{}", i);
    out_ += ");\n";
    for (const size_t i : outputs) out_ += text("      a.y{}[{}] = y{};\n", i, at, i);
  }

  const FusedRequest& program_;
  const FusedRows& rows_;
  std::vector<size_t> outputs_, of_rows_;  // of whole rows, and of one value for each
  std::string out_;
};

}  // namespace

std::string fused_rows_source(const FusedRequest& program, const std::vector<bool>& wanted,
                              const FusedRows& rows) {
  return RowsWriter(program, wanted, rows).source();
}

}  // namespace tenon::cuda
