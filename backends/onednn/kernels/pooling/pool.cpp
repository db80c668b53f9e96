// Average pooling and its gradient. oneDNN's maximum loses NaN and infinities, so max pooling stays
// with the base.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <tenon/plugins/sdk/requests/pool.h>

#include "runtime/common.h"

namespace tenon::onednn {
namespace {

enum Operand : size_t { kFrom, kTo };

// Estimated nanoseconds below which waking another thread costs more than it saves.
constexpr double kSerialNs = 20'000;

struct Average : sdk::PoolRequest {
  bool forward;
  dnnl_data_type_t type;

  explicit Average(const Request& request)
      : Average(request,
                request.op() == "avg_pool2d_backward" ? request.output(0) : request.input(0),
                request.op() == "avg_pool2d_backward" ? request.input(0) : request.output(0)) {}

  double cost_ns() const;
  Primitive primitive(int64_t some) const;

 private:
  Average(const Request& request, const tn_tensor_desc& large, const tn_tensor_desc& small);
};

Average::Average(const Request& request, const tn_tensor_desc& large, const tn_tensor_desc& small)
    : sdk::PoolRequest(from(request, large, small, sdk::PoolWindows::averaged)),
      forward(request.op() == "avg_pool2d"),
      type(compute_type(large.dtype)) {
  if (sdk::numel(large) == 0 || sdk::numel(small) == 0) unsupported("a tensor has no elements");
  if (sdk::numel(large) >= int64_t{1} << 29)
    unsupported("a tensor is too large for oneDNN's kernels");
  require_contiguous(request.input(0));
  require_contiguous(request.output(0));
  // What lies beyond the padding does not count, but oneDNN would count it.
  if ((oh - 1) * sh + kh > h + 2 * ph || (ow - 1) * sw + kw > w + 2 * pw)
    unsupported("windows reach beyond the padding (ceil_mode)");
}

// On one core. Planes are transposed, so that the same place of several of them fills a vector, and
// back.
double Average::cost_ns() const {
  const double in = double(planes) * double(in_size()), out = double(planes) * double(out_size());
  return 1500 + (0.3 * (in + out) + 0.03 * out * double(kh) * double(kw)) * 16 /
                    static_cast<double>(vector_lanes());
}

// For `some` planes, which oneDNN takes as the channels of one image.
Primitive Average::primitive(int64_t some) const {
  const Desc x = contiguous(type, std::array{int64_t{1}, some, h, w}),
             y = contiguous(type, std::array{int64_t{1}, some, oh, ow});
  const int64_t strides[] = {sh, sw}, kernel[] = {kh, kw}, padding[] = {ph, pw};
  const auto kind = count_pad ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding;
  dnnl_pooling_desc_t op;
  check(dnnl_pooling_forward_desc_init(&op, dnnl_forward_training, kind, &x, &y, strides, kernel,
                                       padding, padding),
        "an average");
  Primitive made = Primitive::make(&op);
  if (!forward) {
    check(dnnl_pooling_backward_desc_init(&op, kind, &x, &y, strides, kernel, padding, padding),
          "an average's gradient");
    made = Primitive::make(&op, &made);
  }
  if (!made.name().starts_with("jit")) unsupported("oneDNN has only slow code for this");
  return made;
}

tn_plan* make_average(tn_device*, const Request& request) {
  const Average average(request);
  const double cost = average.cost_ns();
  const int64_t lanes = vector_lanes(), runs = cost < kSerialNs ? 1 : thread_count(),
                each = ceil_div(ceil_div(average.planes, runs), lanes) * lanes;
  Work work;
  std::map<int64_t, Primitive> known;
  for (int64_t at = 0; at < average.planes; at += each) {
    const int64_t some = std::min(each, average.planes - at);
    auto& primitive = known[some];
    if (!primitive) primitive = average.primitive(some);
    const auto argument = [&](int name, Operand operand, int64_t plane) {
      return Argument{name, operand, primitive.layout(name),
                      at * plane * static_cast<int64_t>(dnnl_data_type_size(average.type))};
    };
    work.add({{primitive, average.forward
                              ? std::vector{argument(DNNL_ARG_SRC, kFrom, average.in_size()),
                                            argument(DNNL_ARG_DST, kTo, average.out_size())}
                              : std::vector{argument(DNNL_ARG_DIFF_DST, kFrom, average.out_size()),
                                            argument(DNNL_ARG_DIFF_SRC, kTo, average.in_size())}}});
  }
  const sdk::PlanOptions options{work.workspace_bytes(),
                                 static_cast<uint64_t>(std::min(cost, 0x1p60))};
  return sdk::make_plan(
      [work = std::move(work)](const tn_run& run) {
        void* const operands[] = {run.inputs[0], run.outputs[0]};
        work.run(operands, run.workspace);
      },
      options);
}

const sdk::Kernel registration({"avg_pool2d", "avg_pool2d_backward"}, make_average);

}  // namespace
}  // namespace tenon::onednn
