// Functions a, b, c? -> y; a scalar takes the place of c.
#include <tenon/plugins/sdk/binary_formulas.h>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

using TernaryStart = void (*)(const Loop<4>& loop, const tn_run& run, bool tensor, tn_dtype dtype);
template <class Op, class T>
void start_ternary(const Loop<4>& loop, const tn_run& run, bool tensor, tn_dtype dtype) {
  const auto c = tensor ? operand<T>(run.inputs[2])
                        : constant<T>(value_of<Computed<T>>(dtype, run.scalars[0]));
  loop.run<Op, T>(run.stream, Op{}, run.outputs[0], operand<T>(run.inputs[0]),
                  operand<T>(run.inputs[1]), c);
}
struct TernaryEntry {
  const char* op;
  ByDtype<TernaryStart> starts;
};
constexpr TernaryEntry kOfThree[] = {
    {"lerp", float_starts([]<class T>(Type<T>) { return start_ternary<formulas::Lerp, T>; })},
    {"addcmul",
     number_starts([]<class T>(Type<T>) { return start_ternary<formulas::Addcmul, T>; })},
    {"addcdiv",
     float_starts([]<class T>(Type<T>) { return start_ternary<formulas::Addcdiv, T>; })}};

tn_plan* make_ternary(tn_device*, const Request& request) {
  const auto &a = request.input(0), &b = request.input(1);
  const auto* c = request.has_input(2) ? &request.input(2) : nullptr;
  const auto start = sdk::entry_of(kOfThree, request.op()).starts.pick(a.dtype);
  sdk::require_one_dtype(a, b, c ? *c : b);
  if (!c) sdk::require_scalars(request, 1);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return make_plan([loop = loop_over(request, &a, &b, c), start, tensor = c != nullptr,
                    dtype = a.dtype](const tn_run& run) { start(loop, run, tensor, dtype); });
}
const sdk::Kernel of_three({"lerp", "addcmul", "addcdiv"}, make_ternary);

}  // namespace
}  // namespace tenon::cuda
