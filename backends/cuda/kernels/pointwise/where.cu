// Selection and limits.
#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

struct Choose {
  template <class T>
  __device__ T operator()(uint8_t condition, T a, T b) const {
    return condition ? a : b;
  }
};

// Selection knows the size of an element, not its dtype.
tn_plan* make_where(tn_device*, const Request& request) {
  auto &c = request.input(0), &a = request.input(1), &b = request.input(2);
  if (c.dtype != TN_BOOL) refuse_dtype(c.dtype);
  if (a.dtype != b.dtype || a.dtype != request.output(0).dtype) refuse_dtype(b.dtype);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_width(a.dtype, [&]<class T>(T) {
    return make_plan([loop = loop_over(request, &c, &a, &b)](const tn_run& run) {
      loop.run<Choose, T>(run.stream, Choose{}, run.outputs[0], operand<uint8_t>(run.inputs[0]),
                          operand<T>(run.inputs[1]), operand<T>(run.inputs[2]));
    });
  });
}
const sdk::Kernel selection({"where"}, make_where);

template <class T>
void start_clamp(const Loop<2>& loop, const tn_run& run) {
  using Clamp = formulas::Clamp<Computed<T>>;
  loop.run<Clamp, T>(run.stream, Clamp::from(run.scalars), run.outputs[0],
                     operand<T>(run.inputs[0]));
}
constexpr ByDtype<UnaryStart> kClamp =
    number_starts([]<class T>(Type<T>) { return start_clamp<T>; });
const sdk::Kernel clamp({"clamp"}, [](tn_device*, const Request& request) {
  sdk::require_scalars(request, 2);
  return make_unary_plan(request, kClamp.pick(request.input(0).dtype));
});

}  // namespace
}  // namespace tenon::cuda
