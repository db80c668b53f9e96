// The loop under every pointwise operator. A kernel sees one contiguous output row at a time; each
// operand is a contiguous row too, or a single value. Other strides and rows of f16 or bf16 are
// first brought into a small buffer that stays in cache.
#pragma once

#include <tenon/plugins/sdk/formulas.h>
#include <tenon/plugins/sdk/requests/pointwise.h>

#include "runtime/common.h"
#include "runtime/nest.h"
#include "simd/convert.h"

// Iterations of the next loop are independent: an output may be in the same memory as an input, but
// never shifted against it.
#if defined(__clang__)
#define TN_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TN_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace tenon::cpu {

namespace formulas = sdk::formulas;
using sdk::Type;

struct Row {
  int64_t n;
  void* out;
  const void* in[3];
  uint32_t single;  // bit k: operand k is one value for the whole row
};
using RowKernel = void (*)(const Row&);

class Pointwise {
 public:
  // A NULL input is a single value, given at run by pointer and already of the computing dtype.
  // `may_be_single` has a bit for each operand that the kernel takes as one value. `ns` is the
  // kernel's time an element, for grain and cost. `as_bits`: the kernel moves elements without
  // looking at them, so nothing is converted.
  Pointwise(const Request& request, std::initializer_list<const tn_tensor_desc*> inputs,
            uint32_t may_be_single, double ns, bool as_bits = false);

  void run(RowKernel kernel, void* out, const void* const* in) const {
    if (!flat_ || nest_.numel > grain_) return run_large(kernel, out, in);
    Row row{nest_.numel, out, {}, single_};
    for (int k = 0; k < inputs_; ++k) row.in[k] = in[k];
    kernel(row);
  }
  uint64_t cost_ns() const { return cost_ns_; }

 private:
  struct Operand {
    uint32_t size = 0;      // bytes of an element in memory
    uint32_t row_size = 0;  // and as the kernel sees it
    bool packed = false;
    ConvertRow convert = nullptr;  // half to f32, or f32 to half for the output
  };
  void plan_tiles(uint32_t may_be_single);
  // The nanoseconds that tiles take beside the kernel.
  double an_element_moved() const;
  void run_large(RowKernel kernel, void* out, const void* const* in) const;
  void run_tiles(RowKernel kernel, void* out, const void* const* in, int64_t begin,
                 int64_t end) const;

  Nest nest_;  // operand 0 is the output
  int inputs_;
  bool flat_;    // one row, nothing packed
  bool merged_;  // a tile's rows lie one behind the other in every operand as the kernel sees it
  uint32_t single_ = 0;
  int64_t grain_;
  int64_t tile_rows_ = 1, tile_cols_ = 1;
  uint64_t cost_ns_;
  Operand operands_[kMaxOperands];
};

// A scalar operand in the computing dtype of the tensors beside it.
union Value {
  float f32;
  double f64;
  int64_t i64;
  int32_t i32;
  uint8_t u8;
};
inline Value value_of(tn_dtype dtype, const tn_scalar& s) {
  switch (computed_as(dtype)) {
    case TN_F32:
      return {.f32 = static_cast<float>(s.f)};
    case TN_F64:
      return {.f64 = s.f};
    case TN_I64:
      return {.i64 = s.i};
    case TN_I32:
      return {.i32 = static_cast<int32_t>(s.i)};
    case TN_U8:
      return {.u8 = static_cast<uint8_t>(s.i)};
    default:
      return {.u8 = static_cast<uint8_t>(s.i != 0)};
  }
}

// Op()(a, b) over rows, either operand perhaps a single value.
template <class Op, class T, class Out = T>
void binary_row(const Row& row) {
  auto* y = static_cast<Out*>(row.out);
  auto* a = static_cast<const T*>(row.in[0]);
  auto* b = static_cast<const T*>(row.in[1]);
  if (row.single == 0) {
    TN_INDEPENDENT
    for (int64_t i = 0; i < row.n; ++i) y[i] = Op()(a[i], b[i]);
  } else if (row.single == 2) {
    T one = *b;
    TN_INDEPENDENT
    for (int64_t i = 0; i < row.n; ++i) y[i] = Op()(a[i], one);
  } else {
    T one = *a;
    TN_INDEPENDENT
    for (int64_t i = 0; i < row.n; ++i) y[i] = Op()(one, b[i]);
  }
}

// The same of bf16 that is read and written without a buffer between.
template <class Op>
void bf16_row(const Row& row) {
  auto* y = static_cast<uint16_t*>(row.out);
  auto* a = static_cast<const uint16_t*>(row.in[0]);
  auto* b = static_cast<const uint16_t*>(row.in[1]);
  if (row.single == 0) {
    TN_INDEPENDENT
    for (int64_t i = 0; i < row.n; ++i) y[i] = narrowed(Op()(widened(a[i]), widened(b[i])));
  } else if (row.single == 2) {
    const float one = widened(*b);
    TN_INDEPENDENT
    for (int64_t i = 0; i < row.n; ++i) y[i] = narrowed(Op()(widened(a[i]), one));
  } else {
    const float one = widened(*a);
    TN_INDEPENDENT
    for (int64_t i = 0; i < row.n; ++i) y[i] = narrowed(Op()(one, widened(b[i])));
  }
}

// Op()(x) over a row.
template <class Op, class T, class Out = T>
void unary_row(const Row& row) {
  auto* y = static_cast<Out*>(row.out);
  auto* x = static_cast<const T*>(row.in[0]);
  TN_INDEPENDENT
  for (int64_t i = 0; i < row.n; ++i) y[i] = Op()(x[i]);
}

// A kernel for each dtype: `make(Type<T>())` for T the type that it computes in.
template <class Make>
constexpr sdk::ByDtype<RowKernel> float_rows(Make make) {
  return sdk::for_floats<float, float>(make);
}
template <class Make>
constexpr sdk::ByDtype<RowKernel> number_rows(Make make) {
  return sdk::for_numbers<float, float>(make);
}

// The plan of an operator x -> y.
inline tn_plan* make_unary_plan(const Request& request, RowKernel kernel, double ns,
                                bool as_bits = false) {
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {&request.input(0)}, 0, ns, as_bits);
  return sdk::make_plan(
      [loop, kernel](const tn_run& run) { loop.run(kernel, run.outputs[0], run.inputs); },
      {0, loop.cost_ns()});
}

// The plan of an operator a, b? -> y, whose absent operand is a scalar.
inline tn_plan* make_binary_plan(const Request& request, RowKernel kernel, double ns,
                                 bool as_bits = false) {
  const auto r = sdk::BinaryRequest::from(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {r.a, r.b}, 3, ns, as_bits);
  if (r.a && r.b)
    return sdk::make_plan(
        [loop, kernel](const tn_run& run) { loop.run(kernel, run.outputs[0], run.inputs); },
        {0, loop.cost_ns()});
  auto run_with_scalar = [loop, kernel, first = r.scalar_first(),
                          dtype = r.dtype](const tn_run& run) {
    Value value = value_of(dtype, run.scalars[0]);
    const void* in[] = {first ? &value : run.inputs[0], first ? run.inputs[0] : &value};
    loop.run(kernel, run.outputs[0], in);
  };
  return sdk::make_plan(run_with_scalar, {0, loop.cost_ns()});
}

// An operator, the nanoseconds that an element of at most 4 and of 8 bytes takes on one core of
// 2023, and its kernels; `bf16`, of tensors alone, reads and writes that dtype itself. Of a table
// of these the request says which.
struct NamedRows {
  const char* op;
  double ns, ns_wide;
  sdk::ByDtype<RowKernel> rows;
  RowKernel bf16 = nullptr;

  double ns_of(tn_dtype dtype) const { return sdk::dtype_size(dtype) == 8 ? ns_wide : ns; }
  bool takes_one_bf16(const Request& request) const {
    return bf16 && request.input(0).dtype == TN_BF16 && request.output(0).dtype == TN_BF16;
  }
  bool takes_bf16(const Request& request) const {
    const auto r = sdk::BinaryRequest::from(request);
    return bf16 && r.a && r.b && r.a->dtype == TN_BF16 && r.b->dtype == TN_BF16 &&
           request.output(0).dtype == TN_BF16;
  }
};
template <size_t N>
tn_plan* make_unary_plan(const Request& request, const NamedRows (&table)[N]) {
  auto& named = sdk::entry_of(table, request.op());
  if (named.takes_one_bf16(request)) return make_unary_plan(request, named.bf16, named.ns, true);
  const auto dtype = request.input(0).dtype;
  return make_unary_plan(request, named.rows.pick(dtype), named.ns_of(dtype));
}
template <size_t N>
tn_plan* make_binary_plan(const Request& request, const NamedRows (&table)[N]) {
  auto& named = sdk::entry_of(table, request.op());
  if (named.takes_bf16(request)) return make_binary_plan(request, named.bf16, named.ns, true);
  const auto dtype = request.input(0).dtype;
  return make_binary_plan(request, named.rows.pick(dtype), named.ns_of(dtype));
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

}  // namespace tenon::cpu
