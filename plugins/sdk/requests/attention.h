// "scaled_dot_product_attention" and its gradient, read and checked once for every plugin.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/plugins/sdk/dims.h>
#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// A request of attention. query (…, l, e), key (…, s, e) and value (…, s, ev) have one dtype, the
// same dimensions before the last two and at least one element. They may have any strides, and so
// may the mask (…, l, s), which is bool (true: the pair takes part) or is added to the scores. All
// other tensors are contiguous.
struct AttentionRequest {
  // The dtype of query, key and value.
  tn_dtype dtype;
  // The product of the dimensions before the last two, and the sizes above.
  int64_t batch;
  int64_t l, s, e, ev;
  // Say whether it is the gradient, whether query i takes part with the keys up to i alone, and
  // whether there is a mask.
  bool backward, causal, masked;
  // The factor of the scores, and the descriptors of the operands.
  double scale;
  tn_tensor_desc query, key, value, mask;

  // Reads "scaled_dot_product_attention" (query, key, value, mask? -> y, largest?, scale?) or
  // "scaled_dot_product_attention_backward" (g, query, key, value, y, largest, scale, mask? ->
  // gquery?, gkey?, gvalue?). A weight is exp(score - largest) scale, where scale is 1 by the sum
  // of the row; both are (…, l), and 0 for a row without any pair.
  static AttentionRequest from(const Request& request);

 private:
  void check_operands() const;
  void check_rest(const Request& request) const;
};

// Returns where matrix `i` of the batch begins, in elements.
inline int64_t matrix_offset(const tn_tensor_desc& d, int64_t i) {
  int64_t offset = 0;
  for (uint32_t k = d.rank - 2; k-- > 0;) {
    offset += i % d.shape[k] * d.strides[k];
    i /= d.shape[k];
  }
  return offset;
}

inline AttentionRequest AttentionRequest::from(const Request& request) {
  require_op(request, {"scaled_dot_product_attention", "scaled_dot_product_attention_backward"});
  AttentionRequest r{};
  r.backward = request.op() == "scaled_dot_product_attention_backward";
  const size_t first = r.backward ? 1 : 0, mask = r.backward ? 7 : 3;
  r.query = request.input(first);
  r.key = request.input(first + 1);
  r.value = request.input(first + 2);
  r.causal = request.get_bool("is_causal");
  r.scale = request.get_float("scale");
  r.dtype = r.query.dtype;
  if (r.query.rank < 2 || r.key.rank != r.query.rank || r.value.rank != r.query.rank)
    invalid("query, key and value have one rank of at least 2; found {}, {} and {}", r.query.rank,
            r.key.rank, r.value.rank);
  const uint32_t last = r.query.rank - 1;
  r.l = r.query.shape[last - 1];
  r.s = r.key.shape[last - 1];
  r.e = r.query.shape[last];
  r.ev = r.value.shape[last];
  r.batch = 1;
  for (uint32_t k = 0; k + 2 < r.query.rank; ++k) r.batch *= r.query.shape[k];
  r.masked = request.has_input(mask);
  if (r.masked) r.mask = request.input(mask);
  r.check_operands();
  r.check_rest(request);
  return r;
}

inline void AttentionRequest::check_operands() const {
  require_one_dtype(query, key, value);
  const uint32_t last = query.rank - 1;
  if (key.shape[last] != e || value.shape[last - 1] != s)
    invalid("query {}, key {} and value {} do not fit", shape_text(query), shape_text(key),
            shape_text(value));
  for (uint32_t k = 0; k + 2 < query.rank; ++k)
    if (key.shape[k] != query.shape[k] || value.shape[k] != query.shape[k])
      invalid("query {}, key {} and value {} have the same dimensions before the last two",
              shape_text(query), shape_text(key), shape_text(value));
  if (batch < 1 || l < 1 || s < 1 || e < 1 || ev < 1)
    invalid("query {}, key {} and value {} must have elements", shape_text(query), shape_text(key),
            shape_text(value));
  if (!masked) return;
  bool fits = mask.rank == query.rank && (mask.dtype == TN_BOOL || mask.dtype == dtype);
  for (uint32_t k = 0; fits && k < last; ++k) fits = mask.shape[k] == query.shape[k];
  if (!fits || mask.shape[last] != s)
    invalid("mask must be (…, {}, {}) of bool or the query's dtype, found {}", l, s,
            shape_text(mask));
}

inline void AttentionRequest::check_rest(const Request& request) const {
  const tn_dtype statistics = statistics_dtype(dtype);
  if (!backward) {
    require_outputs(request, 3);
    require_elements(request.output(0), batch * l * ev, dtype, "y");
    for (size_t i = 1; i < 3; ++i)
      if (request.has_output(i))
        require_elements(request.output(i), batch * l, statistics, "a statistic");
    return;
  }
  require_elements(request.input(0), batch * l * ev, dtype, "the gradient");
  require_elements(request.input(4), batch * l * ev, dtype, "y");
  for (size_t i = 5; i < 7; ++i)
    require_elements(request.input(i), batch * l, statistics, "a statistic");
  require_outputs(request, 3);
  const int64_t elements[] = {batch * l * e, batch * s * e, batch * s * ev};
  for (size_t i = 0; i < 3; ++i)
    if (request.has_output(i))
      require_elements(request.output(i), elements[i], dtype, "a gradient");
}

}  // namespace tenon::sdk
