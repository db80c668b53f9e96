// From a request's dtypes to types of C++, and what most kernels ask of their operands. "Refuses"
// means: throws TN_CODE_UNSUPPORTED. Texts of errors name neither the operator nor the plugin: the
// host puts both before them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/plugins/sdk/sdk.h>

namespace tenon::sdk {

// Refuses a dtype that the kernel has no code for.
[[noreturn]] inline void refuse_dtype(tn_dtype dtype) {
  unsupported(std::string("does not take ") + dtype_name(dtype));
}

// Calls f(float{}) or f(double{}) for the dtype; refuses others.
template <class F>
auto with_float(tn_dtype dtype, F&& f) {
  switch (dtype) {
    case TN_F32:
      return f(float{});
    case TN_F64:
      return f(double{});
    default:
      refuse_dtype(dtype);
  }
}

// Calls f(int64_t{}) or f(int32_t{}) for an index dtype; refuses others.
template <class F>
auto with_index(tn_dtype dtype, F&& f) {
  switch (dtype) {
    case TN_I64:
      return f(int64_t{});
    case TN_I32:
      return f(int32_t{});
    default:
      refuse_dtype(dtype);
  }
}

// Calls f(T{}) for the number that the dtype is, f16 and bf16 excepted; refuses others.
template <class F>
auto with_number(tn_dtype dtype, F&& f) {
  switch (dtype) {
    case TN_F32:
    case TN_F64:
      return with_float(dtype, f);
    case TN_U8:
      return f(uint8_t{});
    default:
      return with_index(dtype, f);
  }
}

// Returns u8 for bool and any other dtype as it is, for operators that treat bools as the bytes 0
// and 1 that they are.
inline tn_dtype byte_for_bool(tn_dtype dtype) { return dtype == TN_BOOL ? TN_U8 : dtype; }

// Calls f(uintN_t{}) for elements of `size` bytes (1, 2, 4 or 8), for operators that only move
// them.
template <class F>
auto with_size(size_t size, F&& f) {
  switch (size) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}
// Calls f(uintN_t{}) for elements of the size of a dtype.
template <class F>
auto with_width(tn_dtype dtype, F&& f) {
  return with_size(dtype_size(dtype), f);
}

// Holds one function for each dtype, NULL where the operator does not take it.
template <class F>
struct ByDtype {
  F f32{}, f64{}, f16{}, bf16{}, i64{}, i32{}, u8{}, boolean{};

  // Returns the function for `dtype`, and refuses a dtype that has none.
  F pick(tn_dtype dtype) const {
    const F all[] = {f32, f64, f16, bf16, i64, i32, u8, boolean};
    if (dtype < 0 || dtype > TN_BOOL || !all[dtype]) refuse_dtype(dtype);
    return all[dtype];
  }
};

// Names a type where there is no value of it.
template <class T>
struct Type {};

// Returns a ByDtype of `make(Type<T>())` for the floating dtypes; F16 and BF16 are the types that
// the plugin has for f16 and bf16.
template <class F16, class BF16, class Make>
constexpr auto for_floats(Make make) {
  return ByDtype<decltype(make(Type<float>()))>{.f32 = make(Type<float>()),
                                                .f64 = make(Type<double>()),
                                                .f16 = make(Type<F16>()),
                                                .bf16 = make(Type<BF16>())};
}
// Returns the same for the floating dtypes and the integers.
template <class F16, class BF16, class Make>
constexpr auto for_numbers(Make make) {
  auto all = for_floats<F16, BF16>(make);
  all.i64 = make(Type<int64_t>());
  all.i32 = make(Type<int32_t>());
  all.u8 = make(Type<uint8_t>());
  return all;
}

// Returns the entry of a table whose `op` is the operator asked for, and refuses an operator that
// has none.
template <class Entry, size_t N>
const Entry& entry_of(const Entry (&table)[N], std::string_view op) {
  for (auto& entry : table)
    if (op == entry.op) return entry;
  unsupported("no entry for operator \"" + std::string(op) + "\"");
}

// Returns whether the dtype is f32, f64, f16 or bf16.
inline bool is_float(tn_dtype t) { return t <= TN_BF16; }

// Returns whether a tensor (n, c, h, w) lies without gaps in the order n, h, w, c. One with a
// single channel, or with planes of one element, may be contiguous as well.
inline bool is_channels_last(const tn_tensor_desc& d) {
  if (d.rank != 4) return false;
  int64_t expected = 1;
  for (const int dim : {1, 3, 2, 0}) {
    if (d.shape[dim] != 1 && d.strides[dim] != expected) return false;
    expected *= d.shape[dim];
  }
  return true;
}

// Refuses a tensor that is not row-major without gaps.
inline void require_contiguous(const tn_tensor_desc& d) {
  if (!is_contiguous(d)) unsupported("a tensor is not contiguous");
}

// Returns a plan that does nothing, for outputs without elements.
inline tn_plan* empty_plan() {
  return make_plan([](const tn_run&) {}, {.workspace_bytes = 0, .cost_ns = 1});
}

}  // namespace tenon::sdk
