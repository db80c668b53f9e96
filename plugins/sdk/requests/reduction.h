// Reductions over dimensions, and the argument of an extreme along one: read and checked once for
// every plugin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <tenon/plugins/sdk/dims.h>
#include <tenon/plugins/sdk/requests/checks.h>

namespace tenon::sdk {

// The dimensions of x, split into those that are kept and those that are reduced, and merged where
// they lie one behind the other; both lists by falling stride of x. The output is contiguous in the
// order of x's dimensions.
struct ReduceShape {
  // A dimension: its size, and its strides in x and in the output, in elements.
  struct Dim {
    int64_t size, x_stride, y_stride;
  };
  int kept_rank = 0, reduced_rank = 0;
  Dim kept[TN_MAX_RANK]{}, reduced[TN_MAX_RANK]{};
  // The number of results, and of elements that go into each.
  int64_t outputs = 1, count = 1;

  // Returns the shape for a reduction of x over `dims`.
  static ReduceShape of(const tn_tensor_desc& x, const std::vector<int64_t>& dims);

 private:
  static void merge(Dim* list, int& rank);
};

inline ReduceShape ReduceShape::of(const tn_tensor_desc& x, const std::vector<int64_t>& dims) {
  ReduceShape s;
  int64_t y_stride = 1;
  for (int d = static_cast<int>(x.rank); d-- > 0;) {
    const bool is_reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    const int64_t size = x.shape[d];
    (is_reduced ? s.count : s.outputs) *= size;
    if (size == 1) continue;
    auto* list = is_reduced ? s.reduced : s.kept;
    list[is_reduced ? s.reduced_rank++ : s.kept_rank++] = {size, x.strides[d],
                                                           is_reduced ? 0 : y_stride};
    if (!is_reduced) y_stride *= size;
  }
  merge(s.kept, s.kept_rank);
  merge(s.reduced, s.reduced_rank);
  return s;
}

inline void ReduceShape::merge(Dim* list, int& rank) {
  std::stable_sort(list, list + rank,
                   [](const Dim& a, const Dim& b) { return a.x_stride > b.x_stride; });
  int last = 0;
  for (int d = 1; d < rank; ++d) {
    auto &outer = list[last], &inner = list[d];
    if (outer.x_stride == inner.x_stride * inner.size &&
        outer.y_stride == inner.y_stride * inner.size)
      outer = {outer.size * inner.size, inner.x_stride, inner.y_stride};
    else
      list[++last] = inner;
  }
  rank = rank > 0 ? last + 1 : 0;
}

// Requires that `y` has the shape of `x` without `dims`, which are dimensions of x in rising order.
// A single number is taken for a tensor of one dimension.
inline void require_reduced(const tn_tensor_desc& x, const tn_tensor_desc& y,
                            const std::vector<int64_t>& dims) {
  const int64_t rank = std::max<int64_t>(1, x.rank);
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0 || dims[i] >= rank || (i > 0 && dims[i] <= dims[i - 1]))
      invalid("dims are dimensions of the input, in rising order; found {} of {} dimensions",
              dims[i], x.rank);
  uint32_t kept = 0;
  bool fits = true;
  for (uint32_t d = 0; fits && d < x.rank; ++d) {
    if (std::find(dims.begin(), dims.end(), d) != dims.end()) continue;
    fits = kept < y.rank && y.shape[kept] == x.shape[d];
    ++kept;
  }
  if (!fits || kept != y.rank)
    invalid("{} does not come of reducing {}", shape_text(y), shape_text(x));
  require_contiguous(y);
}

// Returns the attribute "dims" of a reduction, and requires that it fits its input 0 and its output
// 0.
inline std::vector<int64_t> reduced_dims(const Request& request) {
  auto dims = request.get_ints("dims");
  require_reduced(request.input(0), request.output(0), dims);
  return dims;
}

// Returns the attribute "correction" of "var".
inline double variance_correction(const Request& request) {
  require_op(request, {"var"});
  return static_cast<double>(request.get_int("correction"));
}

// Returns what the squares of `count` elements' distances from their mean are divided by. The
// variance of no elements is 0 / 0, whatever the correction is.
inline double variance_divisor(double count, double correction) {
  return count > 0 ? std::max(0.0, count - correction) : 0;
}

// A request of "argmax" or "argmin": where the extreme lies along one dimension, which is not
// empty.
struct ArgReduceRequest : Lines {
  // The dtype of x, and the dimension.
  tn_dtype dtype;
  size_t dim;

  // Reads a request. Throws TN_CODE_INVALID_ARGUMENT if tensors do not fit together or there is no
  // element to choose from, and TN_CODE_UNSUPPORTED if the output is not i64 or not contiguous.
  static ArgReduceRequest from(const Request& request);
};

inline ArgReduceRequest ArgReduceRequest::from(const Request& request) {
  auto &x = request.input(0), &y = request.output(0);
  if (y.dtype != TN_I64) refuse_dtype(y.dtype);
  const size_t dim = dim_of(request, x);
  require_reduced(x, y, {static_cast<int64_t>(dim)});
  const ArgReduceRequest r{Lines::of(x, dim), x.dtype, dim};
  if (r.size == 0 && numel(y) > 0) invalid("there are no elements to choose from");
  return r;
}

}  // namespace tenon::sdk
