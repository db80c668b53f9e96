// Operators a, b? -> y of two tensors or of a tensor and a number, and "polygamma", read once for
// every plugin.
#pragma once

#include <cstdint>
#include <utility>

#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// A request of two operands. If one is absent, scalar 0 of the run takes its place: b's, or a's if
// the request has the attribute "reverse".
struct BinaryRequest {
  // The operands, NULL for the one that is a scalar, and the dtype of the tensors.
  const tn_tensor_desc *a, *b;
  tn_dtype dtype;

  // Returns whether a is the scalar.
  bool scalar_first() const { return !a; }
  // Returns whether b is the scalar.
  bool scalar_second() const { return !b; }

  // Reads a request of any operator of two operands. Throws TN_CODE_INVALID_ARGUMENT if an operand
  // has not the result's shape, dtypes differ or the scalar is missing.
  static BinaryRequest from(const Request& request) {
    const tn_tensor_desc* x = &request.input(0);
    const bool reverse = request.get_bool("reverse", false);  // of two tensors it means nothing
    for (size_t i = 0; i < 2; ++i)
      if (request.has_input(i) && !same_shape(request.input(i), request.output(0)))
        invalid("operands have the result's shape; found {} and {}", shape_text(request.input(i)),
                shape_text(request.output(0)));
    if (request.has_input(1)) {
      if (request.input(1).dtype != x->dtype) invalid("both tensors have one dtype");
      return {x, &request.input(1), x->dtype};
    }
    require_scalars(request, 1);
    return {reverse ? nullptr : x, reverse ? x : nullptr, x->dtype};
  }
};

// Returns whether kernels of "polygamma" are there for this derivative of digamma.
inline bool has_polygamma(int64_t n) { return n >= 1 && n <= 1000; }

// A request of "polygamma": derivative number n of digamma, of each element of x.
struct PolygammaRequest {
  tn_dtype dtype;
  int n;

  // Reads a request. Throws TN_CODE_INVALID_ARGUMENT if x and y are not alike, or for an n that is
  // not 1 to 1000.
  static PolygammaRequest from(const Request& request) {
    require_op(request, {"polygamma"});
    auto &x = request.input(0), &y = request.output(0);
    if (x.dtype != y.dtype || !same_shape(x, y))
      invalid("x and y have one dtype and one shape; found {} and {}", shape_text(x),
              shape_text(y));
    const int64_t n = request.get_int("n");
    if (!has_polygamma(n)) invalid("n is 1 to 1000, found {}", n);
    return {x.dtype, static_cast<int>(n)};
  }
};

}  // namespace tenon::sdk
