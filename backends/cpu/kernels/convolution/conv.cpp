#include "kernels/convolution/conv.h"

namespace tenon::cpu {
namespace {

[[noreturn]] void invalid(const Request& request, const std::string& why) {
  throw sdk::Error(TN_CODE_INVALID_ARGUMENT, "cpu: " + std::string(request.op()) + ": " + why);
}

std::string shape_text(const tn_tensor_desc& d) {
  std::string text = "(";
  for (uint32_t i = 0; i < d.rank; ++i) text += (i ? ", " : "") + std::to_string(d.shape[i]);
  return text + ")";
}

tn_plan* make_conv2d(tn_device*, const Request& request) {
  auto &x = request.input(0), &weight = request.input(1), &y = request.output(0);
  auto s = ConvShape::from(request, x, weight, y);
  require_contiguous(request, x);
  require_contiguous(request, weight);
  if (request.has_input(2)) {
    auto& bias = request.input(2);
    if (bias.rank != 1 || bias.shape[0] != s.o || bias.dtype != x.dtype)
      invalid(request, "bias must be (" + std::to_string(s.o) + ") of the input's dtype");
    require_contiguous(request, bias);
  }
  if (sdk::numel(y) == 0) return empty_plan();
  return with_float(request, x.dtype, [&](auto zero) {
    using T = decltype(zero);
    ConvForward<T> forward(s, false);
    sdk::PlanOptions options{forward.workspace_bytes(), conv_cost<T>(s)};
    return sdk::make_plan(
        [forward = std::move(forward)](const tn_run& run) {
          forward.run(static_cast<const T*>(run.inputs[0]), static_cast<const T*>(run.inputs[1]),
                      static_cast<const T*>(run.inputs[2]), static_cast<T*>(run.outputs[0]),
                      run.workspace);
        },
        options);
  });
}

const sdk::Kernel registration({"conv2d"}, make_conv2d);

}  // namespace

ConvShape ConvShape::from(const Request& request, const tn_tensor_desc& x,
                          const tn_tensor_desc& weight, const tn_tensor_desc& y) {
  auto found =
      "input " + shape_text(x) + ", weight " + shape_text(weight) + ", output " + shape_text(y);
  if (x.rank != 4 || weight.rank != 4 || y.rank != 4)
    invalid(request, "all tensors have 4 dimensions; found " + found);
  if (x.dtype != weight.dtype || x.dtype != y.dtype) invalid(request, "all tensors have one dtype");
  auto pair = [&](const char* name, int64_t least) {
    auto v = request.get_ints(name);
    if (v.size() != 2 || v[0] < least || v[1] < least || v[0] > INT32_MAX || v[1] > INT32_MAX)
      invalid(request,
              std::string(name) + " must be two integers of at least " + std::to_string(least));
    return v;
  };
  auto stride = pair("stride", 1), padding = pair("padding", 0), dilation = pair("dilation", 1);
  ConvShape s{};
  s.n = x.shape[0], s.c = x.shape[1], s.h = x.shape[2], s.w = x.shape[3];
  s.o = weight.shape[0], s.cg = weight.shape[1], s.kh = weight.shape[2], s.kw = weight.shape[3];
  s.oh = y.shape[2], s.ow = y.shape[3];
  s.sh = stride[0], s.sw = stride[1], s.ph = padding[0], s.pw = padding[1], s.dh = dilation[0],
  s.dw = dilation[1];
  s.groups = request.get_int("groups");
  if (s.groups < 1 || s.o % s.groups || s.c != s.cg * s.groups)
    invalid(request,
            "channels do not divide into " + std::to_string(s.groups) + " groups; found " + found);
  s.og = s.o / s.groups;
  int64_t room_h = s.h + 2 * s.ph - s.dh * (s.kh - 1) - 1,
          room_w = s.w + 2 * s.pw - s.dw * (s.kw - 1) - 1;
  if (s.kh < 1 || s.kw < 1 || room_h < 0 || room_w < 0 || y.shape[0] != s.n || y.shape[1] != s.o ||
      s.oh < 1 || s.ow < 1 || s.oh != room_h / s.sh + 1 || s.ow != room_w / s.sw + 1)
    invalid(request, "shapes do not fit together; found " + found);
  s.y_phases = std::min(s.sh, (s.kh - 1) * s.dh + 1);
  s.x_phases = std::min(s.sw, (s.kw - 1) * s.dw + 1);
  s.pitch = ((s.ow - 1) * s.sw + (s.kw - 1) * s.dw) / s.sw + 1;
  // What memory can hold is for the host to say, but the sizes it is asked for must not overflow.
  double planes = double(s.cg) * double(s.y_phases) * double(s.x_phases) *
                  double(s.plane_rows(s.oh)) * double(s.pitch);
  if (planes > 0x1p48)
    throw sdk::Error(TN_CODE_OUT_OF_MEMORY,
                     "cpu: " + std::string(request.op()) + ": with stride " + std::to_string(s.sh) +
                         " x " + std::to_string(s.sw) + " and dilation " + std::to_string(s.dh) +
                         " x " + std::to_string(s.dw) +
                         " the scratch planes have more than 2^48 elements; found " + found);
  return s;
}

}  // namespace tenon::cpu
