// The gradient of a convolution's weight. Jobs take output channels first, of which each has its
// own rows of the gradient. Where there are more threads than blocks of channels, jobs also divide
// the images, and their sums are added up in the order of the images.
#include <cstring>
#include <map>
#include <utility>

#include "kernels/convolution/conv.h"

namespace tenon::onednn {
namespace {

enum Operand : size_t { kGradient, kX, kOut };

struct WeightGradient {
  const Conv& conv;
  int64_t channel_runs, image_runs;

  WeightGradient(const Conv& c, int64_t threads) : conv(c) {
    if (conv.work() <= kConvSerialWork) threads = 1;
    const int64_t blocks = conv.groups == 1 ? ceil_div(conv.o, vector_lanes()) : 1;
    channel_runs = std::min(threads, blocks);
    image_runs = std::min(conv.n, threads / channel_runs);
  }
  int64_t numel() const { return conv.o * conv.cg * conv.taps(); }
  bool adds_up() const { return image_runs > 1; }
};

// The input of all images of one run in the layout that the jobs of its channels read.
struct SharedInput {
  Argument argument;
  std::vector<Step> copies;  // in pieces, so that several threads can do them
};

SharedInput share_input(Work& work, const Conv& conv, const Primitive& primitive, int64_t image,
                        int64_t images, int64_t pieces) {
  const int64_t bytes = conv.c * conv.h * conv.w * conv.element;
  const Desc wanted = primitive.layout(DNNL_ARG_SRC);
  const Argument whole{DNNL_ARG_SRC, kX, conv.x_slice(images, conv.c), image * bytes};
  if (same_layout(wanted, whole.desc)) return {whole, {}};
  const Argument target{DNNL_ARG_SRC, kWorkspace, wanted, work.reserve(bytes_of(wanted))};
  SharedInput shared{target, {}};
  for_runs(images, pieces, 1, [&](int64_t first, int64_t count) {
    const Desc from = conv.x_slice(count, conv.c);
    const Dims shape = conv.x_shape(count, conv.c), offsets = {first, 0, 0, 0};
    Desc part;
    check(dnnl_memory_desc_init_submemory(&part, &wanted, shape.data(), offsets.data()),
          "some images of many");
    shared.copies.push_back({Primitive::reorder(from, part, conv.code),
                             {{DNNL_ARG_FROM, kX, from, (image + first) * bytes},
                              {DNNL_ARG_TO, kWorkspace, part, target.offset}}});
  });
  return shared;
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

}  // namespace

tn_plan* make_backward_weight(const Conv& conv) {
  const WeightGradient gradient(conv, thread_count());
  const bool adds_up = gradient.adds_up(), bf16 = conv.type == dnnl_bf16;
  const auto result = adds_up ? dnnl_f32 : conv.type;
  const int64_t result_element = adds_up ? 4 : conv.element, numel = gradient.numel();
  Work work;
  const int64_t partial =
      adds_up ? work.reserve(static_cast<uint64_t>(gradient.image_runs * numel * 4)) : 0;
  std::map<std::array<int64_t, 2>, Primitive> known;
  struct Run {
    int64_t image, images;
    SharedInput input;
  };
  std::vector<Run> runs;
  const auto code = [&](int64_t images, int64_t channels) -> const Primitive& {
    auto& primitive = known[{images, channels}];
    if (!primitive) primitive = conv.backward_weight(images, channels, result);
    return primitive;
  };
  const auto channel_runs = [&](auto&& f) {
    for_runs(conv.o, gradient.channel_runs, conv.groups == 1 ? vector_lanes() : conv.o, f);
  };
  for_runs(conv.n, gradient.image_runs, 1, [&](int64_t image, int64_t images) {
    const Primitive* primitive = nullptr;
    channel_runs([&](int64_t, int64_t channels) {
      const Primitive& other = code(images, channels);
      if (primitive && !same_layout(primitive->layout(DNNL_ARG_SRC), other.layout(DNNL_ARG_SRC)))
        unsupported("oneDNN reads the input in several layouts");
      primitive = &other;
    });
    runs.push_back(
        {image, images, share_input(work, conv, *primitive, image, images, gradient.channel_runs)});
    for (auto& copy : runs.back().input.copies) work.add({copy});
  });
  work.next_stage();
  int64_t number = 0;
  for (auto& run : runs) {
    channel_runs([&](int64_t channel, int64_t channels) {
      const Primitive& primitive = code(run.images, channels);
      const int64_t image_size = conv.o * conv.oh * conv.ow,
                    first = channel * conv.cg * conv.taps();
      const Argument g{DNNL_ARG_DIFF_DST, kGradient, conv.y_slice(run.images, channels),
                       (run.image * image_size + channel * conv.y_strides[1]) * conv.element};
      Argument weight{DNNL_ARG_DIFF_WEIGHTS, kOut, conv.weight_slice(channels, conv.cg, result),
                      first * result_element};
      if (adds_up) {
        weight.operand = kWorkspace;
        weight.offset += partial + number * numel * result_element;
      }
      Arranged y = arranged_input(work, primitive, DNNL_ARG_DIFF_DST, g),
               dw = arranged_output(work, primitive, DNNL_ARG_DIFF_WEIGHTS, weight);
      std::vector<Step> steps = y.copy;
      steps.push_back({primitive, {run.input.argument, y.argument, dw.argument}});
      steps.insert(steps.end(), dw.copy.begin(), dw.copy.end());
      work.add(steps);
    });
    ++number;
  }
  // Input channels that fill no block go through an older kernel, unless there are few.
  const int64_t lanes = vector_lanes(), group = conv.og;
  const double older = conv.cg > 3 && conv.cg % lanes ? 1.8 : 1,
               padded = double(ceil_div(group, lanes) * lanes) / double(group) * older;
  const sdk::PlanOptions options{work.workspace_bytes(), conv.cost_ns(padded, true)};
  return sdk::make_plan(
      [work = std::move(work), partial, number, numel, adds_up, bf16](const tn_run& run) {
        void* const operands[] = {run.inputs[0], run.inputs[1], run.outputs[0]};
        work.run(operands, run.workspace);
        if (adds_up)
          add_up(reinterpret_cast<const float*>(static_cast<char*>(run.workspace) + partial),
                 number, numel, bf16, run.outputs[0]);
      },
      options);
}

}  // namespace tenon::onednn
