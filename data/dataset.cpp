#include <cstdlib>
#include <cstring>
#include <string>
#include <typeinfo>
#include <vector>

#include <cxxabi.h>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/data/dataset.h>
#include <tenon/data/naming.h>
#include <tenon/data/reading.h>

namespace tenon::data {
namespace {

// Joins one part of the examples. The first one determines the shape and the dtype. `name` says
// what errors call an example.
template <class Name>
Tensor stack(std::span<const Example> examples, Name&& name, Tensor Example::*part,
             const char* what) {
  const Tensor first = on_host(examples[0].*part);
  Shape shape = first.shape();
  shape.insert(0, static_cast<int64_t>(examples.size()));
  HostTensor stacked = make_host_tensor(shape, first.dtype());
  const size_t bytes = static_cast<size_t>(first.numel()) * size_of(first.dtype());
  for (size_t i = 0; i < examples.size(); ++i) {
    const Tensor each = on_host(examples[i].*part);
    if (each.shape() != first.shape())
      throw ShapeError(
          fmt::format("collate: the {} of example {} has shape {}, that of example {} {}; examples "
                      "of different shapes need a `collate` of their own, in the loader's options",
                      what, name(i), each.shape(), name(0), first.shape()));
    if (each.dtype() != first.dtype())
      throw DTypeError(
          fmt::format("collate: the {} of example {} has type {}, that of example {} {}", what,
                      name(i), each.dtype(), name(0), first.dtype()));
    if (bytes)
      std::memcpy(static_cast<char*>(stacked.values) + i * bytes, host_values(each), bytes);
  }
  return stacked.tensor;
}

template <class Name>
Batch join(std::span<const Example> examples, Name&& name) {
  if (examples.empty()) throw ValueError("collate: no examples given, so their shape is unknown");
  return {stack(examples, name, &Example::data, "data"),
          stack(examples, name, &Example::target, "target")};
}

}  // namespace

Dataset::~Dataset() = default;

Example Dataset::get(int64_t index) const {
  Batch batch = get_batch({&index, 1});
  return {batch.data[0], batch.target[0]};
}

std::string Dataset::name() const {
  const char* mangled = typeid(*this).name();
  int status = 0;
  char* readable = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = readable ? readable : mangled;
  std::free(readable);
  const size_t space = name.rfind("::", name.find('<'));
  return space == name.npos ? name : name.substr(space + 2);
}

std::vector<Example> get_examples(const Dataset& dataset, std::span<const int64_t> indices) {
  std::vector<Example> examples;
  examples.reserve(indices.size());
  Reading now = reading();
  for (size_t i = 0; i < indices.size(); ++i) {
    now.place = i;
    const ReadingScope scope(now);
    naming_example(dataset, indices[i], [&] {
      const int64_t size = dataset.size();
      if (indices[i] < 0 || indices[i] >= size)
        throw IndexError(fmt::format("there is no such example; the data set has {}", size));
      examples.push_back(dataset.get(indices[i]));
      if (!examples.back().data.defined() || !examples.back().target.defined())
        throw ValueError("get() returned an undefined tensor");
    });
  }
  return examples;
}

Batch ExampleDataset::get_batch(std::span<const int64_t> indices) const {
  return collate(get_examples(*this, indices), indices, *this);
}

std::string current_error_text() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

void rethrow_naming(const Dataset& dataset, int64_t index) {
  std::throw_with_nested(ExampleError(
      fmt::format("example {} of {}: {}", index, dataset.name(), current_error_text())));
}

Batch collate(std::span<const Example> examples) {
  return join(examples, [](size_t place) { return std::to_string(place); });
}
Batch collate(std::span<const Example> examples, std::span<const int64_t> indices,
              const Dataset& dataset) {
  return join(examples, [&](size_t place) {
    return place ? fmt::format("{} of {}", indices[place], dataset.name())
                 : fmt::format("{}", indices[place]);
  });
}

}  // namespace tenon::data
