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
  struct Dim {
    int64_t size, x_stride, y_stride;
  };
  int kept_rank = 0, reduced_rank = 0;
  Dim kept[TN_MAX_RANK]{}, reduced[TN_MAX_RANK]{};
  int64_t outputs = 1, count = 1;  // results, and elements that go into each

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

// "argmax" and "argmin": where the extreme lies along one dimension, which is not empty.
struct ArgReduceRequest : Lines {
  tn_dtype dtype;  // of x
  size_t dim;

  static ArgReduceRequest from(const Request& request);
};

inline ArgReduceRequest ArgReduceRequest::from(const Request& request) {
  auto &x = request.input(0), &y = request.output(0);
  require_contiguous(y);
  if (y.dtype != TN_I64) refuse_dtype(y.dtype);
  const size_t dim = dim_of(request, x);
  const ArgReduceRequest r{Lines::of(x, dim), x.dtype, dim};
  if (r.size == 0 && numel(y) > 0) invalid("there are no elements to choose from");
  return r;
}

}  // namespace tenon::sdk
