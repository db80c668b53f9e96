// A program of pointwise operators and reductions of rows as one kernel, which is written as CUDA
// C++ for the program and compiled at run time. Each member is computed by the function of its own
// kernel and rounded to its dtype, in registers, so that the program has the bits of its members
// run one by one.
#include <cstring>
#include <memory>
#include <vector>

#include "device/launch.h"
#include "device/vector.h"
#include "kernels/pointwise/fused_rows.h"
#include "kernels/pointwise/fused_source.h"
#include "rtc/kernels.h"
#include "runtime/common.h"

namespace tenon::cuda {
namespace {

using sdk::FusedRequest;
using Access = FusedLayout::Access;

constexpr size_t kMaxBytes = 4096;  // of a kernel's parameters, on every device

// The bytes of the kernel's parameter, put together in the order of its members.
class FusedArguments {
 public:
  template <class T>
  void add(const T& value) {
    if (size_ + sizeof value > sizeof bytes_)
      sdk::unsupported("its kernel would take more than {} bytes of parameters", kMaxBytes);
    std::memcpy(bytes_ + size_, &value, sizeof value);
    size_ += sizeof value;
  }
  void* data() { return bytes_; }

 private:
  alignas(8) unsigned char bytes_[kMaxBytes];
  size_t size_ = 0;
};

class FusedLaunch {
 public:
  FusedLaunch(const tn_device* device, const FusedRequest& program, const Request& request)
      : layout_(FusedLayout::of(program, request)), inputs_(program.input_dtypes) {
    for (size_t i = 0; i < program.results.size(); ++i) {
      wanted_.push_back(request.has_output(i));
      outputs_.push_back(program.steps[program.results[i]].dtype);
    }
    num_scalars_ = program.num_scalars;
    require_room();
    kernel_ = kernel_of(device, fused_source(program, wanted_, layout_), kFusedKernel);
  }

  void run(const tn_run& run) const {
    for (auto& piece : layout_.pieces) {
      FusedArguments arguments = arguments_of(run, piece);
      void* parameters[] = {arguments.data()};
      cudaLaunchConfig_t config{};
      config.gridDim =
          dim3(static_cast<unsigned>(ceil_div(piece.numel, int64_t{kBlock} * layout_.per_thread)));
      config.blockDim = kBlock;
      config.stream = run.stream->handle;
      check(cudaLaunchKernelExC(&config, kernel_, parameters), "kernel launch");
    }
  }

 private:
  // Refuses what would not fit before it is compiled.
  void require_room() const {
    const std::vector<void*> pointers(std::max(inputs_.size(), outputs_.size()));
    const std::vector<tn_scalar> numbers(num_scalars_);
    const tn_run nothing{sizeof(tn_run), pointers.data(), pointers.data(), numbers.data(), nullptr,
                         nullptr,        inputs_.size(),  outputs_.size(), num_scalars_,   nullptr};
    arguments_of(nothing, layout_.pieces[0]);
  }

  FusedArguments arguments_of(const tn_run& run, const FusedLayout::Piece& piece) const {
    FusedArguments arguments;
    bool packs = true;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const size_t size = sdk::dtype_size(inputs_[i]);
      const char* at = static_cast<const char*>(run.inputs[i]);
      if (piece.base[i]) at += piece.base[i] * static_cast<int64_t>(size);
      arguments.add(at);
      packs = packs && loads_packs(i, at, size);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!wanted_[i]) continue;
      const size_t size = sdk::dtype_size(outputs_[i]);
      char* at = static_cast<char*>(run.outputs[i]);
      if (piece.first) at += piece.first * static_cast<int64_t>(size);
      arguments.add(at);
      packs = packs && aligned(at, size * static_cast<size_t>(layout_.per_thread));
    }
    for (uint32_t n = 0; n < num_scalars_; ++n) arguments.add(run.scalars[n]);
    add_nest(arguments, piece);
    arguments.add(static_cast<uint32_t>(piece.numel));
    arguments.add(static_cast<uint32_t>(packs));
    return arguments;
  }

  bool loads_packs(size_t input, const void* at, size_t size) const {
    const Access access = layout_.inputs[input];
    if (access != Access::line && access != Access::nested_line) return true;
    auto& strides = layout_.strides[input];
    for (size_t d = 0; access == Access::nested_line && d + 1 < strides.size(); ++d)
      if (strides[d] % layout_.per_thread != 0) return false;
    return aligned(at, size * static_cast<size_t>(layout_.per_thread));
  }

  void add_nest(FusedArguments& arguments, const FusedLayout::Piece& piece) const {
    for (int d = layout_.rank; d-- > 0;)
      arguments.add(Divider::of(static_cast<uint32_t>(piece.sizes[static_cast<size_t>(d)])));
    for (size_t i = 0; i < inputs_.size(); ++i)
      for (int d = layout_.rank; FusedLayout::is_nested(layout_.inputs[i]) && d-- > 0;)
        arguments.add(static_cast<uint32_t>(layout_.strides[i][static_cast<size_t>(d)]));
  }

  FusedLayout layout_;
  std::vector<tn_dtype> inputs_, outputs_;
  std::vector<bool> wanted_;
  uint32_t num_scalars_ = 0;
  const void* kernel_ = nullptr;
};

// The same of a program that reduces rows.
class FusedRowsLaunch {
 public:
  FusedRowsLaunch(const tn_device* device, const FusedRequest& program, const Request& request)
      : rows_(FusedRows::of(*device, program, request)), num_scalars_(program.num_scalars) {
    std::vector<bool> wanted;
    for (size_t i = 0; i < program.results.size(); ++i) {
      wanted.push_back(request.has_output(i));
      const sdk::FusedOperand result{sdk::FusedOperand::step, program.results[i]};
      if (wanted[i]) (program.is_row_value(result) ? of_rows_ : outputs_).push_back(i);
    }
    const std::vector<void*> pointers(sdk::FusedLimits::kMaxInputs + sdk::FusedLimits::kMaxOutputs);
    const std::vector<tn_scalar> numbers(num_scalars_);
    arguments_of(pointers.data(), pointers.data(), numbers.data());  // refuses what has no room
    kernel_ = kernel_of(device, fused_rows_source(program, wanted, rows_), kFusedKernel);
  }

  void run(const tn_run& run) const {
    FusedArguments arguments = arguments_of(run.inputs, run.outputs, run.scalars);
    void* parameters[] = {arguments.data()};
    cudaLaunchConfig_t config{};
    config.gridDim = rows_.grid;
    config.blockDim = rows_.block;
    config.stream = run.stream->handle;
    check(cudaLaunchKernelExC(&config, kernel_, parameters), "kernel launch");
  }

 private:
  FusedArguments arguments_of(void* const* inputs, void* const* outputs,
                              const tn_scalar* scalars) const {
    FusedArguments arguments;
    for (size_t i = 0; i < rows_.inputs.size(); ++i) arguments.add(inputs[i]);
    for (auto* list : {&outputs_, &of_rows_})
      for (const size_t i : *list) arguments.add(outputs[i]);
    for (uint32_t n = 0; n < num_scalars_; ++n) arguments.add(scalars[n]);
    for (auto& reduction : rows_.reductions) arguments.add(reduction.parameter);
    for (const int64_t step : rows_.steps) arguments.add(step);
    for (auto& strides : rows_.strides)
      for (size_t d = strides.size(); d-- > 0;) arguments.add(strides[d]);
    for (size_t d = rows_.sizes.size(); d-- > 0;)
      arguments.add(Divider::of(static_cast<uint32_t>(rows_.sizes[d])));
    arguments.add(static_cast<uint32_t>(rows_.rows));
    arguments.add(static_cast<uint32_t>(rows_.cols));
    return arguments;
  }

  FusedRows rows_;
  uint32_t num_scalars_;
  std::vector<size_t> outputs_, of_rows_;  // of whole rows, and of one value for each
  const void* kernel_ = nullptr;
};

template <class Launch>
tn_plan* launching(const tn_device* device, const FusedRequest& program, const Request& request) {
  return make_plan([launch = std::make_shared<const Launch>(device, program, request)](
                       const tn_run& run) { launch->run(run); });
}

tn_plan* make_fused(tn_device* device, const Request& request) {
  const auto program = FusedRequest::with_reductions(request);
  if (sdk::numel(program.whole) == 0) {
    for (size_t i = 0; i < request.num_outputs(); ++i)
      if (request.has_output(i) && sdk::numel(request.output(i)) > 0)
        sdk::unsupported("rows without elements are not reduced in a program");
    return empty_plan();
  }
  return program.reduces() ? launching<FusedRowsLaunch>(device, program, request)
                           : launching<FusedLaunch>(device, program, request);
}
const sdk::Kernel fused({"fused"}, make_fused);

}  // namespace
}  // namespace tenon::cuda
