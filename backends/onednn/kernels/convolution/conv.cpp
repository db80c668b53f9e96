#include <map>
#include <utility>

#include "kernels/convolution/shared.h"
#include "kernels/pointwise/finish.h"

namespace tenon::onednn {
namespace {

enum ConvOperand : size_t { kIn, kWeight, kBias, kResidual, kOut, kKeptWeight, kOperands };

// Images that a job takes through the blocked layouts at a time should stay in its cache.
constexpr int64_t kCacheBytes = 256 << 10;
// Data of at least this size that several jobs read in one layout is reordered by all threads
// together. Less is reordered by each job itself, faster than threads could wait for each other.
constexpr uint64_t kMinShared = 256 << 10;

// What one thread does: brings the weight into blocks, and then some images at a time through them,
// or reads blocks of the weight that are kept.
struct Job {
  std::vector<Step> weight, repeated, repeated_with_kept;
  int64_t times;
};

// Says where the jobs of a plan find their memory. Several jobs may read the same input.
struct Jobs {
  Work& work;
  Kept& kept;
  SharedInputs &inputs, &weights;
  bool share_inputs, share_weights;
};

// The convolution and the gradient of its input: feature maps in, a weight, feature maps out.
struct Through {
  const Conv& conv;
  const Finish& ending;
  bool forward = conv.kind == sdk::ConvKind::forward;
  int64_t channels = forward ? conv.o : conv.c;  // of the result
  const Dims &in_strides = forward ? conv.x_strides : conv.y_strides,
             &out_strides = forward ? conv.y_strides : conv.x_strides;
  int64_t in_numel = forward ? conv.c * conv.h * conv.w : conv.o * conv.oh * conv.ow;  // an image's
  int64_t out_plane = forward ? conv.oh * conv.ow : conv.h * conv.w;

  std::vector<ConvPart> cut(int64_t threads) const;
  Job job(Jobs& jobs, const ConvPart& part, int64_t at_once, const Primitive& primitive) const;
  Arranged input(Jobs& jobs, const ConvPart& part, int64_t at_once,
                 const Primitive& primitive) const;
  Step last_step(const ConvPart& part, const Argument& out) const;
  Primitive primitive(int64_t images, int64_t some) const {
    return forward ? conv.forward(images, some) : conv.backward_input(images, some);
  }
  // Images at once: as many as fit in the cache, and divide those of the part. Each time the whole
  // weight is read, so that where it is larger than the cache, images may take as much room. But at
  // least least_at_once() of them.
  int64_t at_once(const ConvPart& part) const {
    const int64_t bytes = (in_numel + channels * out_plane) * conv.element,
                  weight_bytes = conv.weight_numel() * conv.element;
    int64_t images =
        std::clamp<int64_t>(std::max(kCacheBytes, weight_bytes) / bytes, 1, part.images);
    while (part.images % images) --images;
    return forward ? std::max(images, conv.least_at_once(part.images, part.channels)) : images;
  }
};

// By images where they divide well; else by channels, of which every job reads all images; by both
// where there are more threads than either. What a job does not share with others it reads alone,
// so where the weight is larger than what goes in, channels that divide well are better.
std::vector<ConvPart> Through::cut(int64_t threads) const {
  std::vector<ConvPart> parts;
  const int64_t n = conv.n, lanes = vector_lanes(),
                blocks = conv.groups == 1 ? std::max<int64_t>(1, channels / lanes) : 1;
  if (conv.work() <= kConvSerialWork) threads = 1;
  const auto divides_well = [&](int64_t size) {
    return size % threads == 0 || size >= 4 * threads;
  };
  const double read = double(n) * double(in_numel), weight = double(conv.weight_numel());
  // With SSE4.1 oneDNN has no fast code for some of the channels of a gradient.
  const bool large_weight = weight > read && lanes >= 8 && divides_well(blocks);
  const bool by_images = blocks < threads || (divides_well(n) && !large_weight);
  const int64_t image_runs = by_images ? std::min(n, threads) : 1,
                channel_runs = std::clamp<int64_t>(threads / image_runs, 1, blocks);
  for_runs(n, image_runs, 1, [&](int64_t image, int64_t images) {
    for_runs(channels, channel_runs, channel_runs == 1 ? channels : lanes,
             [&](int64_t channel, int64_t some) {
               parts.push_back({image, images, channel, some});
             });
  });
  return parts;
}

// The feature maps that a job reads, `at_once` images at a time.
Arranged Through::input(Jobs& jobs, const ConvPart& part, int64_t at_once,
                        const Primitive& primitive) const {
  const int name = forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST;
  const auto images = [&](int64_t n) {
    return forward ? conv.x_slice(n, conv.c) : conv.y_slice(n, conv.o);
  };
  const int64_t image_bytes = in_strides[0] * conv.element;
  const Argument some{name, kIn, images(at_once), part.image * image_bytes, at_once * image_bytes};
  const Desc wanted = primitive.layout(name), whole = for_images(wanted, part.images);
  if (!jobs.share_inputs || !whole.ndims || bytes_of(whole) < kMinShared)
    return arranged_input(jobs.work, primitive, name, some);
  Argument shared = some;
  shared.desc = images(part.images);
  shared = jobs.inputs.in_layout(shared, whole, primitive.kind(),
                                 part.images < thread_count() ? kRows : kImages);
  if (shared.operand == kIn) return {some, {}};
  shared.desc = wanted;
  shared.advance = static_cast<int64_t>(bytes_of(wanted));
  return {shared, {}};
}

// What follows the convolution itself, on the rows that a job has just written to `out`.
Step Through::last_step(const ConvPart& part, const Argument& out) const {
  const int64_t images = out.desc.dims[0], size = conv.element;
  // Elements side by side: all, or the channels of the part in an image or in a pixel.
  const bool whole = part.channels == channels, by_pixels = out_strides[1] == 1;
  const int64_t planes = by_pixels ? 1 : out_plane, runs = by_pixels ? images * out_plane : images,
                count = whole ? images * channels * out_plane : part.channels * planes,
                step = channels * planes * size;
  Argument added = out;
  added.operand = kResidual;
  Step last{{}, {out}};
  if (ending.residual) last.arguments.push_back(added);
  last.own = [=, ending = ending, times = whole ? 1 : runs](void* const* arguments) {
    auto* y = static_cast<char*>(arguments[0]);
    const auto* r = ending.residual ? static_cast<const char*>(arguments[1]) : nullptr;
    for (int64_t i = 0; i < times; ++i) ending(y + i * step, r ? r + i * step : nullptr, count);
  };
  return last;
}

Job Through::job(Jobs& jobs, const ConvPart& part, int64_t at_once,
                 const Primitive& primitive) const {
  Work& work = jobs.work;
  const int64_t size = conv.element, all = channels * out_plane;
  const int out_name = forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC;
  const Desc weight = forward ? conv.weight_slice(part.channels, conv.cg)
                              : conv.weight_slice(conv.o, part.channels / conv.groups);
  const Argument weights{DNNL_ARG_WEIGHTS, kWeight, weight,
                         part.channel * conv.weight_strides[forward ? 0 : 1] * size};
  const Argument out{
      out_name, kOut,
      forward ? conv.y_slice(at_once, part.channels) : conv.x_slice(at_once, part.channels),
      (part.image * all + part.channel * out_strides[1]) * size, at_once * all * size};
  const Desc wanted = primitive.layout(DNNL_ARG_WEIGHTS);
  Arranged w = jobs.share_weights && bytes_of(wanted) >= kMinShared
                   ? Arranged{jobs.weights.in_layout(weights, wanted, primitive.kind(), 0), {}}
                   : arranged_input(work, primitive, DNNL_ARG_WEIGHTS, weights),
           x = input(jobs, part, at_once, primitive),
           y = arranged_output(work, primitive, out_name, out);
  const auto steps = [&](const Argument& weight_argument) {
    Step step{primitive, {x.argument, weight_argument, y.argument}};
    if (conv.bias)
      step.arguments.push_back(
          {DNNL_ARG_BIAS, kBias, primitive.layout(DNNL_ARG_BIAS), part.channel * size});
    std::vector<Step> all = x.copy;
    all.push_back(std::move(step));
    all.insert(all.end(), y.copy.begin(), y.copy.end());
    if (ending) all.push_back(last_step(part, out));
    return all;
  };
  const Argument of_copy = w.argument.operand == kWeight
                               ? w.argument
                               : jobs.kept.add(DNNL_ARG_WEIGHTS, weights, w.argument.desc);
  return {w.copy, steps(w.argument), steps(of_copy), part.images / at_once};
}

tn_plan* make_through(const Conv& conv, const Finish& ending) {
  const Through through{conv, ending};
  Work work, work_with_kept;
  Kept kept(kWeight, kKeptWeight, 2);
  std::map<std::array<int64_t, 2>, Primitive> known;
  std::vector<Job> jobs;
  const auto parts = through.cut(thread_count());
  const auto several = [&](int64_t ConvPart::*first) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](auto& p) { return p.*first != parts[0].*first; });
  };
  SharedInputs inputs(work, thread_count()), weights(work, thread_count());
  Jobs from{work, kept, inputs, weights, several(&ConvPart::channel), several(&ConvPart::image)};
  for (auto& part : parts) {
    const int64_t at_once = through.at_once(part);
    auto& primitive = known[{at_once, part.channels}];
    if (!primitive) primitive = through.primitive(at_once, part.channels);
    jobs.push_back(through.job(from, part, at_once, primitive));
  }
  inputs.add_jobs(work), weights.add_jobs(work);
  work.next_stage();
  for (auto& job : jobs) work.add(job.weight, job.repeated, job.times);
  work_with_kept.reserve(work.workspace_bytes());  // the steps use the same scratch memory
  inputs.add_jobs(work_with_kept);
  work_with_kept.next_stage();
  for (auto& job : jobs) work_with_kept.add({}, job.repeated_with_kept, job.times);
  const double last_ns = ending.ns() * double(conv.n * through.channels * through.out_plane);
  const sdk::PlanOptions options{
      work_with_kept.workspace_bytes(),
      conv.cost_ns(conv.padding_of_blocks(), 0.05) + static_cast<uint64_t>(last_ns),
      TN_PLAN_INPUT_VERSIONS};
  return sdk::make_plan(
      [ending, bias = conv.bias, work = std::move(work), work_with_kept = std::move(work_with_kept),
       kept = std::move(kept)](const tn_run& run) mutable {
        void* operands[kOperands] = {run.inputs[0],
                                     run.inputs[1],
                                     bias ? run.inputs[2] : nullptr,
                                     ending.residual ? run.inputs[ending.residual.input] : nullptr,
                                     run.outputs[0],
                                     nullptr};
        const bool there = kept.provide(operands, sdk::input_version(run, 1));
        (there ? work_with_kept : work).run(operands, run.workspace);
      },
      options);
}

// Whether each element of the kernel lies on the image in one of the windows along a dimension.
bool each_tap_meets_image(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                          int64_t dilation, int64_t positions) {
  for (int64_t tap = 0; tap < kernel; ++tap) {
    const int64_t place = tap * dilation - padding,  // in the first window
        window = place < 0 ? ceil_div(-place, stride) : 0;
    if (window >= positions || place + window * stride >= size) return false;
  }
  return true;
}

tn_plan* make_conv(tn_device*, const Request& request) {
  const Conv conv(request);
  const Finish ending =
      conv.kind == sdk::ConvKind::forward ? Finish::of(request, conv.type, 3) : Finish{};
  if (conv.empty) return make_empty_sum(request, conv.bias, conv.oh * conv.ow, ending.relu);
  return conv.kind == sdk::ConvKind::backward_weight ? make_backward_weight(conv)
                                                     : make_through(conv, ending);
}

const sdk::Kernel convolutions({"conv2d", "conv2d_backward_input", "conv2d_backward_weight"},
                               make_conv);

}  // namespace

namespace {
// Those of dimensions of one element are made the ones that the format has.
Dims strides_of(const tn_tensor_desc& d) {
  Dims strides(4);
  const bool last = !sdk::is_contiguous(d);
  int64_t step = 1;
  for (const size_t dim :
       last ? std::array<size_t, 4>{1, 3, 2, 0} : std::array<size_t, 4>{3, 2, 1, 0}) {
    strides[dim] = step;
    step *= std::max<int64_t>(d.shape[dim], 1);
  }
  return strides;
}
}  // namespace

Conv::Conv(const Request& request)
    : sdk::ConvRequest(from_any_order(request)),
      type(compute_type(dtype)),
      element(dtype == TN_F32 ? 4 : 2),
      code(code_for(type)) {
  for (auto* d : {&request.input(0), &request.input(1), &request.output(0)}) {
    if (sdk::numel(*d) == 0) empty = true;
    if (sdk::numel(*d) >= int64_t{1} << 29)
      unsupported("a tensor is too large for oneDNN's kernels");
    if (!sdk::is_contiguous(*d) && !sdk::is_channels_last(*d))
      unsupported("a tensor is neither row-major nor channels last");
  }
  const auto &first = request.input(0), &second = request.input(1), &out = request.output(0);
  x_strides = strides_of(kind == sdk::ConvKind::forward          ? first
                         : kind == sdk::ConvKind::backward_input ? out
                                                                 : second);
  y_strides = strides_of(kind == sdk::ConvKind::forward ? out : first);
  weight_strides = strides_of(kind == sdk::ConvKind::backward_weight ? out : second);
  if (empty && base_computes(type)) unsupported("a tensor has no elements");
  // Fast kernels look at the edges of an image apart from its middle: where windows lie wholly in
  // the padding, there is none.
  if (ph >= (kh - 1) * dh + 1 || pw >= (kw - 1) * dw + 1 || ph > h || pw > w) {
    if (base_computes(type)) unsupported("windows lie wholly in the padding");
    code = Code::reference;
  }
  // They leave the gradient of an element of the kernel as the memory was if that element lies in
  // the padding in all windows.
  if (kind == sdk::ConvKind::backward_weight && !(each_tap_meets_image(h, kh, sh, ph, dh, oh) &&
                                                  each_tap_meets_image(w, kw, sw, pw, dw, ow))) {
    if (base_computes(type)) unsupported("elements of the kernel lie wholly in the padding");
    code = Code::reference;
  }
  if (slower_than_f32()) unsupported("its channels fill blocks so badly that f32 is faster");
  // Windows of one element with a stride read a part of the image alone: here the image is that
  // part, whose elements lie further apart, and the rest is not reordered. oneDNN takes no strides
  // with which the rows of one plane would reach into the next.
  if (taps() == 1 && ph == 0 && pw == 0 && oh * sh <= h && ow * sw <= w &&
      kind != sdk::ConvKind::backward_input) {
    x_strides[2] *= sh, x_strides[3] *= sw;
    h = oh, w = ow;
    sh = sw = 1;
  }
}

Desc Conv::weight_slice(int64_t out, int64_t in, dnnl_data_type_t element) const {
  Dims strides = weight_strides;
  if (groups > 1) strides.insert(strides.begin(), og * strides[0]);
  return strided(element, weight_shape(out, in), strides);
}
Desc Conv::x_slice(int64_t images, int64_t channels) const {
  return strided(type, x_shape(images, channels), x_strides);
}
Desc Conv::y_slice(int64_t images, int64_t channels) const {
  return strided(type, y_shape(images, channels), y_strides);
}

Primitive Conv::forward(int64_t images, int64_t out) const {
  const Desc x = any_layout(type, x_shape(images, c)),
             weight = any_layout(type, weight_shape(out, cg)),
             y = any_layout(type, y_shape(images, out)), added = contiguous(type, Dims{out});
  dnnl_convolution_desc_t op;
  check(
      dnnl_dilated_convolution_forward_desc_init(
          &op, dnnl_forward_training, dnnl_convolution_direct, &x, &weight, bias ? &added : nullptr,
          &y, strides().data(), dilations().data(), padding().data(), padding().data()),
      "a convolution");
  return Primitive::make(&op, code);
}

Primitive Conv::backward_input(int64_t images, int64_t in) const {
  const Desc x = any_layout(type, x_shape(images, in)),
             weight = any_layout(type, weight_shape(o, in / groups)),
             y = any_layout(type, y_shape(images, o));
  dnnl_convolution_desc_t op;
  check(dnnl_dilated_convolution_backward_data_desc_init(&op, dnnl_convolution_direct, &x, &weight,
                                                         &y, strides().data(), dilations().data(),
                                                         padding().data(), padding().data()),
        "a convolution's gradient");
  return Primitive::make(&op, code);
}

Primitive Conv::backward_weight(int64_t images, int64_t out, dnnl_data_type_t result,
                                bool on_rows) const {
  const auto layout = on_rows ? contiguous : any_layout;
  const Desc x = layout(type, x_shape(images, c)), weight = layout(result, weight_shape(out, cg)),
             y = layout(type, y_shape(images, out));
  dnnl_convolution_desc_t op;
  check(dnnl_dilated_convolution_backward_weights_desc_init(
            &op, dnnl_convolution_direct, &x, &weight, nullptr, &y, strides().data(),
            dilations().data(), padding().data(), padding().data()),
        "a convolution's gradient");
  return Primitive::make(&op, code);
}

Arranged arranged_input(Work& work, const Primitive& primitive, int name, const Argument& from) {
  const Desc wanted = primitive.layout(name);
  if (same_layout(wanted, from.desc)) return {from, {}};
  Argument source = from, target{DNNL_ARG_TO, kWorkspace, wanted, work.reserve(bytes_of(wanted))};
  source.name = DNNL_ARG_FROM;
  const Step copy{Primitive::reorder(from.desc, wanted, primitive.kind()), {source, target}};
  target.name = name;
  return {target, {copy}};
}

Arranged arranged_output(Work& work, const Primitive& primitive, int name, const Argument& to) {
  const Desc written = primitive.layout(name);
  if (same_layout(written, to.desc)) return {to, {}};
  Argument source{DNNL_ARG_FROM, kWorkspace, written, work.reserve(bytes_of(written))}, target = to;
  target.name = DNNL_ARG_TO;
  const Step copy{Primitive::reorder(written, to.desc, primitive.kind()), {source, target}};
  source.name = name;
  return {source, {copy}};
}

}  // namespace tenon::onednn
