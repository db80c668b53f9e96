// The gradient of a convolution's weight. Jobs take output channels first, of which each has its
// own rows of the gradient. Where there are more threads than blocks of channels, jobs also divide
// the images, and their sums are added up in the order of the images.
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "kernels/convolution/from_blocks.h"
#include "kernels/convolution/shared.h"

namespace tenon::onednn {
namespace {

enum GradientOperand : size_t { kGradient, kX, kWeightGradient };

struct WeightGradient {
  const Conv& conv;
  int64_t channel_runs, image_runs;

  WeightGradient(const Conv& c, int64_t threads) : conv(c) {
    if (conv.work() <= kConvSerialWork) threads = 1;
    const int64_t blocks = conv.groups == 1 ? ceil_div(conv.o, vector_lanes()) : 1;
    channel_runs = std::min(threads, blocks);
    image_runs = std::min(conv.n, threads / channel_runs);
  }
  // Whether a primitive reads and writes rows itself. For one small image, the gradient in blocks
  // is larger than everything that is read, and copying it would be a third of the time.
  bool on_rows() const {
    constexpr int64_t kFewPixels = 64;
    const auto is_plain = [](const Dims& strides, int64_t width) {
      return strides[3] == 1 && strides[2] == width;
    };
    return conv.n == 1 && conv.groups == 1 && conv.type == dnnl_f32 && vector_lanes() == 8 &&
           conv.taps() > 1 && conv.oh * conv.ow <= kFewPixels && is_plain(conv.x_strides, conv.w) &&
           is_plain(conv.y_strides, conv.ow) && is_plain(conv.weight_strides, conv.kw);
  }
  // Returns how many output channels a job computes at a time: so few that the blocks that it
  // writes are still in its cache when they are copied to rows. The images are read again for each
  // block of channels anyway, from the next larger cache if they fit into it.
  int64_t at_once(int64_t images, int64_t channels) const {
    constexpr int64_t kImages = 2 << 20, kCacheBytes = 256 << 10, kBlock = 16;
    const int64_t bytes = 4 * conv.cg * conv.taps();  // of one of them
    if (on_rows() || conv.groups > 1 || images * conv.c * conv.h * conv.w * conv.element > kImages)
      return channels;
    return std::min(std::max(kCacheBytes / bytes / kBlock, int64_t{1}) * kBlock, channels);
  }
  bool adds_up() const { return image_runs > 1; }
};

// Returns the gradient at `to` as arranged_output does, but copies blocks by code of our own.
// `scratch` is the job's memory for the blocks, or -1 as long as it has none.
Arranged gradient_at(Work& work, const Primitive& primitive, const Argument& to, int64_t& scratch) {
  const Desc blocks = primitive.layout(DNNL_ARG_DIFF_WEIGHTS);
  auto copy = FromBlocks::between(blocks, to.desc);
  if (!copy) return arranged_output(work, primitive, DNNL_ARG_DIFF_WEIGHTS, to);
  if (scratch < 0) scratch = work.reserve(bytes_of(blocks));
  const Argument written{DNNL_ARG_DIFF_WEIGHTS, kWorkspace, blocks, scratch};
  const auto own = [copy = std::move(*copy)](void* const* places) {
    copy.copy(static_cast<const float*>(places[0]), static_cast<float*>(places[1]));
  };
  return {written, {Step{{}, {written, to}, own}}};
}

// Sums of `runs` partial gradients of f32, in their order, as f32 or rounded to bf16.
void add_up(const float* partial, int64_t runs, int64_t numel, bool bf16, void* out) {
  sdk::parallel_for(host(), numel, 1 << 14, [&](int64_t begin, int64_t end, uint32_t) {
    for (int64_t i = begin; i < end; ++i) {
      float sum = partial[i];
      for (int64_t r = 1; r < runs; ++r) sum += partial[r * numel + i];
      if (!bf16) {
        static_cast<float*>(out)[i] = sum;
        continue;
      }
      uint32_t bits;
      std::memcpy(&bits, &sum, sizeof bits);
      const bool nan = (bits & 0x7fffffff) > 0x7f800000;
      static_cast<uint16_t*>(out)[i] =
          static_cast<uint16_t>(nan ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
  });
}

// The jobs of a plan for such a gradient, while they are made.
struct GradientJobs {
  // Images whose sums a job computes, and where it reads them.
  struct Run {
    int64_t image, images;
    Argument input;
  };

  const Conv& conv;
  const WeightGradient gradient;
  const bool adds_up = gradient.adds_up();
  const dnnl_data_type_t result = adds_up ? dnnl_f32 : conv.type;
  const int64_t result_element = adds_up ? 4 : conv.element, numel = conv.weight_numel();
  Work work = {};
  // Where the sums of the first run are, if they have to be added up; those of others follow.
  const int64_t partial =
      adds_up ? work.reserve(static_cast<uint64_t>(gradient.image_runs * numel * 4)) : 0;
  SharedInputs shared{work, gradient.channel_runs};
  std::map<std::array<int64_t, 2>, Primitive> known = {};
  double byte_ns = 0;  // of the gradient, to be copied

  const Primitive& code(int64_t images, int64_t channels) {
    auto& primitive = known[{images, channels}];
    if (!primitive) primitive = conv.backward_weight(images, channels, result, gradient.on_rows());
    return primitive;
  }
  // Calls f(first, count) for the channels of each job.
  template <class F>
  void for_channel_runs(F&& f) const {
    for_runs(conv.o, gradient.channel_runs, conv.groups == 1 ? vector_lanes() : conv.o, f);
  }
  // Calls f for the channels that a job computes at a time.
  template <class F>
  void for_some_of(int64_t images, int64_t channels, F&& f) const {
    for_runs(channels, ceil_div(channels, gradient.at_once(images, channels)),
             conv.groups == 1 ? vector_lanes() : channels, f);
  }

  std::vector<Run> runs_of_images();
  void add_jobs(const Run& run, int64_t number);
  void add_steps(std::vector<Step>& steps, const Run& run, int64_t number, int64_t channel,
                 int64_t some, int64_t& scratch);
  uint64_t cost_ns() const;
};

std::vector<GradientJobs::Run> GradientJobs::runs_of_images() {
  std::vector<Run> runs;
  for_runs(conv.n, gradient.image_runs, 1, [&](int64_t image, int64_t images) {
    const Primitive* primitive = nullptr;
    const auto note = [&](int64_t, int64_t channels) {
      const Primitive& other = code(images, channels);
      if (primitive && !same_layout(primitive->layout(DNNL_ARG_SRC), other.layout(DNNL_ARG_SRC)))
        unsupported("oneDNN reads the input in several layouts");
      primitive = &other;
    };
    for_channel_runs([&](int64_t, int64_t channels) { for_some_of(images, channels, note); });
    const Argument x{DNNL_ARG_SRC, kX, conv.x_slice(images, conv.c),
                     image * conv.x_strides[0] * conv.element};
    runs.push_back({image, images,
                    shared.in_layout(x, primitive->layout(DNNL_ARG_SRC), conv.code,
                                     images < gradient.channel_runs ? kRows : kImages)});
  });
  return runs;
}

// The steps that compute the gradient of `some` channels from `channel` on. `scratch` is the job's.
void GradientJobs::add_steps(std::vector<Step>& steps, const Run& run, int64_t number,
                             int64_t channel, int64_t some, int64_t& scratch) {
  const Primitive& primitive = code(run.images, some);
  const int64_t image_size = conv.o * conv.oh * conv.ow;
  const Argument g{
      DNNL_ARG_DIFF_DST, kGradient,
      gradient.on_rows() ? primitive.layout(DNNL_ARG_DIFF_DST) : conv.y_slice(run.images, some),
      (run.image * image_size + channel * conv.y_strides[1]) * conv.element};
  Argument weight{DNNL_ARG_DIFF_WEIGHTS, kWeightGradient, conv.weight_slice(some, conv.cg, result),
                  channel * conv.cg * conv.taps() * result_element};
  if (adds_up) {
    weight.operand = kWorkspace;
    weight.offset += partial + number * numel * result_element;
  }
  const Arranged y = arranged_input(work, primitive, DNNL_ARG_DIFF_DST, g),
                 dw = gradient_at(work, primitive, weight, scratch);
  if (!dw.copy.empty()) byte_ns = dw.copy[0].own ? 0.05 : 0.17;
  steps.insert(steps.end(), y.copy.begin(), y.copy.end());
  steps.push_back({primitive, {run.input, y.argument, dw.argument}});
  steps.insert(steps.end(), dw.copy.begin(), dw.copy.end());
}

// The jobs of run `number`, of which each takes some of the channels.
void GradientJobs::add_jobs(const Run& run, int64_t number) {
  for_channel_runs([&](int64_t channel, int64_t channels) {
    std::vector<Step> steps;
    int64_t scratch = -1;
    for_some_of(run.images, channels, [&](int64_t first, int64_t some) {
      add_steps(steps, run, number, channel + first, some, scratch);
    });
    work.add(steps);
  });
}

// Input channels that fill no block go through an older kernel, unless there are few. So do
// channels that are groups of their own, unless the kernel is 3 x 3.
uint64_t GradientJobs::cost_ns() const {
  const bool older = conv.is_depthwise() ? conv.kh != 3 || conv.kw != 3
                                         : conv.cg > 3 && conv.cg % vector_lanes() != 0;
  const double slower = conv.is_depthwise() ? 16 : 1.8;
  return conv.cost_ns(conv.padding_of_blocks() * (older ? slower : 1), byte_ns);
}

}  // namespace

tn_plan* make_backward_weight(const Conv& conv) {
  GradientJobs jobs{conv, WeightGradient(conv, thread_count())};
  const auto runs = jobs.runs_of_images();
  jobs.shared.add_jobs(jobs.work);
  jobs.work.next_stage();
  int64_t number = 0;
  for (auto& run : runs) jobs.add_jobs(run, number++);
  const sdk::PlanOptions options{jobs.work.workspace_bytes(), jobs.cost_ns()};
  return sdk::make_plan(
      [work = std::move(jobs.work), partial = jobs.partial, number, numel = jobs.numel,
       adds_up = jobs.adds_up, bf16 = conv.type == dnnl_bf16](const tn_run& run) {
        void* const operands[] = {run.inputs[0], run.inputs[1], run.outputs[0]};
        work.run(operands, run.workspace);
        if (adds_up)
          add_up(reinterpret_cast<const float*>(static_cast<char*>(run.workspace) + partial),
                 number, numel, bf16, run.outputs[0]);
      },
      options);
}

}  // namespace tenon::onednn
