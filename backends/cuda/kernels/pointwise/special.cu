// Elementary and special functions of one tensor, and functions of two and three tensors beside the
// arithmetic of binary.cu.
#include <tenon/plugins/sdk/binary_formulas.h>
#include <tenon/plugins/sdk/special.h>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

// Two dtypes of four: of a half type, the host converts what it computes in f32, and these are not
// worth the time that their kernels take to compile.
template <class Make>
constexpr auto wide_starts(Make make) {
  return ByDtype<decltype(make(Type<float>()))>{.f32 = make(Type<float>()),
                                                .f64 = make(Type<double>())};
}

// ---- x -> y

struct FunctionEntry {
  const char* op;
  ByDtype<UnaryStart> starts;
};
template <class Op>
constexpr FunctionEntry function(const char* op) {
  return {op, wide_starts([]<class T>(Type<T>) { return start_unary<Op, T, T>; })};
}
constexpr FunctionEntry kFunctions[] = {
    function<formulas::Expm1>("expm1"),   function<formulas::Log1p>("log1p"),
    function<formulas::Exp2>("exp2"),     function<formulas::Log2>("log2"),
    function<formulas::Log10>("log10"),   function<formulas::Tan>("tan"),
    function<formulas::Asin>("asin"),     function<formulas::Acos>("acos"),
    function<formulas::Atan>("atan"),     function<formulas::Sinh>("sinh"),
    function<formulas::Cosh>("cosh"),     function<formulas::Asinh>("asinh"),
    function<formulas::Acosh>("acosh"),   function<formulas::Atanh>("atanh"),
    function<formulas::Erfc>("erfc"),     function<formulas::Erfinv>("erfinv"),
    function<formulas::Lgamma>("lgamma"), function<formulas::Digamma>("digamma"),
    function<formulas::Trunc>("trunc"),
};
const sdk::Kernel functions({"expm1", "log1p", "exp2", "log2", "log10", "tan", "asin", "acos",
                             "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erfc", "erfinv",
                             "lgamma", "digamma", "trunc"},
                            [](tn_device*, const Request& request) {
                              auto& starts = sdk::entry_of(kFunctions, request.op()).starts;
                              return make_unary_plan(request, starts.pick(request.input(0).dtype));
                            });

// ---- x -> y by a formula with numbers that the run brings

template <template <class> class F, class T>
void start_numbered(const Loop<2>& loop, const tn_run& run) {
  using Op = F<Computed<T>>;
  loop.run<Op, T>(run.stream, Op::from(run.scalars), run.outputs[0], operand<T>(run.inputs[0]));
}
template <template <class> class F>
tn_plan* make_numbered(const Request& request, size_t scalars) {
  static constexpr auto starts = wide_starts([]<class T>(Type<T>) { return start_numbered<F, T>; });
  sdk::require_scalars(request, scalars);
  return make_unary_plan(request, starts.pick(request.input(0).dtype));
}
const sdk::Kernel nan_to_num({"nan_to_num"}, [](tn_device*, const Request& request) {
  return make_numbered<formulas::NanToNum>(request, 3);
});
const sdk::Kernel logit({"logit"}, [](tn_device*, const Request& request) {
  return make_numbered<formulas::Logit>(request, 2);
});

using PolygammaStart = void (*)(const Loop<2>& loop, const tn_run& run, int n);
template <class T>
void start_polygamma(const Loop<2>& loop, const tn_run& run, int n) {
  loop.run<formulas::Polygamma, T>(run.stream, formulas::Polygamma{n}, run.outputs[0],
                                   operand<T>(run.inputs[0]));
}
constexpr ByDtype<PolygammaStart> kPolygamma =
    wide_starts([]<class T>(Type<T>) { return start_polygamma<T>; });
tn_plan* make_polygamma(tn_device*, const Request& request) {
  const auto start = kPolygamma.pick(request.input(0).dtype);
  const int n = static_cast<int>(request.get_int("n"));
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return make_plan([loop = loop_over(request, &request.input(0)), start, n](const tn_run& run) {
    start(loop, run, n);
  });
}
const sdk::Kernel polygamma({"polygamma"}, make_polygamma);

// ---- a, b? -> y

struct OfTwoEntry {
  const char* op;
  ByDtype<BinaryStart> starts;
};
template <class Op>
constexpr OfTwoEntry real(const char* op) {
  return {op, wide_starts([]<class T>(Type<T>) { return start_binary<Op, T, T>; })};
}
template <class Op>
constexpr OfTwoEntry number(const char* op) {
  auto starts = wide_starts([]<class T>(Type<T>) { return start_binary<Op, T, T>; });
  starts.i64 = start_binary<Op, int64_t, int64_t>;
  starts.i32 = start_binary<Op, int32_t, int32_t>;
  starts.u8 = start_binary<Op, uint8_t, uint8_t>;
  return {op, starts};
}
template <class Op>
constexpr OfTwoEntry bits(const char* op, BinaryStart boolean) {
  return {op,
          {.i64 = start_binary<Op, int64_t, int64_t>,
           .i32 = start_binary<Op, int32_t, int32_t>,
           .u8 = start_binary<Op, uint8_t, uint8_t>,
           .boolean = boolean}};
}
constexpr OfTwoEntry kOfTwo[] = {
    real<formulas::Atan2>("atan2"),
    real<formulas::Hypot>("hypot"),
    real<formulas::Copysign>("copysign"),
    real<formulas::Logaddexp>("logaddexp"),
    real<formulas::Xlogy>("xlogy"),
    number<formulas::Fmod>("fmod"),
    number<formulas::Remainder>("remainder"),
    number<formulas::FloorDivide>("floor_divide"),
    bits<formulas::BitAnd>("bitwise_and", start_binary<formulas::And, uint8_t, uint8_t>),
    bits<formulas::BitOr>("bitwise_or", start_binary<formulas::Or, uint8_t, uint8_t>),
    bits<formulas::BitXor>("bitwise_xor", start_binary<formulas::Xor, uint8_t, uint8_t>),
    bits<formulas::LeftShift>("bitwise_left_shift", nullptr),
    bits<formulas::RightShift>("bitwise_right_shift", nullptr),
};
const sdk::Kernel of_two({"atan2", "hypot", "copysign", "logaddexp", "xlogy", "fmod", "remainder",
                          "floor_divide", "bitwise_and", "bitwise_or", "bitwise_xor",
                          "bitwise_left_shift", "bitwise_right_shift"},
                         [](tn_device*, const Request& request) {
                           auto& starts = sdk::entry_of(kOfTwo, request.op()).starts;
                           return make_binary_plan(request, starts.pick(request.input(0).dtype));
                         });

// ---- a, b, c? -> y; a scalar takes the place of c

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
