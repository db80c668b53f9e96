// Convolution and its two gradients: by cuDNN where it can, else by the plugin's own kernels.
#include <algorithm>
#include <limits>
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

ConvKind kind_of(const Request& request) {
  return request.op() == "conv2d"              ? ConvKind::forward
         : request.op() == "conv2d_input_grad" ? ConvKind::input_grad
                                               : ConvKind::weight_grad;
}

// Where x, weight and y are among a request's inputs (0, 1) and its output (2).
struct Places {
  int x, weight, y;
};
Places places_of(ConvKind kind) {
  return kind == ConvKind::forward      ? Places{0, 1, 2}
         : kind == ConvKind::input_grad ? Places{2, 1, 0}
                                        : Places{1, 2, 0};
}
const tn_tensor_desc& tensor(const Request& request, int place) {
  return place == 2 ? request.output(0) : request.input(static_cast<size_t>(place));
}

void get_pair(const Request& request, const char* name, int64_t least, int64_t (&pair)[2]) {
  auto v = request.get_ints(name);
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (v.size() != 2 || v[0] < least || v[1] < least || v[0] > most || v[1] > most)
    invalid(request,
            std::string(name) + " must be two integers of at least " + std::to_string(least));
  pair[0] = v[0], pair[1] = v[1];
}

// What a window leaves of `size`: outputs along it, or -1 where the window is
// larger.
int64_t outputs_along(const ConvShape& s, int d, int64_t size, int64_t kernel) {
  const int64_t room = size + 2 * s.padding[d] - s.dilation[d] * (kernel - 1) - 1;
  return kernel < 1 || room < 0 ? -1 : room / s.stride[d] + 1;
}

ConvShape shape_of(const Request& request, ConvKind kind) {
  const auto places = places_of(kind);
  auto &x = tensor(request, places.x), &weight = tensor(request, places.weight),
       &y = tensor(request, places.y);
  const auto found =
      "input " + shape_text(x) + ", weight " + shape_text(weight) + ", output " + shape_text(y);
  if (x.rank != 4 || weight.rank != 4 || y.rank != 4)
    invalid(request, "all tensors have 4 dimensions; found " + found);
  if (x.dtype != weight.dtype || x.dtype != y.dtype) invalid(request, "all tensors have one dtype");
  if (x.dtype > TN_BF16) refuse_dtype(request, x.dtype);
  ConvShape s{};
  s.dtype = x.dtype;
  s.n = x.shape[0], s.c = x.shape[1], s.h = x.shape[2], s.w = x.shape[3];
  s.o = weight.shape[0], s.kh = weight.shape[2], s.kw = weight.shape[3];
  s.oh = y.shape[2], s.ow = y.shape[3];
  s.groups = request.get_int("groups");
  get_pair(request, "stride", 1, s.stride);
  get_pair(request, "padding", 0, s.padding);
  get_pair(request, "dilation", 1, s.dilation);
  if (s.groups < 1 || s.o % s.groups || s.c != weight.shape[1] * s.groups)
    invalid(request,
            "channels do not divide into " + std::to_string(s.groups) + " groups; found " + found);
  if (y.shape[0] != s.n || y.shape[1] != s.o || s.oh < 1 || s.ow < 1 ||
      s.oh != outputs_along(s, 0, s.h, s.kh) || s.ow != outputs_along(s, 1, s.w, s.kw))
    invalid(request, "shapes do not fit together; found " + found);
  return s;
}

bool has_bias(const Request& request, ConvKind kind, const ConvShape& s) {
  if (kind != ConvKind::forward || !request.has_input(2)) return false;
  auto& bias = request.input(2);
  if (bias.rank != 1 || bias.shape[0] != s.o || bias.dtype != s.dtype)
    invalid(request, "bias must be (" + std::to_string(s.o) + ") of the input's dtype");
  require_contiguous(request, bias);
  return true;
}

void add_bias(const tn_run& run, BiasMode mode, const ConvShape& s) {
  apply_bias(run.stream, mode, run.inputs[2], run.outputs[0], s.n, s.o, s.oh * s.ow, s.dtype);
}

// An empty operand: zeros, or the bias alone.
tn_plan* plan_without_products(const ConvShape& s, bool bias, const tn_tensor_desc& out) {
  if (!bias) return zero_plan(out);
  return make_plan([s](const tn_run& run) { add_bias(run, BiasMode::set, s); });
}

class DnnConv {
 public:
  DnnConv(tn_device* device, ConvKind kind, const ConvShape& shape, bool bias, bool fast)
      : handles_(handles_of(device)), shape_(shape), places_(places_of(kind)), bias_(bias) {
    CurrentDevice current(device);
    const auto dnn = handles_.dnn();
    DnnTarget target;
    target.handle = dnn.handle;
    auto plan = [&](bool fuse, int64_t alignment) {
      return plan_conv_dnn(target, kind, shape, fuse, fast, alignment);
    };
    const auto element = static_cast<int64_t>(sdk::dtype_size(shape.dtype));
    fused_ = bias && try_both(plan, true, element);
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
          "cuda: cuDNN has no engine for this convolution where "
          "an operand does not start at a multiple of 16 bytes; "
          "copy the view with clone()");
    plan->execute(handles_.dnn(run.stream->handle).handle, used, aligned_workspace(run.workspace));
    if (bias_ && !fused_) add_bias(run, BiasMode::add, shape_);
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
  bool bias_, fused_ = false;
  // Views start anywhere: one plan for operands that are aligned as whole
  // allocations are, one for any.
  std::optional<DnnPlan> wide_, narrow_;
};

tn_plan* plan_dnn(tn_device* device, const Request& request, ConvKind kind, const ConvShape& shape,
                  bool bias) {
  const bool fast = request.find("precision") && request.get_string("precision") == "high";
  auto conv = std::make_unique<const DnnConv>(device, kind, shape, bias, fast);
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
  const ConvKind kind = kind_of(request);
  const ConvShape shape = shape_of(request, kind);
  const bool bias = has_bias(request, kind, shape);
  auto& out = request.output(0);
  for (auto* d : {&request.input(0), &request.input(1), &out}) require_contiguous(request, *d);
  if (sdk::numel(out) == 0) return empty_plan();
  if (sdk::numel(request.input(0)) == 0 || sdk::numel(request.input(1)) == 0)
    return plan_without_products(shape, bias, out);
  std::string why;
  try {
    return plan_dnn(device, request, kind, shape, bias);
  } catch (const sdk::Error& e) {
    if (e.code() != TN_CODE_UNSUPPORTED && e.code() != TN_CODE_UNAVAILABLE) throw;
    why = e.what();
    if (e.code() == TN_CODE_UNAVAILABLE) say_once_that_there_is_no_cudnn(why);
  }
  try {
    return plan_conv_direct(request);
  } catch (const sdk::Error& e) {
    if (e.code() != TN_CODE_UNSUPPORTED) throw;
    sdk::unsupported(std::string(e.what()) + "; by cuDNN it cannot be done because: " + why);
  }
}

const sdk::Kernel registration({"conv2d", "conv2d_input_grad", "conv2d_weight_grad"}, make_conv);

}  // namespace
}  // namespace tenon::cuda
