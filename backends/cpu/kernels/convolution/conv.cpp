#include "kernels/convolution/conv.h"

namespace tenon::cpu {
namespace {

tn_plan* make_conv2d(tn_device*, const Request& request) {
  const ConvShape s(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_float(s.dtype, [&]<class T>(T) { return conv_plan(s, ConvForward<T>(s, false)); });
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
