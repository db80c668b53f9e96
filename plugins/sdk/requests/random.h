// "uniform", "normal", "randint" and "dropout": what the scalars of their runs amount to, alike for
// every plugin. philox.h says how the numbers themselves are made.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/plugins/sdk/philox.h>
#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// The seed and the offset of a call, which are scalars 0 and 1 of a run.
struct RandomSeed {
  uint64_t seed, offset;
  // Returns them from the scalars of a run.
  static RandomSeed from(const tn_scalar* s) {
    return {static_cast<uint64_t>(s[0].i), static_cast<uint64_t>(s[1].i)};
  }
};

// The bounds of "uniform", scalars 2 and 3 of a run, and their difference.
template <class T>
struct UniformBounds {
  T low, high, range;
  // Returns them from the scalars of a run.
  static UniformBounds from(const tn_scalar* s) {
    return {static_cast<T>(s[2].f), static_cast<T>(s[3].f), static_cast<T>(s[3].f - s[2].f)};
  }
};

// The lower bound of "randint" and the number of values, from scalars 2 and 3 of a run.
struct RandintBounds {
  int64_t low;
  uint64_t range;
  // Returns them from the scalars of a run. Throws TN_CODE_INVALID_ARGUMENT unless low is below
  // high.
  static RandintBounds from(const tn_scalar* s) {
    const int64_t low = s[2].i, high = s[3].i;
    if (high <= low) invalid("low {} is not below high {}", low, high);
    return {low, static_cast<uint64_t>(high) - static_cast<uint64_t>(low)};
  }
};

// A request of "dropout" (x -> y, mask) or "dropout_backward" (g, mask -> gx), of `n` elements. All
// tensors are contiguous; the mask is always there.
struct DropoutRequest {
  tn_dtype dtype;
  int64_t n;
  // Reads a request. Throws TN_CODE_INVALID_ARGUMENT if tensors do not fit together.
  static DropoutRequest from(const Request& request) {
    require_op(request, {"dropout", "dropout_backward"});
    const bool backward = request.op() == "dropout_backward";
    require_scalars(request, backward ? 1 : 3);
    const auto& y = request.output(0);
    const DropoutRequest r{y.dtype, numel(y)};
    require_elements(request.input(0), r.n, r.dtype, "the input");
    require_elements(backward ? request.input(1) : request.output(1), r.n, TN_BOOL, "the mask");
    require_contiguous(y);
    return r;
  }
};

// Returns the factor of an element that is kept, where elements are dropped with probability p.
template <class T>
T dropout_scale(double p) {
  return p < 1 ? static_cast<T>(1 / (1 - p)) : T(0);
}

}  // namespace tenon::sdk
