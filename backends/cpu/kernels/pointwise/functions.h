// Entries of tables of functions, and plans of functions that take numbers beside the tensor.
#pragma once

#include "kernels/pointwise/pointwise.h"
#include "simd/bf16.h"
#include "simd/packet.h"

namespace tenon::cpu {

// Op::of over a row in whole packets.
template <class Op, class T>
void packet_function_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto* x = static_cast<const T*>(row.in[0]);
  for_lanes<T>(row.n, [&](int64_t i, auto part) {
    store<T>(y + i, Op::template of<T>(load(x + i, part)), part);
  });
}

// The same of bf16 that is read and written without a buffer between.
template <class Op>
void bf16_function_row(const Row& row) {
  for_bf16(
      row.n, static_cast<uint16_t*>(row.out),
      [](Vec<float> x) { return Op::template of<float>(x); },
      static_cast<const uint16_t*>(row.in[0]));
}

// Functions x -> y: of elements of floating types, of packets of these, and of elements of all
// types of numbers.
template <class Op>
constexpr NamedRows float_function(const char* op, double ns, double ns_wide) {
  return {op, ns, ns_wide, float_rows([]<class T>(Type<T>) { return unary_row<Op, T>; })};
}
template <class Op>
constexpr NamedRows packet_function(const char* op, double ns, double ns_wide) {
  return {op, ns, ns_wide, float_rows([]<class T>(Type<T>) { return packet_function_row<Op, T>; }),
          bf16_function_row<Op>};
}
template <class Op>
constexpr NamedRows number_function(const char* op) {
  return {op, 0.2, 0.4, number_rows([]<class T>(Type<T>) { return unary_row<Op, T>; })};
}

// Functions a, b? -> y, of floating types and of all types of numbers.
template <class Op>
constexpr NamedRows float_of_two(const char* op, double ns, double ns_wide) {
  return {op, ns, ns_wide, float_rows([]<class T>(Type<T>) { return binary_row<Op, T>; })};
}
template <class Op>
constexpr NamedRows number_of_two(const char* op, double ns, double ns_wide) {
  return {op, ns, ns_wide, number_rows([]<class T>(Type<T>) { return binary_row<Op, T>; })};
}

// Functions x -> y by a formula with numbers, which is the operand after the tensor.
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

}  // namespace tenon::cpu
