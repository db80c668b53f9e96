// Arithmetic of two tensors, or of a tensor and a scalar.
#include "kernels/pointwise/elements.h"
#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

struct BinaryEntry {
  const char* op;
  ByDtype<BinaryStart> starts;
};
template <class Op>
constexpr BinaryEntry numbers(const char* op, BinaryStart boolean) {
  BinaryEntry entry{op, number_starts([]<class T>(Type<T>) { return start_binary<Op, T, T>; })};
  entry.starts.boolean = boolean;
  return entry;
}
// Sums and products of bools are "or" and "and".
constexpr BinaryStart kOr = start_binary<formulas::Or, uint8_t, uint8_t>,
                      kAnd = start_binary<formulas::And, uint8_t, uint8_t>;
constexpr BinaryEntry kBinaryEntries[] = {
    numbers<formulas::Add>("add", kOr),
    numbers<formulas::Sub>("sub", nullptr),
    numbers<formulas::Mul>("mul", kAnd),
    numbers<formulas::Maximum>("maximum", kOr),
    numbers<formulas::Minimum>("minimum", kAnd),
    {"div", float_starts([]<class T>(Type<T>) { return start_binary<formulas::Div, T, T>; })}};

tn_plan* make_arithmetic(tn_device*, const Request& request) {
  auto& starts = sdk::entry_of(kBinaryEntries, request.op()).starts;
  return make_binary_plan(request, starts.pick(request.input(0).dtype));
}
const sdk::Kernel arithmetic({"add", "sub", "mul", "maximum", "minimum", "div"}, make_arithmetic);

// ---- pow

template <class T>
void start_pow(const Loop<3>& loop, const tn_run& run, Second second, tn_dtype dtype) {
  const auto exponent =
      second == Second::scalar ? elements::kind_of(run.scalars[0].f) : elements::Exponent::any;
  const elements::Pow op{exponent};
  start_binary_as<elements::Pow, T, T>(op, loop, run, second, dtype);
}

constexpr ByDtype<BinaryStart> kPow = {.f32 = start_pow<float>,
                                       .f64 = start_pow<double>,
                                       .f16 = start_pow<Half>,
                                       .bf16 = start_pow<BFloat>,
                                       .i64 = start_binary<formulas::WholePower, int64_t, int64_t>,
                                       .i32 = start_binary<formulas::WholePower, int32_t, int32_t>,
                                       .u8 = start_binary<formulas::WholePower, uint8_t, uint8_t>};

const sdk::Kernel power({"pow"}, [](tn_device*, const Request& request) {
  return make_binary_plan(request, kPow.pick(request.input(0).dtype));
});

}  // namespace
}  // namespace tenon::cuda
