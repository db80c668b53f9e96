// Selection and writing by masks (core/ops/indexing.h).
#include <tenon/core/base/module_path.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/indexing/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/scan.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

void infer_nonzero(Infer& infer) { infer.output(DType::i64, infer.given_shape()); }
// Inputs: a mask, and of each element how many are true up to it.
//
// | `nonzero` | mask(bool), counts(i64) -> y(i64) (n, rank) | | the places where mask is true, in
//   row-major order. counts has mask's elements: how many are true up to each; n is the last |
const Op nonzero_op{{.name = "nonzero", .infer = infer_nonzero}};

Tensor run_nonzero(const Tensor& mask) {
  const int64_t rank = static_cast<int64_t>(shape_of(mask).size());
  if (mask.numel() == 0) return zeros({0, rank}, {.dtype = DType::i64, .device = mask.device()});
  const Tensor counts = cumsum(flatten(mask), 0);
  const int64_t n = counts.select(0, -1).item<int64_t>();
  if (n == 0 || rank == 0) return zeros({n, rank}, {.dtype = DType::i64, .device = mask.device()});
  const Tensor whole = mask.contiguous();
  return run_as({n, rank}, nonzero_op, {&whole, &counts});
}

void require_mask(const char* op, const Tensor& x, const Tensor& mask) {
  require_defined(op, {{"x", x}, {"mask", mask}});
  if (dtype_of(mask) != DType::boolean)
    throw DTypeError(fmt::format("{}: the mask must be bool, found {}; {}", op, dtype_of(mask),
                                 conversion_to(DType::boolean)));
}

}  // namespace

Tensor places_of(const Tensor& mask) { return run_nonzero(mask).reshape({-1}); }

Tensor nonzero(const Tensor& x) {
  require_tensor("nonzero", x);
  const NoGrad guard;
  const Tensor values = x.detach();
  return run_nonzero(dtype_of(x) == DType::boolean ? values : ne(values, 0));
}

std::vector<Tensor> nonzero_as_tuple(const Tensor& x) {
  require_tensor("nonzero_as_tuple", x);
  const Tensor places = nonzero(shape_of(x).empty() ? x.reshape({1}) : x);
  std::vector<Tensor> result;
  for (int64_t d = 0; d < places.size(1); ++d) result.push_back(places.select(1, d).contiguous());
  return result;
}

Tensor argwhere(const Tensor& x) {
  require_tensor("argwhere", x);
  return nonzero(x);
}

Tensor masked_select(const Tensor& x, const Tensor& mask) try {
  require_mask("masked_select", x, mask);
  const Shape common = broadcast_shapes(shape_of(x), shape_of(mask), "masked_select");
  return index_select(flatten(x.expand(common)), 0, places_of(flatten(mask.expand(common))));
} catch (const Error&) {
  rethrow_in("masked_select");
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, Number value) try {
  require_mask("masked_fill", x, mask);
  require_held("masked_fill", dtype_of(x), value);
  return where(mask, constant(value, dtype_of(x), x.device()), x);
} catch (const Error&) {
  rethrow_in("masked_fill");
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value) try {
  require_mask("masked_fill", x, mask);
  require_tensor("masked_fill", value, "value");
  if (!shape_of(value).empty())
    throw ShapeError(
        fmt::format("masked_fill: value must have no dimensions, found shape {}", shape_of(value)));
  return where(mask, value.to(dtype_of(x)), x);
} catch (const Error&) {
  rethrow_in("masked_fill");
}

// The k-th place that is true gets element k - 1 of the source; a zero stands before them for the
// places that are not.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) try {
  if (const Autocasting cast{"masked_scatter", {&x, &source}})
    return masked_scatter(cast(x), mask, cast(source));
  require_mask("masked_scatter", x, mask);
  require_tensor("masked_scatter", source, "source");
  if (dtype_of(source) != dtype_of(x))
    throw DTypeError(
        fmt::format("masked_scatter: x is {}, source {}, but both must have one dtype; {}",
                    dtype_of(x), dtype_of(source), conversion_to(dtype_of(x), "source")));
  const Shape common = broadcast_shapes(shape_of(x), shape_of(mask), "masked_scatter");
  const Tensor whole = mask.expand(common), all = flatten(whole);
  const Tensor place = where(all, cumsum(all, 0), 0);
  const Tensor zero = zeros({1}, {.dtype = dtype_of(x), .device = x.device()});
  const PartPath part("masked_scatter");  // a source that is too short is found when that runs
  const Tensor values = index_select(cat({zero, flatten(source)}), 0, place).reshape(common);
  return where(whole, values, x);
} catch (const Error&) {
  rethrow_in("masked_scatter");
}

}  // namespace tenon
