// Elementary and special functions of one tensor, and functions of two and three tensors beside the
// arithmetic of binary.cpp.
#include <tenon/plugins/sdk/binary_formulas.h>
#include <tenon/plugins/sdk/special.h>

#include "kernels/pointwise/pointwise.h"
#include "simd/near_zero.h"

namespace tenon::cpu {
namespace {

// ---- x -> y

// In whole packets.
template <class T>
void expm1_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto* x = static_cast<const T*>(row.in[0]);
  for_lanes<T>(row.n, [&](int64_t i, auto part) {
    store<T>(y + i, math::expm1<T>(load(x + i, part)), part);
  });
}
template <class T>
void log1p_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto* x = static_cast<const T*>(row.in[0]);
  for_lanes<T>(row.n, [&](int64_t i, auto part) {
    store<T>(y + i, math::log1p<T>(load(x + i, part)), part);
  });
}

template <class Op>
constexpr NamedRows function(const char* op, double ns, double ns_wide) {
  return {op, ns, ns_wide, float_rows([]<class T>(Type<T>) { return unary_row<Op, T>; })};
}
constexpr NamedRows kFunctions[] = {
    {"expm1", 0.9, 3, float_rows([]<class T>(Type<T>) { return expm1_row<T>; })},
    {"log1p", 0.6, 2.5, float_rows([]<class T>(Type<T>) { return log1p_row<T>; })},
    function<formulas::Exp2>("exp2", 3, 6),
    function<formulas::Log2>("log2", 3, 6),
    function<formulas::Log10>("log10", 5, 9),
    function<formulas::Tan>("tan", 9, 16),
    function<formulas::Asin>("asin", 6, 9),
    function<formulas::Acos>("acos", 6, 9),
    function<formulas::Atan>("atan", 6, 9),
    function<formulas::Sinh>("sinh", 9, 14),
    function<formulas::Cosh>("cosh", 7, 12),
    function<formulas::Asinh>("asinh", 9, 14),
    function<formulas::Acosh>("acosh", 9, 14),
    function<formulas::Atanh>("atanh", 9, 14),
    function<formulas::Erfc>("erfc", 12, 16),
    function<formulas::Erfinv>("erfinv", 60, 60),
    function<formulas::Lgamma>("lgamma", 15, 25),
    function<formulas::Digamma>("digamma", 30, 30),
    function<formulas::Trunc>("trunc", 0.2, 0.4),
};
const sdk::Kernel functions({"expm1", "log1p", "exp2", "log2", "log10", "tan", "asin", "acos",
                             "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erfc", "erfinv",
                             "lgamma", "digamma", "trunc"},
                            [](tn_device*, const Request& request) {
                              return make_unary_plan(request, kFunctions);
                            });

// ---- x -> y by a formula with numbers, which is the operand after the tensor

template <class F, class T>
void numbered_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto* x = static_cast<const T*>(row.in[0]);
  const F f = *static_cast<const F*>(row.in[1]);
  TN_INDEPENDENT
  for (int64_t i = 0; i < row.n; ++i) y[i] = f(x[i]);
}

template <template <class> class F>
tn_plan* make_numbered(const Request& request, size_t scalars, double ns) {
  const auto& x = request.input(0);
  if (!is_float(x.dtype)) refuse_dtype(x.dtype);
  sdk::require_scalars(request, scalars);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {&x, nullptr}, 0, ns);
  return sdk::with_float(computed_as(x.dtype), [&loop]<class T>(T) {
    auto run = [loop](const tn_run& run) {
      const auto f = F<T>::from(run.scalars);
      const void* in[] = {run.inputs[0], &f};
      loop.run(numbered_row<F<T>, T>, run.outputs[0], in);
    };
    return sdk::make_plan(run, {0, loop.cost_ns()});
  });
}
const sdk::Kernel nan_to_num({"nan_to_num"}, [](tn_device*, const Request& request) {
  return make_numbered<formulas::NanToNum>(request, 3, 0.3);
});
const sdk::Kernel logit({"logit"}, [](tn_device*, const Request& request) {
  return make_numbered<formulas::Logit>(request, 2, 6);
});

tn_plan* make_polygamma(tn_device*, const Request& request) {
  const auto& x = request.input(0);
  if (!is_float(x.dtype)) refuse_dtype(x.dtype);
  const formulas::Polygamma f{static_cast<int>(request.get_int("n"))};
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {&x, nullptr}, 0, 300);
  return sdk::with_float(computed_as(x.dtype), [&loop, f]<class T>(T) {
    auto run = [loop, f](const tn_run& run) {
      const void* in[] = {run.inputs[0], &f};
      loop.run(numbered_row<formulas::Polygamma, T>, run.outputs[0], in);
    };
    return sdk::make_plan(run, {0, loop.cost_ns()});
  });
}
const sdk::Kernel polygamma({"polygamma"}, make_polygamma);

// ---- a, b? -> y

template <class Op>
constexpr NamedRows real(const char* op, double ns, double ns_wide) {
  return {op, ns, ns_wide, float_rows([]<class T>(Type<T>) { return binary_row<Op, T>; })};
}
template <class Op>
constexpr NamedRows number(const char* op, double ns, double ns_wide) {
  return {op, ns, ns_wide, number_rows([]<class T>(Type<T>) { return binary_row<Op, T>; })};
}
template <class Op>
constexpr NamedRows bits(const char* op, RowKernel boolean) {
  return {op,
          0.3,
          0.6,
          {.i64 = binary_row<Op, int64_t>,
           .i32 = binary_row<Op, int32_t>,
           .u8 = binary_row<Op, uint8_t>,
           .boolean = boolean}};
}
constexpr NamedRows kOfTwo[] = {
    real<formulas::Atan2>("atan2", 12, 20),
    real<formulas::Hypot>("hypot", 4, 8),
    real<formulas::Copysign>("copysign", 0.3, 0.6),
    real<formulas::Logaddexp>("logaddexp", 15, 25),
    real<formulas::Xlogy>("xlogy", 5, 8),
    number<formulas::Fmod>("fmod", 8, 10),
    number<formulas::Remainder>("remainder", 8, 10),
    number<formulas::FloorDivide>("floor_divide", 9, 12),
    bits<formulas::BitAnd>("bitwise_and", binary_row<formulas::And, uint8_t>),
    bits<formulas::BitOr>("bitwise_or", binary_row<formulas::Or, uint8_t>),
    bits<formulas::BitXor>("bitwise_xor", binary_row<formulas::Xor, uint8_t>),
    bits<formulas::LeftShift>("bitwise_left_shift", nullptr),
    bits<formulas::RightShift>("bitwise_right_shift", nullptr),
};
const sdk::Kernel of_two({"atan2", "hypot", "copysign", "logaddexp", "xlogy", "fmod", "remainder",
                          "floor_divide", "bitwise_and", "bitwise_or", "bitwise_xor",
                          "bitwise_left_shift", "bitwise_right_shift"},
                         [](tn_device*, const Request& request) {
                           return make_binary_plan(request, kOfTwo);
                         });

// ---- a, b, c? -> y; a scalar takes the place of c

template <class Op, class T>
void ternary_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto *a = static_cast<const T*>(row.in[0]), *b = static_cast<const T*>(row.in[1]),
       *c = static_cast<const T*>(row.in[2]);
  if (row.single & 4) {
    const T one = *c;
    TN_INDEPENDENT
    for (int64_t i = 0; i < row.n; ++i) y[i] = Op()(a[i], b[i], one);
  } else {
    TN_INDEPENDENT
    for (int64_t i = 0; i < row.n; ++i) y[i] = Op()(a[i], b[i], c[i]);
  }
}

tn_plan* make_ternary(tn_device*, const Request& request) {
  static constexpr NamedRows table[] = {
      {"lerp", 0.4, 0.8,
       float_rows([]<class T>(Type<T>) { return ternary_row<formulas::Lerp, T>; })},
      {"addcmul", 0.4, 0.8,
       number_rows([]<class T>(Type<T>) { return ternary_row<formulas::Addcmul, T>; })},
      {"addcdiv", 0.4, 0.8,
       float_rows([]<class T>(Type<T>) { return ternary_row<formulas::Addcdiv, T>; })}};
  auto& named = sdk::entry_of(table, request.op());
  const auto &a = request.input(0), &b = request.input(1);
  const auto* c = request.has_input(2) ? &request.input(2) : nullptr;
  const auto kernel = named.rows.pick(a.dtype);
  sdk::require_one_dtype(a, b, c ? *c : b);
  if (!c) sdk::require_scalars(request, 1);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {&a, &b, c}, 4, named.ns_of(a.dtype));
  auto run = [loop, kernel, tensor = c != nullptr, dtype = a.dtype](const tn_run& run) {
    const Value value = tensor ? Value{} : value_of(dtype, run.scalars[0]);
    const void* in[] = {run.inputs[0], run.inputs[1], tensor ? run.inputs[2] : &value};
    loop.run(kernel, run.outputs[0], in);
  };
  return sdk::make_plan(run, {0, loop.cost_ns()});
}
const sdk::Kernel of_three({"lerp", "addcmul", "addcdiv"}, make_ternary);

}  // namespace
}  // namespace tenon::cpu
