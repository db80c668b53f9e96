// Entries of tables of functions, and plans of functions that take numbers beside the tensor.
#pragma once

#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {

// Two dtypes of four: the host converts half types to f32 and back, because their own kernels would
// not be worth the time that they take to compile.
template <class Make>
constexpr auto wide_starts(Make make) {
  return ByDtype<decltype(make(Type<float>()))>{.f32 = make(Type<float>()),
                                                .f64 = make(Type<double>())};
}

// Functions x -> y: of floating types, of f32 and f64 alone, and of all types of numbers.
struct NamedUnary {
  const char* op;
  ByDtype<UnaryStart> starts;
};
template <class Op>
constexpr NamedUnary float_function(const char* op) {
  return {op, float_starts([]<class T>(Type<T>) { return start_unary<Op, T, T>; })};
}
template <class Op>
constexpr NamedUnary wide_function(const char* op) {
  return {op, wide_starts([]<class T>(Type<T>) { return start_unary<Op, T, T>; })};
}
template <class Op>
constexpr NamedUnary number_function(const char* op) {
  return {op, number_starts([]<class T>(Type<T>) { return start_unary<Op, T, T>; })};
}
template <size_t N>
tn_plan* make_unary_plan(const Request& request, const NamedUnary (&table)[N]) {
  auto& starts = sdk::entry_of(table, request.op()).starts;
  return make_unary_plan(request, starts.pick(request.input(0).dtype));
}

// Functions a, b? -> y, of f32 and f64.
struct NamedBinary {
  const char* op;
  ByDtype<BinaryStart> starts;
};
template <class Op>
constexpr NamedBinary wide_of_two(const char* op) {
  return {op, wide_starts([]<class T>(Type<T>) { return start_binary<Op, T, T>; })};
}
template <size_t N>
tn_plan* make_binary_plan(const Request& request, const NamedBinary (&table)[N]) {
  auto& starts = sdk::entry_of(table, request.op()).starts;
  return make_binary_plan(request, starts.pick(request.input(0).dtype));
}

// Functions x -> y by a formula with numbers that the run brings.
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

// The factories of the operators in a table.
template <const auto& Table>
tn_plan* make_unary(tn_device*, const Request& request) {
  return make_unary_plan(request, Table);
}
template <const auto& Table>
tn_plan* make_binary(tn_device*, const Request& request) {
  return make_binary_plan(request, Table);
}

}  // namespace tenon::cuda
