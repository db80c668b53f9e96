// The interface of data sets: numbered examples, which are read in batches.
#pragma once

#include <cstdint>
#include <span>

#include <tenon/core/tensor.h>

namespace tenon::data {

// One example.
struct Example {
  Tensor data;
  Tensor target;
};
// Several examples, with one more dimension in front.
struct Batch {
  Tensor data;    // (N, …)
  Tensor target;  // (N, …), usually (N) class numbers as i64
  // Returns the number of examples N.
  int64_t size() const { return data.size(0); }
};

// Derive from this class for your own examples. Several threads call `get_batch` at the same time.
// The tensors are on cpu:0.
class TENON_API Dataset {
 public:
  virtual ~Dataset();
  // Returns the number of examples.
  virtual int64_t size() const = 0;
  // Returns the examples with these indices, in this order. Throws an IndexError for an index
  // outside [0, size()).
  virtual Batch get_batch(std::span<const int64_t> indices) const = 0;

  // Returns one example, without the leading dimension. Errors are those of get_batch.
  Example get(int64_t index) const;
};

// Joins examples to a batch, for data sets that make them one by one. Throws a ShapeError or
// DTypeError that names the first example that differs from example 0, and a ValueError if there
// are no examples.
TENON_API Batch collate(std::span<const Example> examples);

}  // namespace tenon::data
