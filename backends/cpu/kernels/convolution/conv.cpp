#include "kernels/convolution/conv.h"

namespace tenon::cpu {
namespace {

tn_plan* make_conv2d(tn_device*, const Request& request) {
  auto &x = request.input(0), &y = request.output(0);
  const ConvShape s(sdk::ConvRequest::from(request));
  require_contiguous(request, x);
  require_contiguous(request, request.input(1));
  if (request.has_input(2)) require_contiguous(request, request.input(2));
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

ConvShape::ConvShape(const sdk::ConvRequest& r)
    : n(r.n),
      c(r.c),
      h(r.h),
      w(r.w),
      o(r.o),
      kh(r.kh),
      kw(r.kw),
      oh(r.oh),
      ow(r.ow),
      sh(r.stride[0]),
      sw(r.stride[1]),
      ph(r.padding[0]),
      pw(r.padding[1]),
      dh(r.dilation[0]),
      dw(r.dilation[1]),
      groups(r.groups),
      cg(r.c / r.groups),
      og(r.o / r.groups) {
  y_phases = std::min(sh, (kh - 1) * dh + 1);
  x_phases = std::min(sw, (kw - 1) * dw + 1);
  pitch = ((ow - 1) * sw + (kw - 1) * dw) / sw + 1;
  // What memory can hold is for the host to say, but the sizes it is asked for must not overflow.
  const double planes =
      double(cg) * double(y_phases) * double(x_phases) * double(plane_rows(oh)) * double(pitch);
  if (planes > 0x1p48)
    throw sdk::Error(TN_CODE_OUT_OF_MEMORY, "with stride " + std::to_string(sh) + " x " +
                                                std::to_string(sw) + " and dilation " +
                                                std::to_string(dh) + " x " + std::to_string(dw) +
                                                " the scratch planes have more than 2^48 elements");
}

}  // namespace tenon::cpu
