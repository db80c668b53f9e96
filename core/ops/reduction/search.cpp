// Places in sorted sequences (core/ops/sort.h).
#include <cmath>

#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/sort.h>

namespace tenon {

namespace {

void infer_searchsorted(Infer& infer) {
  const Shape &sequence = shape_of(infer.in(0)), &values = shape_of(infer.in(1));
  for (size_t i : {0, 1})
    infer.require_dtype(dtype_of(infer.in(i)) != DType::boolean, i, "a floating or integer type");
  bool fits = !sequence.empty();
  if (sequence.size() != 1) {
    fits = sequence.size() == values.size();
    for (size_t d = 0; fits && d + 1 < values.size(); ++d) fits = sequence[d] == values[d];
  }
  if (!fits)
    infer.shape_error(
        fmt::format("the sequence has shape {}, which must be a vector, or that of the values, {}, "
                    "except in the last dimension",
                    sequence, values));
  infer.output(DType::i64, values);
}

// In a sorted sequence the place is how many elements come before it.
void decompose_searchsorted(const Call& call, Outputs& out) {
  const Tensor sequence = unsqueeze(call.in(0), -2), values = unsqueeze(call.in(1), -1);
  const Tensor nan = ne(sequence, sequence);
  const Tensor behind = call.attrs.get_bool("right")
                            ? logical_or(gt(sequence, values), logical_and(nan, eq(values, values)))
                            : logical_or(ge(sequence, values), nan);
  out.push_back(sum(logical_not(behind).to(DType::i64), -1));
}

// | `searchsorted` | sequence, values -> places(i64) | `right` bool | numbers but halves, of one
//   dtype. The sequence is a vector, or has a row for each row of values; sorted as `sort` does.
//   The first place, or with `right` the last, where the value keeps it sorted |
const Op searchsorted_op{{
    .name = "searchsorted",
    .inputs = "sequence values",
    .infer = infer_searchsorted,
    .promotion = Promotion::common,
    .decompose = decompose_searchsorted,
}};

bool goes_right(const SearchOptions& options) {
  if (options.side.empty()) return options.right;
  if (options.side != "left" && options.side != "right")
    throw ValueError(
        fmt::format("searchsorted: side must be left or right, found \"{}\"", options.side));
  if (options.side == "left" && options.right)
    throw ValueError("searchsorted: side is left, but right is true; give one of them");
  return options.side == "right";
}

Tensor in_order(const Tensor& sequence, const Tensor& sorter) {
  if (!sorter.defined()) return sequence;
  require_index("searchsorted", sorter, "sorter");
  if (!(shape_of(sorter) == shape_of(sequence)))
    throw ShapeError(
        fmt::format("searchsorted: sorter has shape {}, but must have that of the "
                    "sequence, {}",
                    shape_of(sorter), shape_of(sequence)));
  return gather(sequence, -1, sorter);
}

}  // namespace

Tensor searchsorted(const Tensor& sequence, const Tensor& values,
                    const SearchOptions& options) try {
  require_defined("searchsorted", {{"sequence", sequence}, {"values", values}});
  const NoGrad guard;
  const bool right = goes_right(options);
  Tensor from = in_order(sequence, options.sorter), wanted = values;
  if (is_half(from)) from = from.to(DType::f32);
  if (is_half(wanted)) wanted = wanted.to(DType::f32);
  const Tensor y = run(searchsorted_op, {&from, &wanted}, Attrs().set("right", right));
  return options.out_int32 ? y.to(DType::i32) : y;
} catch (const Error&) {
  rethrow_in("searchsorted");
}

Tensor searchsorted(const Tensor& sequence, Number value, const SearchOptions& options) try {
  require_tensor("searchsorted", sequence, "sequence");
  return searchsorted(sequence, constant(value, result_type(sequence, value), sequence.device()),
                      options);
} catch (const Error&) {
  rethrow_in("searchsorted");
}

Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool out_int32, bool right) try {
  require_defined("bucketize", {{"x", x}, {"boundaries", boundaries}});
  if (shape_of(boundaries).size() != 1)
    throw ShapeError(fmt::format("bucketize: boundaries must be a vector, found shape {}",
                                 shape_of(boundaries)));
  return searchsorted(boundaries, x, {.out_int32 = out_int32, .right = right});
} catch (const Error&) {
  rethrow_in("bucketize");
}
Tensor bucketize(Number x, const Tensor& boundaries, bool out_int32, bool right) try {
  require_tensor("bucketize", boundaries, "boundaries");
  return bucketize(constant(x, result_type(boundaries, x), boundaries.device()), boundaries,
                   out_int32, right);
} catch (const Error&) {
  rethrow_in("bucketize");
}

namespace {

// The bounds of the intervals, computed from the nearer end as PyTorch's linspace does.
Tensor edges_of(const Tensor& low, const Tensor& high, int64_t bins) {
  const Tensor numbers = arange(0, bins + 1, 1, {.dtype = dtype_of(low), .device = low.device()});
  const Tensor step = (high - low) / static_cast<double>(bins);
  const Tensor from_end = static_cast<double>(bins) - numbers;
  return where(lt(numbers, static_cast<double>((bins + 1) / 2)), low + numbers * step,
               high - from_end * step);
}

}  // namespace

Tensor histc(const Tensor& x, int64_t bins, double min, double max) try {
  require_tensor("histc", x);
  if (!is_floating_point(dtype_of(x)))
    throw DTypeError(fmt::format("histc: x must be floating, found {}; {}", dtype_of(x),
                                 conversion_to(DType::f32)));
  if (bins <= 0 || bins >= int64_t{1} << 60)
    throw ValueError(fmt::format("histc: bins must be positive and below 2^60, found {}", bins));
  if (!(min <= max) || !std::isfinite(min) || !std::isfinite(max))
    throw ValueError(fmt::format(
        "histc: min and max must be finite, and max not less than min; found {} and {}", min, max));
  const NoGrad guard;
  const Tensor all = flatten(is_half(x) ? x.to(DType::f32) : x).detach();
  const DType t = dtype_of(all);
  Tensor low = constant(min, t, x.device()), high = constant(max, t, x.device());
  if (min == max && all.numel() > 0) low = amin(all), high = amax(all);
  const Tensor same = eq(low, high);
  const Tensor first = where(same, low - 1.0, low), last = where(same, high + 1.0, high);
  const Tensor edges = edges_of(first, last, bins);
  const Tensor inside = logical_and(ge(all, first), le(all, last));
  const Tensor place = clamp(bucketize(all, edges, false, true) - 1, 0, bins - 1);
  const Tensor counts = zeros({bins}, {.dtype = t, .device = x.device()});
  return scatter_add(counts, 0, place, inside.to(t)).to(dtype_of(x));
} catch (const Error&) {
  rethrow_in("histc");
}

Tensor isin(const Tensor& x, const Tensor& test_elements, bool, bool invert) try {
  require_defined("isin", {{"x", x}, {"test_elements", test_elements}});
  const NoGrad guard;
  const DType t = promote(dtype_of(x), dtype_of(test_elements));
  const DType compared = t == DType::boolean ? DType::u8 : t;
  const int64_t n = test_elements.numel();
  const Tensor all = x.detach().to(compared);
  if (n == 0) return full(all.shape(), invert, {.dtype = DType::boolean, .device = x.device()});
  const Tensor sorted = sort(flatten(test_elements.detach().to(compared)), 0).values;
  const Tensor place = clamp(searchsorted(sorted, all), 0, n - 1);
  const Tensor found = index_select(sorted, 0, flatten(place)).reshape(all.shape());
  return invert ? ne(found, all) : eq(found, all);
} catch (const Error&) {
  rethrow_in("isin");
}
Tensor isin(const Tensor& x, Number test_element, bool, bool invert) try {
  require_tensor("isin", x);
  const Tensor element = constant(test_element, result_type(x, test_element), x.device());
  return isin(x, element, false, invert);
} catch (const Error&) {
  rethrow_in("isin");
}

}  // namespace tenon
