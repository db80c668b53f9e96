// Average pooling and its gradient. oneDNN's maximum loses NaN and infinities, so max pooling stays
// with the base.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <tenon/plugins/sdk/requests/pooling.h>

#include "runtime/common.h"

namespace tenon::onednn {
namespace {

enum PoolOperand : size_t { kFrom, kTo };

// Estimated nanoseconds below which waking another thread costs more than it saves.
constexpr double kSerialNs = 20'000;

struct Average : sdk::PoolRequest {
  bool forward;
  dnnl_data_type_t type;
  int64_t below = 0, right = 0;  // padding at the far edges, as far as windows reach

  explicit Average(const Request& request)
      : Average(request,
                request.op() == "avg_pool2d_backward" ? request.output(0) : request.input(0),
                request.op() == "avg_pool2d_backward" ? request.input(0) : request.output(0)) {}

  bool empty() const { return planes == 0 || in_size() == 0 || out_size() == 0; }
  double cost_ns() const;
  Primitive primitive(int64_t some) const;

 private:
  Average(const Request& request, const tn_tensor_desc& large, const tn_tensor_desc& small);
};

Average::Average(const Request& request, const tn_tensor_desc& large, const tn_tensor_desc& small)
    : sdk::PoolRequest(from(request, large, small, sdk::PoolWindows::averaged)),
      forward(request.op() == "avg_pool2d"),
      type(compute_type(large.dtype)) {
  if (empty() && base_computes(type)) unsupported("a tensor has no elements");
  if (sdk::numel(large) >= int64_t{1} << 29)
    unsupported("a tensor is too large for oneDNN's kernels");
  require_contiguous(request.input(0));
  require_contiguous(request.output(0));
  // With the copies to f32 and back, that is faster where the base adds up whole rows.
  constexpr int64_t kLongRow = 16;
  if (!base_computes(type) && kh == 2 && kw == 2 && sh == 2 && sw == 2 && !ph && !pw &&
      w >= kLongRow && !empty())
    unsupported("averages of 2 x 2 elements side by side are faster in f32");
  below = (oh - 1) * sh + kh - h - ph;
  right = (ow - 1) * sw + kw - w - pw;
  if (below <= ph && right <= pw) {
    below = ph, right = pw;
    return;
  }
  if (base_computes(type)) unsupported("windows reach beyond the padding (ceil_mode)");
  below = std::max(below, ph), right = std::max(right, pw);
  // What lies beyond the padding does not count, but oneDNN would count it with the padding.
  if (count_pad && (ph || pw))
    unsupported("windows reach beyond padding that counts (ceil_mode with count_include_pad)");
  count_pad = false;
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
  const int64_t strides[] = {sh, sw}, kernel[] = {kh, kw}, padding[] = {ph, pw},
                far_padding[] = {below, right};
  const auto kind = count_pad ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding;
  dnnl_pooling_desc_t op;
  check(dnnl_pooling_forward_desc_init(&op, dnnl_forward_training, kind, &x, &y, strides, kernel,
                                       padding, far_padding),
        "an average");
  Primitive made = Primitive::make(&op, code_for(type));
  if (!forward) {
    check(dnnl_pooling_backward_desc_init(&op, kind, &x, &y, strides, kernel, padding, far_padding),
          "an average's gradient");
    made = Primitive::make(&op, code_for(type), &made);
  }
  if (base_computes(type) && !made.name().starts_with("jit"))
    unsupported("oneDNN has only slow code for this");
  return made;
}

tn_plan* make_average(tn_device*, const Request& request) {
  const Average average(request);
  if (average.empty()) return make_empty_sum(request, false, 1, false);
  const double cost = average.cost_ns();
  const int64_t lanes = vector_lanes(), runs = cost < kSerialNs ? 1 : thread_count(),
                each = ceil_div(ceil_div(average.planes, runs), lanes) * lanes;
  Work work;
  std::map<int64_t, Primitive> known;
  for (int64_t at = 0; at < average.planes; at += each) {
    const int64_t some = std::min(each, average.planes - at);
    auto& primitive = known[some];
    if (!primitive) primitive = average.primitive(some);
    const auto argument = [&](int name, PoolOperand operand, int64_t plane) {
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

const sdk::Kernel average_pools({"avg_pool2d", "avg_pool2d_backward"}, make_average);

}  // namespace
}  // namespace tenon::onednn
