// Sorting and order statistics (core/ops/sort.h).
#include <limits>

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

void sort_gradient(const GradContext& c, Grads g) {
  g[0] = add_at(c.input_shape(0), c.grad(), c.attrs.get_int("dim"), c.output(1));
}

void infer_sort(Infer& infer) {
  infer.output(dtype_of(infer.in(0)), shape_of(infer.in(0)));
  infer.output(DType::i64, shape_of(infer.in(0)));
}
// | `sort` | x -> y, indices(i64) | `dim`, `descending` bool | any but halves; stable. NaN is
//   larger than every number, and equal to NaN |
const Op sort_op{{
    .name = "sort",
    .infer = infer_sort,
    .gradient = sort_gradient,
    .saves_outputs = 2,
}};

void infer_topk(Infer& infer) {
  Shape shape = shape_of(infer.in(0));
  if (!shape.empty()) shape[infer.attrs.get_int("dim")] = infer.attrs.get_int("k");
  infer.output(dtype_of(infer.in(0)), shape);
  infer.output(DType::i64, shape);
}
void decompose_topk(const Call& call, Outputs& out) {
  const int64_t dim = call.attrs.get_int("dim"), k = call.attrs.get_int("k");
  const auto [values, indices] = sort(call.in(0), dim, call.attrs.get_bool("largest"));
  for (auto& y : {values, indices})
    out.push_back(shape_of(y).empty() ? y : y.narrow(dim, 0, k).contiguous());
}
// | `topk` | x -> y, indices(i64) | `dim`, `k` int, `largest` bool | the first k that `sort` gives,
//   of equals those that come first |
const Op topk_op{{
    .name = "topk",
    .infer = infer_topk,
    .gradient = sort_gradient,
    .saves_outputs = 2,
    .decompose = decompose_topk,
}};

// Halves are compared as f32, which changes no order.
ValuesIndices chosen(const Op& op, const Tensor& x, const Attrs& attrs) {
  const Tensor from = is_half(x) ? x.to(DType::f32) : x;
  const Tensor* input = &from;
  const Outputs y = run_all({op, {&input, 1}, attrs});
  return {y[0].to(dtype_of(x)), y[1]};
}

void require_choice(const char* op, const Tensor& x, int64_t dim) {
  if (size_along(x, dim) == 0)
    throw ValueError(
        fmt::format("{}: a tensor of shape {} has no elements to choose from along dim {}", op,
                    shape_of(x), dim));
}

// Element `place` of each line, which is a number or has size 1 along `dim`.
ValuesIndices without_line(const ValuesIndices& all, int64_t dim, bool keepdim) {
  if (keepdim || shape_of(all.values).empty()) return all;
  return {squeeze(all.values, dim), squeeze(all.indices, dim)};
}
ValuesIndices element_of(const ValuesIndices& sorted, int64_t dim, int64_t place, bool keepdim) {
  if (shape_of(sorted.values).empty()) return sorted;
  return without_line({sorted.values.narrow(dim, place, 1), sorted.indices.narrow(dim, place, 1)},
                      dim, keepdim);
}
ValuesIndices element_of(const ValuesIndices& sorted, int64_t dim, const Tensor& place,
                         bool keepdim) {
  return without_line({gather(sorted.values, dim, place), gather(sorted.indices, dim, place)}, dim,
                      keepdim);
}

// How many elements of each line are NaN, with size 1 along `dim`.
Tensor count_nan(const Tensor& x, int64_t dim) {
  const NoGrad guard;
  const Tensor nan = ne(x, x).to(DType::i64);
  return shape_of(x).empty() ? nan : sum(nan, dim, true);
}

// Half of a number that is not negative, rounded down: in f64, which holds every count.
Tensor half_of(const Tensor& n) { return floor(n.to(DType::f64) * 0.5).to(DType::i64); }

ValuesIndices run_median(const char* op, const Tensor& x, int64_t dim, bool keepdim,
                         bool without_nan) {
  require_tensor(op, x);
  const int64_t d = wrap_dim_of(x, dim, op), n = size_along(x, d);
  require_choice(op, x, d);
  const auto sorted = sort(x, d);
  if (!is_floating_point(dtype_of(x))) return element_of(sorted, d, (n - 1) / 2, keepdim);
  // NaN is last: the first of them is at n - count.
  const Tensor nan = count_nan(x, d), numbers = n - nan;
  const Tensor place =
      without_nan ? half_of(maximum(numbers - 1, 0)) : where(gt(nan, 0), numbers, (n - 1) / 2);
  return element_of(sorted, d, place, keepdim);
}

// The median of all elements, whose gradient is that of all that equal it, as PyTorch's is.
Tensor median_of_all(const char* op, const Tensor& x, bool without_nan) {
  require_tensor(op, x);
  const Tensor all = flatten(x);
  if (x.numel() == 0 && is_floating_point(dtype_of(x)))
    return constant(std::numeric_limits<double>::quiet_NaN(), dtype_of(x), x.device());
  const Tensor value = [&] {
    const NoGrad guard;
    return run_median(op, all.detach(), 0, false, without_nan).values;
  }();
  if (!wants_gradient(x)) return value;
  const Tensor equal = logical_or(eq(all, value), logical_and(ne(all, all), ne(value, value)));
  return amin(where(equal, all, std::numeric_limits<double>::infinity()));
}

}  // namespace

ValuesIndices sort(const Tensor& x, int64_t dim, bool descending, bool) {
  require_tensor("sort", x);
  return chosen(sort_op, x,
                Attrs().set("dim", wrap_dim_of(x, dim, "sort")).set("descending", descending));
}

Tensor argsort(const Tensor& x, int64_t dim, bool descending, bool) {
  require_tensor("argsort", x);
  return sort(x.detach(), wrap_dim_of(x, dim, "argsort"), descending).indices;
}

Tensor msort(const Tensor& x) try { return sort(x, 0).values; } catch (const Error&) {
  rethrow_in("msort");
}

ValuesIndices topk(const Tensor& x, int64_t k, int64_t dim, bool largest, bool) {
  require_tensor("topk", x);
  const int64_t d = wrap_dim_of(x, dim, "topk"), n = size_along(x, d);
  if (k < 0 || k > n)
    throw ValueError(fmt::format("topk: k must lie in [0, {}], the size of dim {} of {}; found {}",
                                 n, d, shape_of(x), k));
  if (shape_of(x).empty()) k = 1;  // as in PyTorch, a number is its own result, whatever k is
  return chosen(topk_op, x, Attrs().set("dim", d).set("k", k).set("largest", largest));
}

ValuesIndices kthvalue(const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
  require_tensor("kthvalue", x);
  const int64_t d = wrap_dim_of(x, dim, "kthvalue"), n = size_along(x, d);
  if (k < 1 || k > n)
    throw ValueError(
        fmt::format("kthvalue: k must lie in [1, {}], the size of dim {} of {}; found {}", n, d,
                    shape_of(x), k));
  return element_of(topk(x, k, d, false), d, k - 1, keepdim);
}

Tensor median(const Tensor& x) { return median_of_all("median", x, false); }
ValuesIndices median(const Tensor& x, int64_t dim, bool keepdim) {
  return run_median("median", x, dim, keepdim, false);
}
Tensor nanmedian(const Tensor& x) { return median_of_all("nanmedian", x, true); }
ValuesIndices nanmedian(const Tensor& x, int64_t dim, bool keepdim) {
  return run_median("nanmedian", x, dim, keepdim, true);
}

// In a sorted line an element's place behind the beginning of its run is how many there were so
// far. The first that reaches the largest number ends the run of the smallest value among those
// that occur as often.
ValuesIndices mode(const Tensor& x, int64_t dim, bool keepdim) {
  require_tensor("mode", x);
  const int64_t d = wrap_dim_of(x, dim, "mode"), n = size_along(x, d);
  require_choice("mode", x, d);
  const auto sorted = sort(x, d);
  if (n == 1) return element_of(sorted, d, int64_t{0}, keepdim);
  const Tensor values = sorted.values.detach();
  Shape line = Shape::filled(shape_of(x).size(), 1);
  line[d] = n - 1;
  const Tensor numbers = arange(1, n, 1, {.dtype = DType::i64, .device = x.device()}).view(line);
  const Tensor begins = ne(values.narrow(d, 1, n - 1), values.narrow(d, 0, n - 1));
  const Tensor repeats = numbers - cummax(where(begins, numbers, 0), d).values;
  // Where no element occurs twice, the smallest is the first.
  const Tensor none = eq(amax(repeats, d, true), 0);
  return element_of(sorted, d, where(none, 0, argmax(repeats, d, true) + 1), keepdim);
}

}  // namespace tenon
