// Selection and limits.
#include <limits>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

struct Select {
  template <class T>
  __device__ T operator()(uint8_t condition, T a, T b) const {
    return condition ? a : b;
  }
};

// Selection knows the size of an element, not its dtype.
tn_plan* make_where(tn_device*, const Request& request) {
  auto &c = request.input(0), &a = request.input(1), &b = request.input(2);
  if (c.dtype != TN_BOOL) refuse_dtype(request, c.dtype);
  if (a.dtype != b.dtype || a.dtype != request.output(0).dtype) refuse_dtype(request, b.dtype);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_width(a.dtype, [&]<class T>(T) {
    return make_plan([loop = loop_over(request, &c, &a, &b)](const tn_run& run) {
      loop.run<Select, T>(run.stream, Select{}, run.outputs[0], operand<uint8_t>(run.inputs[0]),
                          operand<T>(run.inputs[1]), operand<T>(run.inputs[2]));
    });
  });
}
const sdk::Kernel selection({"where"}, make_where);

template <class C>
struct Clamp {
  C low, high;
  __device__ C operator()(C x) const {
    C v = x < low ? low : x;  // NaN stays
    return v > high ? high : v;
  }
};

// Limits outside an integer dtype stand for "none" there.
template <class C>
C limit(const tn_scalar& s) {
  if constexpr (std::is_floating_point_v<C>) {
    return static_cast<C>(s.f);
  } else {
    return static_cast<C>(
        std::clamp<int64_t>(s.i, std::numeric_limits<C>::min(), std::numeric_limits<C>::max()));
  }
}

template <class T>
void start_clamp(const Loop<2>& loop, const tn_run& run) {
  using C = Computed<T>;
  Clamp<C> op{limit<C>(run.scalars[0]), limit<C>(run.scalars[1])};
  loop.run<Clamp<C>, T>(run.stream, op, run.outputs[0], operand<T>(run.inputs[0]));
}
constexpr ByDtype<UnaryStart> kClamp = {.f32 = start_clamp<float>,
                                        .f64 = start_clamp<double>,
                                        .f16 = start_clamp<Half>,
                                        .bf16 = start_clamp<BFloat>,
                                        .i64 = start_clamp<int64_t>,
                                        .i32 = start_clamp<int32_t>,
                                        .u8 = start_clamp<uint8_t>,
                                        .boolean = nullptr};
const sdk::Kernel clamp({"clamp"}, [](tn_device*, const Request& request) {
  return make_unary_plan(request, kClamp.pick(request, request.input(0).dtype));
});

}  // namespace
}  // namespace tenon::cuda
