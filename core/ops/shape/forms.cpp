// Other shapes made of the views of view.cpp, and of each other (core/ops/shape.h).
#include <algorithm>

#include <tenon/core/format.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

int64_t signed_rank(const Tensor& x) { return static_cast<int64_t>(shape_of(x).size()); }

// `dims` counted from the start; each may be listed once.
Shape distinct_dims(const char* op, const char* argument, const Shape& dims, int64_t rank) {
  Shape wrapped = dims;
  uint32_t seen = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    wrapped[i] = wrap_dim(dims[i], rank, op);
    if (seen >> wrapped[i] & 1)
      throw ValueError(fmt::format("{}: {} {} lists dim {} twice", op, argument, dims, wrapped[i]));
    seen |= 1u << wrapped[i];
  }
  return wrapped;
}

}  // namespace

Tensor movedim(const Tensor& x, const Shape& source, const Shape& destination) {
  require_tensor("movedim", x);
  if (source.size() != destination.size())
    throw ValueError(fmt::format("movedim: source {} and destination {} must be equally many",
                                 source, destination));
  const int64_t rank = signed_rank(x);
  const Shape from = distinct_dims("movedim", "source", source, rank),
              to = distinct_dims("movedim", "destination", destination, rank);
  Shape order = Shape::filled(shape_of(x).size(), -1);
  for (size_t i = 0; i < from.size(); ++i) order[to[i]] = from[i];
  int64_t next = 0;
  for (int64_t place = 0; place < rank; ++place) {
    if (order[place] >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    order[place] = next++;
  }
  return permute(x, order);
}

Tensor swapaxes(const Tensor& x, int64_t axis0, int64_t axis1) try {
  require_tensor("swapaxes", x);
  return transpose(x, axis0, axis1);
} catch (const Error&) {
  rethrow_in("swapaxes");
}

Tensor unflatten(const Tensor& x, int64_t dim, const Shape& sizes) {
  require_tensor("unflatten", x);
  const Shape& from = shape_of(x);
  const int64_t d = wrap_dim(dim, signed_rank(x), "unflatten");
  Shape inferred = sizes;
  int64_t known = 1, unknown = -1;
  bool fits = !sizes.empty();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 && unknown < 0)
      unknown = static_cast<int64_t>(i);
    else
      fits = fits && sizes[i] >= 0 && !__builtin_mul_overflow(known, sizes[i], &known);
  }
  if (fits && unknown >= 0) {
    fits = known > 0 && from[d] % known == 0;
    if (fits) inferred[unknown] = from[d] / known;
  } else {
    fits = fits && known == from[d];
  }
  if (!fits)
    throw ShapeError(
        fmt::format("unflatten: sizes {} do not make dim {} of shape {}, whose size "
                    "is {}",
                    sizes, dim, from, from[d]));
  Shape shape;
  for (int64_t i = 0; i < signed_rank(x); ++i) {
    if (i != d) shape.push_back(from[i]);
    if (i == d)
      for (int64_t size : inferred) shape.push_back(size);
  }
  return reshape(x, shape);
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) try {
  require_tensor("broadcast_to", x);
  return expand(x, shape);
} catch (const Error&) {
  rethrow_in("broadcast_to");
}

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors) {
  Shape shape;
  for (size_t i = 0; i < tensors.size(); ++i) {
    require_tensor("broadcast_tensors", tensors[i], "tensors", i);
    shape = broadcast_shapes(shape, shape_of(tensors[i]), "broadcast_tensors");
  }
  std::vector<Tensor> result;
  for (auto& t : tensors) result.push_back(expand(t, shape));
  return result;
}

Tensor expand_as(const Tensor& x, const Tensor& other) try {
  require_defined("expand_as", {{"x", x}, {"other", other}});
  return expand(x, shape_of(other));
} catch (const Error&) {
  rethrow_in("expand_as");
}
Tensor view_as(const Tensor& x, const Tensor& other) try {
  require_defined("view_as", {{"x", x}, {"other", other}});
  return view(x, shape_of(other));
} catch (const Error&) {
  rethrow_in("view_as");
}
Tensor reshape_as(const Tensor& x, const Tensor& other) try {
  require_defined("reshape_as", {{"x", x}, {"other", other}});
  return reshape(x, shape_of(other));
} catch (const Error&) {
  rethrow_in("reshape_as");
}

Tensor atleast_1d(const Tensor& x) {
  require_tensor("atleast_1d", x);
  return shape_of(x).empty() ? reshape(x, 1) : x;
}
Tensor atleast_2d(const Tensor& x) {
  require_tensor("atleast_2d", x);
  return signed_rank(x) < 2 ? unsqueeze(atleast_1d(x), 0) : x;
}
Tensor atleast_3d(const Tensor& x) {
  require_tensor("atleast_3d", x);
  return signed_rank(x) < 3 ? unsqueeze(atleast_2d(x), -1) : x;
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, std::string_view indexing) {
  if (indexing != "ij" && indexing != "xy")
    throw ValueError(
        fmt::format("meshgrid: indexing must be \"ij\" or \"xy\", found \"{}\"", indexing));
  if (tensors.empty()) throw ValueError("meshgrid: needs at least one tensor");
  Shape shape;
  for (size_t i = 0; i < tensors.size(); ++i) {
    require_tensor("meshgrid", tensors[i], "tensors", i);
    if (signed_rank(tensors[i]) > 1)
      throw ShapeError(fmt::format("meshgrid: tensor {} has shape {}, but must be a vector", i,
                                   shape_of(tensors[i])));
    shape.push_back(impl_of(tensors[i]).numel);
  }
  const bool exchanged = indexing == "xy" && tensors.size() > 1;
  std::vector<Tensor> result;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Shape along = Shape::filled(shape.size(), 1);
    along[i] = shape[i];
    const Tensor grid = expand(reshape(tensors[i], along), shape);
    result.push_back(exchanged ? transpose(grid, 0, 1) : grid);
  }
  return result;
}

Tensor cartesian_prod(const std::vector<Tensor>& tensors) try {
  if (tensors.empty()) throw ValueError("cartesian_prod: needs at least one tensor");
  for (size_t i = 0; i < tensors.size(); ++i) {
    require_tensor("cartesian_prod", tensors[i], "tensors", i);
    if (signed_rank(tensors[i]) != 1)
      throw ShapeError(fmt::format("cartesian_prod: tensor {} has shape {}, but must be a vector",
                                   i, shape_of(tensors[i])));
  }
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> columns;
  for (auto& grid : meshgrid(tensors)) columns.push_back(flatten(grid));
  return stack(columns, 1);
} catch (const Error&) {
  rethrow_in("cartesian_prod");
}

}  // namespace tenon
