// Distinct values and how often they occur (core/ops/sort.h).
#include <algorithm>

#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/indexing/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/scan.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/sort.h>

namespace tenon {

namespace {

Tensor numbers_up_to(int64_t n, Device device) {
  return arange(0, n, 1, {.dtype = DType::i64, .device = device});
}

// Which of n slices differ from the one before; the first does.
Tensor begins_of(const Tensor& slices) {
  const int64_t n = slices.size(0);
  if (n == 0) return zeros({0}, {.dtype = DType::boolean, .device = slices.device()});
  Tensor differs = ne(slices.narrow(0, 1, n - 1), slices.narrow(0, 0, n - 1));
  if (differs.dim() > 1) differs = any(flatten(differs, 1), 1);
  return cat({ones({1}, {.dtype = DType::boolean, .device = slices.device()}), differs});
}

// The runs of equal neighbours; `order` says where each slice was before it was sorted, and is
// undefined if it was not.
Unique runs_of(const Tensor& slices, const Tensor& order, bool inverse, bool counts) {
  const int64_t n = slices.size(0);
  const Tensor begins = begins_of(slices), first = places_of(begins);
  Unique result{index_select(slices, 0, first), {}, {}};
  if (inverse) {
    const Tensor run = cumsum(begins, 0) - 1;
    result.inverse = order.defined() ? scatter(run, 0, order, run) : run;
  }
  if (counts) {
    const Tensor end = constant(n, DType::i64, slices.device()).reshape({1});
    const int64_t k = first.size(0);
    const Tensor ends = cat({first, end});
    result.counts = ends.narrow(0, 1, k) - ends.narrow(0, 0, k);
  }
  return result;
}

// Returns the order of slices that are compared element by element from the first to the last:
// sorting is stable, so that the last element comes first.
Tensor order_of(const Tensor& slices) {
  const int64_t n = slices.size(0);
  const Tensor rows = slices.reshape({n, n == 0 ? 0 : slices.numel() / n});
  Tensor order = numbers_up_to(n, slices.device());
  for (int64_t k = rows.size(1); k-- > 0;) {
    const Tensor column = index_select(rows.select(1, k), 0, order);
    order = index_select(order, 0, argsort(column, 0));
  }
  return order;
}

Unique whole(const Tensor& x, bool sorted, bool inverse, bool counts) {
  Tensor all = flatten(x), order;
  if (sorted) {
    const auto [values, indices] = sort(all, 0);
    all = values;
    order = indices;
  }
  Unique result = runs_of(all, order, inverse, counts);
  if (inverse) result.inverse = result.inverse.reshape(shape_of(x));
  return result;
}

Unique along_dim(const Tensor& x, int64_t dim, bool sorted, bool inverse, bool counts) {
  Tensor slices = movedim(x, {dim}, {0}), order;
  if (sorted) {
    order = order_of(slices);
    slices = index_select(slices, 0, order);
  }
  Unique result = runs_of(slices, order, inverse, counts);
  result.values = movedim(result.values, {0}, {dim}).contiguous();
  return result;
}

Unique run_unique(const char* op, const Tensor& x, bool sorted, bool inverse, bool counts,
                  std::optional<int64_t> dim) {
  require_tensor(op, x);
  const NoGrad guard;
  if (!dim || shape_of(x).empty()) {
    if (dim) wrap_dim_of(x, *dim, op);
    return whole(x.detach(), sorted, inverse, counts);
  }
  return along_dim(x.detach(), wrap_dim_of(x, *dim, op), sorted, inverse, counts);
}

}  // namespace

Unique unique(const Tensor& x, bool, bool return_inverse, bool return_counts,
              std::optional<int64_t> dim) {
  return run_unique("unique", x, true, return_inverse, return_counts, dim);
}
Unique unique_consecutive(const Tensor& x, bool return_inverse, bool return_counts,
                          std::optional<int64_t> dim) {
  return run_unique("unique_consecutive", x, false, return_inverse, return_counts, dim);
}

Tensor bincount(const Tensor& x, const Tensor& weights, int64_t minlength) try {
  require_tensor("bincount", x);
  if (!is_integer(dtype_of(x)))
    throw DTypeError(fmt::format("bincount: x must be i64, i32 or u8, found {}; {}", dtype_of(x),
                                 conversion_to(DType::i64)));
  if (shape_of(x).size() != 1)
    throw ShapeError(fmt::format("bincount: x must be a vector, found shape {}", shape_of(x)));
  if (minlength < 0)
    throw ValueError(fmt::format("bincount: minlength must not be negative, found {}", minlength));
  if (weights.defined() && !(shape_of(weights) == shape_of(x)))
    throw ShapeError(fmt::format("bincount: weights have shape {}, but must have that of x, {}",
                                 shape_of(weights), shape_of(x)));
  const NoGrad guard;
  const Tensor index = x.to(DType::i64);
  Tensor added = weights.defined() ? weights.detach() : ones_like(index);
  if (weights.defined() && !is_floating_point(dtype_of(weights))) added = added.to(DType::f64);
  int64_t n = minlength;
  if (x.numel() > 0) {
    const auto bounds = stack(std::vector{amin(index), amax(index)}).to_vector<int64_t>();
    if (bounds[0] < 0)
      throw ValueError(
          fmt::format("bincount: elements of x must not be negative, found {}", bounds[0]));
    if (bounds[1] >= int64_t{1} << 60)
      throw ValueError(
          fmt::format("bincount: no tensor has an element for each number up to {}", bounds[1]));
    n = std::max(n, bounds[1] + 1);
  }
  return scatter_add(zeros({n}, {.dtype = dtype_of(added), .device = x.device()}), 0, index, added);
} catch (const Error&) {
  rethrow_in("bincount");
}

}  // namespace tenon
