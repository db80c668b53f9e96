#include <cstring>
#include <string>
#include <vector>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/data/dataset.h>

namespace tenon::data {
namespace {

// Joins one part of the examples. Example 0 determines the shape and the dtype.
Tensor stack(std::span<const Example> examples, Tensor Example::*part, const char* what) {
  const Tensor first = on_host(examples[0].*part);
  Shape shape = first.shape();
  shape.insert(0, static_cast<int64_t>(examples.size()));
  HostTensor stacked = make_host_tensor(shape, first.dtype());
  const size_t bytes = static_cast<size_t>(first.numel()) * size_of(first.dtype());
  for (size_t i = 0; i < examples.size(); ++i) {
    const Tensor each = on_host(examples[i].*part);
    if (each.shape() != first.shape())
      throw ShapeError(
          fmt::format("collate: the {} of example {} has shape {}, that of example 0 {}", what, i,
                      each.shape(), first.shape()));
    if (each.dtype() != first.dtype())
      throw DTypeError(
          fmt::format("collate: the {} of example {} has type {}, that of example 0 {}", what, i,
                      each.dtype(), first.dtype()));
    if (bytes)
      std::memcpy(static_cast<char*>(stacked.values) + i * bytes, host_values(each), bytes);
  }
  return stacked.tensor;
}

}  // namespace

Dataset::~Dataset() = default;

Example Dataset::get(int64_t index) const {
  Batch batch = get_batch({&index, 1});
  return {batch.data[0], batch.target[0]};
}

Batch collate(std::span<const Example> examples) {
  if (examples.empty()) throw ValueError("collate: no examples given, so their shape is unknown");
  return {stack(examples, &Example::data, "data"), stack(examples, &Example::target, "target")};
}

}  // namespace tenon::data
