// What requests of several families are checked by. Texts name neither plugin nor operator: the
// host puts both before them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

#include <tenon/plugins/sdk/dispatch.h>
#include <tenon/plugins/sdk/sdk.h>

namespace tenon::sdk {

// For requests that no plugin can take.
[[noreturn]] inline void invalid(std::string why) {
  throw Error(TN_CODE_INVALID_ARGUMENT, std::move(why));
}
template <class Value, class... Values>
[[noreturn]] void invalid(
    TextFormat<std::type_identity_t<Value>, std::type_identity_t<Values>...> why,
    const Value& value, const Values&... values) {
  invalid(text<Value, Values...>(why, value, values...));
}

// "(2, 3)".
inline std::string shape_text(const tn_tensor_desc& d) {
  std::string text = "(";
  for (uint32_t i = 0; i < d.rank; ++i) text += (i ? ", " : "") + std::to_string(d.shape[i]);
  return text + ")";
}

inline bool same_shape(const tn_tensor_desc& a, const tn_tensor_desc& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

// One shape but along `dim`, where they may differ.
inline bool same_shape_but(const tn_tensor_desc& a, const tn_tensor_desc& b, size_t dim) {
  bool same = a.rank == b.rank;
  for (uint32_t d = 0; same && d < a.rank; ++d) same = d == dim || a.shape[d] == b.shape[d];
  return same;
}

// Refuses an operator that is none of these: a request of a family reads only those that it names.
inline void require_op(const Request& request, std::initializer_list<std::string_view> ops) {
  if (std::find(ops.begin(), ops.end(), request.op()) != ops.end()) return;
  std::string known;
  for (auto op : ops) (known += known.empty() ? "" : ", ") += op;
  unsupported("its kernel reads requests of " + known + " and no others");
}

// Each run brings at least `n` scalars.
inline void require_scalars(const Request& request, size_t n) {
  if (request.num_scalars() < n) invalid("needs {} scalars, found {}", n, request.num_scalars());
}

inline void require_one_dtype(const tn_tensor_desc& a, const tn_tensor_desc& b,
                              const tn_tensor_desc& c) {
  if (a.dtype != b.dtype || a.dtype != c.dtype) invalid("all tensors have one dtype");
}

// The type of statistics of values of `dtype`, such as means: f32 for half types.
inline tn_dtype statistics_dtype(tn_dtype dtype) {
  return dtype == TN_F16 || dtype == TN_BF16 ? TN_F32 : dtype;
}

// `what` is contiguous and has `n` elements of `dtype`, in whatever shape.
inline void require_elements(const tn_tensor_desc& d, int64_t n, tn_dtype dtype, const char* what) {
  if (d.dtype != dtype || numel(d) != n)
    invalid("{} needs {} elements of {}, found {} of {}", what, n, dtype_name(dtype), numel(d),
            dtype_name(d.dtype));
  require_contiguous(d);
}

// The core proposes strides for outputs, and makes row-major ones where they are refused.
inline void require_row_major_outputs(const Request& request) {
  for (size_t i = 0; i < request.num_outputs(); ++i)
    if (request.has_output(i) && !is_contiguous(request.output(i)))
      unsupported("its kernel writes row-major outputs alone");
}

// The request has room for `n` outputs, of which those that nobody wants are NULL.
inline void require_outputs(const Request& request, size_t n) {
  if (request.num_outputs() < n) invalid("needs {} outputs, absent ones as NULL", n);
}

// The bias of `n` channels, contiguous.
inline void require_bias(const tn_tensor_desc& bias, int64_t n, tn_dtype dtype) {
  if (bias.rank != 1 || bias.shape[0] != n || bias.dtype != dtype)
    invalid("bias must be ({}) of the input's dtype; found {}", n, shape_text(bias));
  require_contiguous(bias);
}

// The attribute `name`: two integers from `least` to 2^31 - 1, so that products of two of them do
// not overflow.
inline std::array<int64_t, 2> get_pair(const Request& request, const char* name, int64_t least) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  const auto v = request.get_ints(name);
  if (v.size() != 2 || v[0] < least || v[1] < least || v[0] > most || v[1] > most)
    invalid("{} must be two integers of at least {}", name, least);
  return {v[0], v[1]};
}

}  // namespace tenon::sdk
