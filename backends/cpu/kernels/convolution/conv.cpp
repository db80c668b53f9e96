#include "kernels/convolution/conv.h"

namespace tenon::cpu {
namespace {

tn_plan* make_conv2d(tn_device*, const Request& request) {
  const ConvShape s(request);
  const Finish finish = finish_of(request, 3);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_float(s.dtype, [&]<class T>(T) {
    ConvForward<T> conv(s, false, finish);
    const sdk::PlanOptions options{
        conv.workspace_bytes(), ConvCost{}.of<T>(s) + static_cast<uint64_t>(finish_ns(s, finish))};
    auto run = [conv = std::move(conv), bias = s.bias, finish](const tn_run& run) {
      conv.run(static_cast<const T*>(run.inputs[0]), static_cast<const T*>(run.inputs[1]),
               bias ? static_cast<const T*>(run.inputs[2]) : nullptr,
               static_cast<T*>(run.outputs[0]), run.workspace, finish.of(run));
    };
    return sdk::make_plan(std::move(run), options);
  });
}

const sdk::Kernel conv2d({"conv2d"}, make_conv2d);

}  // namespace

ConvShape::ConvShape(const Request& request) : sdk::ConvRequest(from(request)) {
  require_contiguous(request.input(0));
  require_contiguous(request.input(1));
  y_phases = std::min(sh, (kh - 1) * dh + 1);
  x_phases = std::min(sw, (kw - 1) * dw + 1);
  pitch = ((ow - 1) * sw + (kw - 1) * dw) / sw + 1;
  // What memory can hold is for the host to say, but the sizes it is asked for must not overflow.
  const double planes =
      double(cg) * double(y_phases) * double(x_phases) * double(plane_rows(oh)) * double(pitch);
  if (planes > 0x1p48)
    throw sdk::Error(TN_CODE_OUT_OF_MEMORY,
                     sdk::text("with stride {} x {} and dilation {} x {} the scratch planes have "
                               "more than 2^48 elements",
                               sh, sw, dh, dw));
}

}  // namespace tenon::cpu
