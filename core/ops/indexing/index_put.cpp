// Several indices at once (core/ops/indexing.h).
#include <algorithm>

#include <tenon/core/base/module_path.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/indexing/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// ---- ravel_index ----

void infer_ravel(Infer& infer) { infer.output(DType::i64, shape_of(infer.in(0))); }

// An index outside gives the number of elements, which is outside too.
void decompose_ravel(const Call& call, Outputs& out) {
  const Shape sizes = call.attrs.get_list("sizes");
  Tensor number, outside;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Tensor &given = call.in(i), negative = lt(given, 0);
    const Tensor index = where(negative, given + sizes[i], given);
    const Tensor wrong = logical_or(lt(index, 0), ge(index, sizes[i]));
    number = i == 0 ? index : number * sizes[i] + index;
    outside = i == 0 ? wrong : logical_or(outside, wrong);
  }
  out.push_back(where(outside, sizes.numel(), number));
}

// | `ravel_index` | index0, index1, … i64 -> y(i64) | `sizes` ints | (index0 * sizes[1] + index1) *
//   sizes[2] + …; indices in [-size, 0) count from the end, and others outside [0, size) are
//   TN_CODE_OUT_OF_RANGE, naming position, index and size |
const Op ravel_index_op{{
    .name = "ravel_index",
    .infer = infer_ravel,
    .decompose = decompose_ravel,
}};

}  // namespace

Tensor ravel_index(const char* op, const std::vector<Tensor>& indices, const Shape& sizes) {
  std::vector<Tensor> from;
  std::vector<const Tensor*> inputs;
  for (auto& index : indices) {
    require_index(op, index, "an index");
    from.push_back(index.to(DType::i64));
  }
  for (auto& index : from) inputs.push_back(&index);
  const PartPath part(op);
  return run_all({ravel_index_op, inputs, Attrs().set("sizes", sizes)})[0];
}

namespace {

// ---- index and index_put ----

// x with the dimensions that are indexed side by side, and what is taken of them.
struct Plan {
  Tensor x;
  Shape order;       // how x was permuted; empty if it was not
  size_t first = 0;  // the first dimension that is indexed
  size_t count = 0;  // how many are
  Tensor rows;       // an element number in these dimensions for each place
  Shape at;          // the shape of the indices together
  Shape result;      // that of x[indices]

  // x with the indexed dimensions as one.
  Tensor joined(const Tensor& t) const {
    return flatten(t, static_cast<int64_t>(first), static_cast<int64_t>(first + count - 1));
  }
};

// A mask becomes the places where it is true, a dimension each.
std::vector<Tensor> without_masks(const char* op, const Tensor& x,
                                  const std::vector<Tensor>& indices) {
  std::vector<Tensor> result;
  for (auto& index : indices) {
    const bool mask =
        index.defined() && (dtype_of(index) == DType::boolean || dtype_of(index) == DType::u8);
    if (!mask) {
      result.push_back(index);
      continue;
    }
    const Shape& shape = shape_of(index);
    bool fits = !shape.empty() && result.size() + shape.size() <= shape_of(x).size();
    for (size_t d = 0; fits && d < shape.size(); ++d)
      fits = shape[d] == shape_of(x)[result.size() + d];
    if (!fits)
      throw ShapeError(fmt::format("{}: a mask of shape {} does not fit x, {}, from dim {} on", op,
                                   shape, shape_of(x), result.size()));
    for (auto& places : nonzero_as_tuple(index)) result.push_back(places);
  }
  if (result.size() > shape_of(x).size())
    throw IndexError(
        fmt::format("{}: {} indices for a tensor of shape {}", op, result.size(), shape_of(x)));
  return result;
}

// Brings the dimensions that are indexed to the front where others lie between them.
void put_side_by_side(Plan& plan, std::vector<Tensor>& indices) {
  const auto is_given = [](const Tensor& t) { return t.defined(); };
  const auto first = std::find_if(indices.begin(), indices.end(), is_given);
  const auto last = std::find_if(indices.rbegin(), indices.rend(), is_given).base();
  plan.count = static_cast<size_t>(std::count_if(indices.begin(), indices.end(), is_given));
  plan.first = static_cast<size_t>(first - indices.begin());
  if (static_cast<size_t>(last - first) == plan.count) {
    indices = {first, last};
    return;
  }
  std::vector<Tensor> given;
  for (bool wanted : {true, false})
    for (size_t d = 0; d < shape_of(plan.x).size(); ++d) {
      const bool indexed = d < indices.size() && indices[d].defined();
      if (indexed != wanted) continue;
      plan.order.push_back(static_cast<int64_t>(d));
      if (indexed) given.push_back(indices[d]);
    }
  plan.x = permute(plan.x, plan.order);
  plan.first = 0;
  indices = given;
}

Plan plan_of(const char* op, const Tensor& x, const std::vector<Tensor>& indices) {
  require_tensor(op, x);
  auto given = without_masks(op, x, indices);
  Plan plan;
  plan.x = x;
  if (std::none_of(given.begin(), given.end(), [](auto& t) { return t.defined(); })) {
    plan.result = shape_of(x);
    return plan;
  }
  put_side_by_side(plan, given);
  for (auto& index : given) plan.at = broadcast_shapes(plan.at, shape_of(index), op);
  for (auto& index : given) index = index.expand(plan.at);
  Shape sizes;
  const Shape& shape = shape_of(plan.x);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d == plan.first)
      for (int64_t n : plan.at) plan.result.push_back(n);
    const bool indexed = d >= plan.first && d < plan.first + plan.count;
    (indexed ? sizes : plan.result).push_back(shape[d]);
  }
  plan.rows = flatten(ravel_index(op, given, sizes));
  return plan;
}

// The values as slices along dimension `first` of `joined`.
Tensor slices_of(const char* op, const Plan& plan, const Tensor& joined, const Tensor& values) {
  if (dtype_of(values) != dtype_of(plan.x))
    throw DTypeError(fmt::format("{}: x is {}, values {}, but both must have one dtype; {}", op,
                                 dtype_of(plan.x), dtype_of(values),
                                 conversion_to(dtype_of(plan.x), "the values")));
  Tensor all = values;
  // As in PyTorch, dimensions of size 1 in front are dropped.
  while (all.dim() > static_cast<int64_t>(plan.result.size()) && all.size(0) == 1)
    all = squeeze(all, 0);
  if (!(broadcast_shapes(plan.result, shape_of(all), op) == plan.result))
    throw ShapeError(
        fmt::format("{}: values of shape {} do not broadcast to {}, the shape that "
                    "the indices choose",
                    op, shape_of(values), plan.result));
  Shape shape = shape_of(joined);
  shape[plan.first] = plan.rows.numel();
  return all.expand(plan.result).reshape(shape);
}

Shape inverse_of(const Shape& order) {
  Shape inverse = order;
  for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<int64_t>(i);
  return inverse;
}

Tensor put_rows(const Tensor& joined, int64_t dim, const Tensor& rows, const Tensor& slices,
                bool accumulate) {
  return accumulate ? index_add(joined, dim, rows, slices) : index_copy(joined, dim, rows, slices);
}

}  // namespace

Tensor index(const Tensor& x, const std::vector<Tensor>& indices) try {
  const Plan plan = plan_of("index", x, indices);
  if (plan.count == 0) return x;
  const auto dim = static_cast<int64_t>(plan.first);
  return index_select(plan.joined(plan.x), dim, plan.rows).reshape(plan.result);
} catch (const Error&) {
  rethrow_in("index");
}

Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                 bool accumulate) try {
  if (const Autocasting cast{"index_put", {&x, &values}})
    return index_put(cast(x), indices, cast(values), accumulate);
  require_defined("index_put", {{"x", x}, {"values", values}});
  const Plan plan = plan_of("index_put", x, indices);
  if (plan.count == 0) {
    const Tensor all = values.to(dtype_of(x)).expand(shape_of(x));
    return accumulate ? x + all : all.clone();
  }
  const Tensor joined = plan.joined(plan.x);
  const Tensor slices = slices_of("index_put", plan, joined, values);
  const Tensor y = put_rows(joined, static_cast<int64_t>(plan.first), plan.rows, slices, accumulate)
                       .reshape(shape_of(plan.x));
  return plan.order.empty() ? y : permute(y, inverse_of(plan.order));
} catch (const Error&) {
  rethrow_in("index_put");
}

void index_put_(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                bool accumulate) {
  require_defined("index_put_", {{"x", x}, {"values", values}});
  require_mutable("index_put_", x);
  if (wants_gradient(values))
    throw AutogradError(
        "index_put_: the values require a gradient, but writing into a tensor is not recorded; use "
        "index_put, values.detach(), or tenon::NoGrad");
  const NoGrad guard;
  const Plan plan = plan_of("index_put_", x, indices);
  Tensor target = x;
  const bool in_place =
      plan.count > 0 && plan.order.empty() && x.is_contiguous() && !(accumulate && is_half(x));
  if (!in_place) {
    target.copy_(index_put(x, indices, values, accumulate));
    return;
  }
  const Tensor joined = plan.joined(x), slices = slices_of("index_put_", plan, joined, values);
  const auto dim = static_cast<int64_t>(plan.first);
  scatter_into(joined, dim, spread_index(plan.rows, dim, slices), slices, accumulate);
}

namespace {
void require_elements(const char* op, const Tensor& x, const Tensor& index) {
  if (x.numel() == 0 && index.numel() > 0)
    throw IndexError(fmt::format("{}: a tensor of shape {} has no elements for {} indices", op,
                                 shape_of(x), index.numel()));
}
}  // namespace

Tensor take(const Tensor& x, const Tensor& index) try {
  require_defined("take", {{"x", x}, {"index", index}});
  require_elements("take", x, index);
  const Tensor rows = ravel_index("take", {index}, {x.numel()});
  return index_select(flatten(x), 0, flatten(rows)).reshape(shape_of(index));
} catch (const Error&) {
  rethrow_in("take");
}

Tensor put(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate) try {
  if (const Autocasting cast{"put", {&x, &source}})
    return put(cast(x), index, cast(source), accumulate);
  require_defined("put", {{"x", x}, {"index", index}, {"source", source}});
  if (index.numel() != source.numel())
    throw ShapeError(
        fmt::format("put: index has {} elements, source {}, but both must have as many",
                    index.numel(), source.numel()));
  require_elements("put", x, index);
  const Tensor rows = flatten(ravel_index("put", {index}, {x.numel()}));
  return put_rows(flatten(x), 0, rows, flatten(source), accumulate).reshape(shape_of(x));
} catch (const Error&) {
  rethrow_in("put");
}

namespace {
// Negative indices counted from the beginning of a line of n elements.
Tensor from_beginning(const Tensor& indices, int64_t n) {
  require_index("take_along_dim", indices, "indices");
  return where(lt(indices, 0), indices + n, indices);
}
}  // namespace

Tensor take_along_dim(const Tensor& x, const Tensor& indices) try {
  const PartPath part("take_along_dim");
  require_defined("take_along_dim", {{"x", x}, {"indices", indices}});
  return gather(flatten(x), 0, from_beginning(flatten(indices), x.numel()));
} catch (const Error&) {
  rethrow_in("take_along_dim");
}

Tensor take_along_dim(const Tensor& x, const Tensor& indices, int64_t dim) try {
  const PartPath part("take_along_dim");
  require_defined("take_along_dim", {{"x", x}, {"indices", indices}});
  const int64_t d = wrap_dim_of(x, dim, "take_along_dim");
  if (x.dim() != indices.dim())
    throw ShapeError(
        fmt::format("take_along_dim: x and indices must have as many dimensions, found {} and {}",
                    shape_of(x), shape_of(indices)));
  if (shape_of(x).empty()) return gather(x, d, from_beginning(indices, 1));
  Shape from = shape_of(x), at = shape_of(indices);
  from[d] = at[d] = 1;
  const Shape common = broadcast_shapes(from, at, "take_along_dim");
  from = at = common;
  from[d] = x.size(d);
  at[d] = indices.size(d);
  return gather(x.expand(from), d, from_beginning(indices, x.size(d)).expand(at));
} catch (const Error&) {
  rethrow_in("take_along_dim");
}

}  // namespace tenon
