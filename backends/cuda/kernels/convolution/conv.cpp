// Convolution and its two gradients: by cuDNN where it can, else by the plugin's own kernels.
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "kernels/convolution/conv_direct.h"
#include "kernels/convolution/conv_dnn.h"
#include "kernels/linalg/bias.h"
#include "runtime/common.h"
#include "vendor/vendor.h"

namespace tenon::cuda {
namespace {

// Where x, weight and y are among a request's inputs (0, 1) and its output (2).
struct Places {
  int x, weight, y;
};
Places places_of(ConvKind kind) {
  return kind == ConvKind::forward          ? Places{0, 1, 2}
         : kind == ConvKind::backward_input ? Places{2, 1, 0}
                                            : Places{1, 2, 0};
}
void add_bias(const tn_run& run, BiasMode mode, const ConvShape& s) {
  apply_bias(run.stream, mode, run.inputs[2], run.outputs[0], s.n, s.o, s.oh * s.ow, s.dtype);
}

// An empty operand: zeros, or the bias alone.
tn_plan* plan_without_products(const ConvShape& s, const tn_tensor_desc& out) {
  if (!s.bias) return zero_plan(out);
  return make_plan([s](const tn_run& run) { add_bias(run, BiasMode::set, s); });
}

class DnnConv {
 public:
  DnnConv(tn_device* device, const ConvShape& shape)
      : handles_(handles_of(device)), shape_(shape), places_(places_of(shape.kind)) {
    CurrentDevice current(device);
    const auto dnn = handles_.dnn();
    DnnTarget target;
    target.handle = dnn.handle;
    auto plan = [&](bool fuse, int64_t alignment) {
      return plan_conv_dnn(target, shape.kind, shape, fuse, alignment);
    };
    const auto element = static_cast<int64_t>(sdk::dtype_size(shape.dtype));
    fused_ = shape.bias && try_both(plan, true, element);
    if (fused_) return;
    wide_.emplace(plan(false, kWideAlignment));
    try_one(narrow_, plan, false, element);
  }

  uint64_t workspace_bytes() const {
    return padded_workspace(
        std::max(wide_->workspace_bytes(), narrow_ ? narrow_->workspace_bytes() : uint64_t{0}));
  }

  void run(const tn_run& run) const {
    auto pointer = [&](int place) { return place == 2 ? run.outputs[0] : run.inputs[place]; };
    void* const pointers[] = {pointer(places_.x), pointer(places_.weight), pointer(places_.y),
                              fused_ ? run.inputs[2] : nullptr};
    const std::span<void* const> used(pointers, fused_ ? 4 : 3);
    bool wide = true;
    for (void* p : used) wide = wide && reinterpret_cast<uintptr_t>(p) % kWideAlignment == 0;
    const auto& plan = wide ? wide_ : narrow_;
    if (!plan)
      sdk::unsupported(
          "cuDNN has no engine for this convolution where "
          "an operand does not start at a multiple of 16 bytes; "
          "copy the view with clone()");
    queue_by_library(run.stream, [&] {
      plan->execute(handles_.dnn(run.stream->handle).handle, used,
                    aligned_workspace(run.workspace));
    });
    if (shape_.bias && !fused_) add_bias(run, BiasMode::add, shape_);
  }

 private:
  static constexpr int64_t kWideAlignment = 16;

  template <class Plan>
  static bool try_one(std::optional<DnnPlan>& to, const Plan& plan, bool fuse, int64_t alignment) {
    try {
      to.emplace(plan(fuse, alignment));
      return true;
    } catch (const sdk::Error& e) {
      if (e.code() != TN_CODE_UNSUPPORTED) throw;
      return false;
    }
  }
  template <class Plan>
  bool try_both(const Plan& plan, bool fuse, int64_t element) {
    return try_one(wide_, plan, fuse, kWideAlignment) && try_one(narrow_, plan, fuse, element);
  }

  VendorHandles& handles_;
  ConvShape shape_;
  Places places_;
  bool fused_ = false;
  // Views start anywhere: one plan for operands that are aligned as whole allocations are, one for
  // any.
  std::optional<DnnPlan> wide_, narrow_;
};

tn_plan* plan_dnn(tn_device* device, const ConvShape& shape) {
  auto conv = std::make_unique<const DnnConv>(device, shape);
  const uint64_t workspace = conv->workspace_bytes();
  return make_plan([conv = std::move(conv)](const tn_run& run) { conv->run(run); }, workspace);
}

void say_once_that_there_is_no_cudnn(std::string why) {
  static std::once_flag said;
  std::call_once(said, [&] {
    std::replace(why.begin(), why.end(), '\n', ' ');
    write_log(TN_LOG_WARNING,
              "convolutions run on plain kernels, which are slower than cuDNN's: " + why);
  });
}

tn_plan* make_conv(tn_device* device, const Request& request) {
  const auto shape = ConvShape::from(request);
  if (shape.dtype > TN_BF16) refuse_dtype(shape.dtype);
  auto& out = request.output(0);
  for (auto* d : {&request.input(0), &request.input(1), &out}) require_contiguous(*d);
  if (sdk::numel(out) == 0) return empty_plan();
  if (sdk::numel(request.input(0)) == 0 || sdk::numel(request.input(1)) == 0)
    return plan_without_products(shape, out);
  std::string why;
  try {
    return plan_dnn(device, shape);
  } catch (const sdk::Error& e) {
    if (e.code() != TN_CODE_UNSUPPORTED && e.code() != TN_CODE_UNAVAILABLE) throw;
    why = e.what();
    if (e.code() == TN_CODE_UNAVAILABLE) say_once_that_there_is_no_cudnn(why);
  }
  try {
    return plan_conv_direct(shape);
  } catch (const sdk::Error& e) {
    if (e.code() != TN_CODE_UNSUPPORTED) throw;
    sdk::unsupported(std::string(e.what()) + "; by cuDNN it cannot be done because: " + why);
  }
}

const sdk::Kernel convolutions({"conv2d", "conv2d_backward_input", "conv2d_backward_weight"},
                               make_conv);

}  // namespace
}  // namespace tenon::cuda
