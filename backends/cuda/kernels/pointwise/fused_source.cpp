#include "kernels/pointwise/fused_source.h"

#include <algorithm>
#include <utility>

#include "kernels/pointwise/fused_members.h"

namespace tenon::cuda {
namespace {

using sdk::FusedOperand, sdk::FusedRequest, sdk::FusedStep, sdk::text;
using Access = FusedLayout::Access;

class FusedWriter {
 public:
  FusedWriter(const FusedRequest& program, const std::vector<bool>& wanted,
              const FusedLayout& layout)
      : program_(program), layout_(layout) {
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i]) outputs_.push_back(i);
    for (size_t i = 0; i < layout.inputs.size(); ++i)
      if (FusedLayout::is_nested(layout.inputs[i])) nested_.push_back(i);
  }

  std::string source() {
    out_ = program_comment(program_);
    out_ += kFusedIncludes;
    arguments();
    element();
    kernel();
    return std::move(out_);
  }

 private:
  const char* input_type(size_t i) const { return type_of(program_.input_dtypes[i]); }
  const FusedStep& step_of(size_t output) const { return program_.steps[program_.results[output]]; }
  const char* output_type(size_t i) const { return type_of(step_of(i).dtype); }

  // In the order of their alignment, so that there are no gaps.
  void arguments() {
    out_ += "struct Arguments {\n";
    for (size_t i = 0; i < layout_.inputs.size(); ++i)
      out_ += text("  const {}* x{};\n", input_type(i), i);
    for (const size_t i : outputs_) out_ += text("  {}* y{};\n", output_type(i), i);
    if (program_.num_scalars) out_ += text("  tn_scalar numbers[{}];\n", program_.num_scalars);
    if (!nested_.empty()) {
      out_ += "  // Innermost dimension first.\n";
      out_ += text("  Divider sizes[{}];\n", layout_.rank);
      out_ += text("  uint32_t strides[{}][{}];\n", nested_.size(), layout_.rank);
    }
    out_ +=
        "  uint32_t numel;\n  uint32_t packs;  // lines are aligned to what a thread loads\n};\n\n";
  }

  // Computes one element of each output of one of each input.
  void element() {
    out_ += "__device__ inline void compute([[maybe_unused]] const Arguments& a";
    for (size_t i = 0; i < layout_.inputs.size(); ++i)
      out_ += text(", [[maybe_unused]] {} x{}", input_type(i), i);
    for (const size_t i : outputs_) out_ += text(", {}& y{}", output_type(i), i);
    out_ += ") {\n";
    for (size_t s = 0; s < program_.steps.size(); ++s)
      out_ += text("  [[maybe_unused]] const {} t{} = {};\n", type_of(program_.steps[s].dtype), s,
                   member_expression(program_, program_.steps[s]));
    for (const size_t i : outputs_) out_ += text("  y{} = t{};\n", i, program_.results[i]);
    out_ += "}\n\n";
  }

  void kernel() {
    out_ += text("extern \"C\" __global__ void __launch_bounds__(kThreads)\n    {}", kFusedKernel);
    out_ += "(const __grid_constant__ Arguments a) {\n";
    out_ += text("  constexpr int V = {};\n", layout_.per_thread);
    out_ += "  const uint32_t first = (blockIdx.x * kThreads + threadIdx.x) * V;\n";
    out_ += "  if (first >= a.numel) return;\n";
    out_ += "  const uint32_t count = a.numel - first;\n";
    out_ += "  const bool packs = a.packs != 0;\n";
    offsets();
    for (size_t i = 0; i < layout_.inputs.size(); ++i) load(i);
    for (const size_t i : outputs_) out_ += text("  Pack<{}, V> y{};\n", output_type(i), i);
    out_ += "#pragma unroll\n  for (int v = 0; v < V; ++v)\n    compute(a";
    for (size_t i = 0; i < layout_.inputs.size(); ++i) out_ += text(", x{}.at[v]", i);
    for (const size_t i : outputs_) out_ += text(", y{}.at[v]", i);
    out_ += ");\n";
    for (const size_t i : outputs_)
      out_ += text("  store_line<V>(a.y{} + first, count, packs, y{});\n", i, i);
    out_ += "}\n";
  }

  // Where the thread's first element lies in each nested input.
  void offsets() {
    if (nested_.empty()) return;
    for (const size_t i : nested_) out_ += text("  uint32_t o{} = 0;\n", i);
    out_ += "  uint32_t left = first;\n";
    for (int d = 0; d < layout_.rank; ++d) {
      const bool last = d + 1 == layout_.rank;
      out_ += "  {\n";
      if (!last) out_ += text("    const uint32_t rest = a.sizes[{}].quotient(left);\n", d);
      out_ += last ? std::string("    const uint32_t at = left;\n")
                   : text("    const uint32_t at = left - rest * a.sizes[{}].divisor;\n", d);
      for (size_t n = 0; n < nested_.size(); ++n)
        out_ += text("    o{} += at * a.strides[{}][{}];\n", nested_[n], n, d);
      out_ += last ? "  }\n" : "    left = rest;\n  }\n";
    }
  }

  void load(size_t i) {
    out_ += text("  const Pack<{}, V> x{} = ", input_type(i), i);
    const size_t n =
        static_cast<size_t>(std::find(nested_.begin(), nested_.end(), i) - nested_.begin());
    switch (layout_.inputs[i]) {
      case Access::line:
        out_ += text("load_line<V>(a.x{} + first, count, packs);\n", i);
        break;
      case Access::one:
        out_ += text("load_one<V>(a.x{});\n", i);
        break;
      case Access::nested_line:
        out_ += text("load_line<V>(a.x{} + o{}, count, packs);\n", i, i);
        break;
      case Access::nested_one:
        out_ += text("load_one<V>(a.x{} + o{});\n", i, i);
        break;
      case Access::nested:
        out_ += text("load_steps<V>(a.x{} + o{}, a.strides[{}][0], count);\n", i, i, n);
        break;
    }
  }

  const FusedRequest& program_;
  const FusedLayout& layout_;
  std::vector<size_t> outputs_, nested_;
  std::string out_;
};

}  // namespace

std::string fused_source(const FusedRequest& program, const std::vector<bool>& wanted,
                         const FusedLayout& layout) {
  return FusedWriter(program, wanted, layout).source();
}

}  // namespace tenon::cuda
