// The interface of data sets: numbered examples, which are read in batches.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon::data {

// One example: what a model gets, and what it should make of it.
struct Example {
  Tensor data;
  Tensor target;
};
// Several examples, with one more dimension in front: data (N, …) and target (N, …), usually (N)
// class numbers as i64.
struct Batch {
  Tensor data;
  Tensor target;
  // Returns the number of examples N.
  int64_t size() const { return data.size(0); }
};

// Numbered examples. Derive from this class for a data set that makes batches at once, and from
// ExampleDataset for one that makes examples one by one. Several threads call `get_batch` at the
// same time. The tensors are on cpu:0. reading() in <tenon/data/reading.h> says for which epoch
// they are read.
class TENON_API Dataset {
 public:
  virtual ~Dataset();
  // Returns the number of examples.
  virtual int64_t size() const = 0;
  // Returns the examples with these indices, in this order. Throws an IndexError for an index
  // outside [0, size()).
  virtual Batch get_batch(std::span<const int64_t> indices) const = 0;

  // Returns one example, without the leading dimension. Errors are those of get_batch.
  virtual Example get(int64_t index) const;
  // Returns what errors call this data set; by default the name of its class,
  // without namespaces.
  virtual std::string name() const;
};

// The base of a data set that makes examples one by one: derive from it and write size() and get().
class TENON_API ExampleDataset : public Dataset {
 public:
  // Returns one example.
  Example get(int64_t index) const override = 0;
  // Collates the examples with these indices. An exception that get() throws becomes a DataError
  // that names the example and the data set, with the cause nested. Other errors are those of
  // collate.
  Batch get_batch(std::span<const int64_t> indices) const override;
};

// Returns the examples with these indices one by one, each read at its place (Reading::place).
// Errors are those of ExampleDataset.
TENON_API std::vector<Example> get_examples(const Dataset& dataset,
                                            std::span<const int64_t> indices);

// Joins examples to a batch, for data sets that make them one by one. Throws a ShapeError or
// DTypeError that names the first example that differs from example 0, and a ValueError if there
// are no examples.
TENON_API Batch collate(std::span<const Example> examples);

}  // namespace tenon::data
