// "resample" and its gradient, read and checked once for every plugin.
#pragma once

#include <cstdint>

#include <tenon/plugins/sdk/dims.h>
#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// A request of "resample": x, or gx, seen as (outer, size, inner), and y, or g, as (outer, count,
// inner). All tensors are contiguous. A plan checks that places lie in [0, size) when it runs.
struct ResampleRequest : Lines {
  // The dtype of all tensors but the places, which are i64.
  tn_dtype dtype;
  // The elements of y along the dimension, and the elements of x of which each is made.
  int64_t count, taps;

  // Reads "resample" (x, place, weight -> y) or "resample_backward" (g, place, weight -> gx).
  static ResampleRequest from(const Request& request);
};

inline ResampleRequest ResampleRequest::from(const Request& request) {
  require_op(request, {"resample", "resample_backward"});
  const bool backward = request.op() == "resample_backward";
  auto &x = backward ? request.output(0) : request.input(0),
       &y = backward ? request.input(0) : request.output(0), &place = request.input(1);
  if (place.rank != 2) invalid("places are (taps, count), found {}", shape_text(place));
  const size_t dim = dim_of(request, x);
  const ResampleRequest r{Lines::of(x, dim), x.dtype, place.shape[1], place.shape[0]};
  require_elements(place, r.taps * r.count, TN_I64, "place");
  require_elements(request.input(2), r.taps * r.count, r.dtype, "weight");
  if (!same_shape_but(x, y, dim) || y.shape[dim] != r.count || y.dtype != r.dtype)
    invalid("{} places along dimension {} do not make {} of {}", r.count, dim, shape_text(y),
            shape_text(x));
  require_contiguous(x);
  require_contiguous(y);
  return r;
}

}  // namespace tenon::sdk
