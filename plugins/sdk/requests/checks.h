// Checks that requests of several families share. What does not hold is a TN_CODE_INVALID_ARGUMENT
// unless a comment says otherwise. Texts name neither plugin nor operator: the host puts both
// before them.
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

// Throw TN_CODE_INVALID_ARGUMENT, for requests that no plugin can take. `why` is a text, or a
// format with values (see text.h).
[[noreturn]] inline void invalid(std::string why) {
  throw Error(TN_CODE_INVALID_ARGUMENT, std::move(why));
}
template <class Value, class... Values>
[[noreturn]] void invalid(
    TextFormat<std::type_identity_t<Value>, std::type_identity_t<Values>...> why,
    const Value& value, const Values&... values) {
  invalid(text<Value, Values...>(why, value, values...));
}

// Returns a text such as "(2, 3)".
inline std::string shape_text(const tn_tensor_desc& d) {
  std::string text = "(";
  for (uint32_t i = 0; i < d.rank; ++i) text += (i ? ", " : "") + std::to_string(d.shape[i]);
  return text + ")";
}

// Returns whether both have the same shape.
inline bool same_shape(const tn_tensor_desc& a, const tn_tensor_desc& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

// Returns whether both have the same shape but along `dim`, where they may differ.
inline bool same_shape_but(const tn_tensor_desc& a, const tn_tensor_desc& b, size_t dim) {
  bool same = a.rank == b.rank;
  for (uint32_t d = 0; same && d < a.rank; ++d) same = d == dim || a.shape[d] == b.shape[d];
  return same;
}

// Throws TN_CODE_UNSUPPORTED for an operator that is none of these: a request of a family reads
// only those that it names.
inline void require_op(const Request& request, std::initializer_list<std::string_view> ops) {
  if (std::find(ops.begin(), ops.end(), request.op()) != ops.end()) return;
  std::string known;
  for (auto op : ops) (known += known.empty() ? "" : ", ") += op;
  unsupported("its kernel reads requests of " + known + " and no others");
}

// Requires that each run brings at least `n` scalars.
inline void require_scalars(const Request& request, size_t n) {
  if (request.num_scalars() < n) invalid("needs {} scalars, found {}", n, request.num_scalars());
}

// Requires that three tensors have one dtype.
inline void require_one_dtype(const tn_tensor_desc& a, const tn_tensor_desc& b,
                              const tn_tensor_desc& c) {
  if (a.dtype != b.dtype || a.dtype != c.dtype) invalid("all tensors have one dtype");
}

// Returns the type of statistics of values of `dtype`, such as means: f32 for half types, otherwise
// that of the values.
inline tn_dtype statistics_dtype(tn_dtype dtype) {
  return dtype == TN_F16 || dtype == TN_BF16 ? TN_F32 : dtype;
}

// Requires that `what` has `n` elements of `dtype`, in whatever shape. Throws TN_CODE_UNSUPPORTED
// if it is not contiguous.
inline void require_elements(const tn_tensor_desc& d, int64_t n, tn_dtype dtype, const char* what) {
  if (d.dtype != dtype || numel(d) != n)
    invalid("{} needs {} elements of {}, found {} of {}", what, n, dtype_name(dtype), numel(d),
            dtype_name(d.dtype));
  require_contiguous(d);
}

// Throws TN_CODE_UNSUPPORTED if an output is not row-major. The core proposes strides for outputs,
// and asks again for row-major ones.
inline void require_row_major_outputs(const Request& request) {
  for (size_t i = 0; i < request.num_outputs(); ++i)
    if (request.has_output(i) && !is_contiguous(request.output(i)))
      unsupported("its kernel writes row-major outputs alone");
}

// Requires that the request has room for `n` outputs, of which those that nobody wants are NULL.
inline void require_outputs(const Request& request, size_t n) {
  if (request.num_outputs() < n) invalid("needs {} outputs, absent ones as NULL", n);
}

// Requires that the bias has shape (n) and this dtype. Throws TN_CODE_UNSUPPORTED if it is not
// contiguous.
inline void require_bias(const tn_tensor_desc& bias, int64_t n, tn_dtype dtype) {
  if (bias.rank != 1 || bias.shape[0] != n || bias.dtype != dtype)
    invalid("bias must be ({}) of the input's dtype; found {}", n, shape_text(bias));
  require_contiguous(bias);
}

// Returns the attribute `name`: two integers from `least` to 2^31 - 1, so that products of two of
// them do not overflow.
inline std::array<int64_t, 2> get_pair(const Request& request, const char* name, int64_t least) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  const auto v = request.get_ints(name);
  if (v.size() != 2 || v[0] < least || v[1] < least || v[0] > most || v[1] > most)
    invalid("{} must be two integers of at least {}", name, least);
  return {v[0], v[1]};
}

}  // namespace tenon::sdk
