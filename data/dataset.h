// What a data set is: numbered examples that come in batches.
#pragma once

#include <cstdint>
#include <span>

#include <tenon/core/tensor.h>

namespace tenon::data {

// One example, or with a leading dimension more, many.
struct Example {
  Tensor data;
  Tensor target;
};
struct Batch {
  Tensor data;    // (N, …)
  Tensor target;  // (N, …), most often (N) class numbers as i64
  int64_t size() const { return data.size(0); }
};

// Derive from this for examples of your own; `get_batch` is called by several threads at once.
// Tensors are on cpu:0.
class TENON_API Dataset {
 public:
  virtual ~Dataset();
  virtual int64_t size() const = 0;
  // The examples of these indices, in this order. IndexError where one is not in [0, size()).
  virtual Batch get_batch(std::span<const int64_t> indices) const = 0;

  // One example, without the leading dimension.
  Example get(int64_t index) const;
};

// Puts single examples one after the other, for data sets that make them one by one. ShapeError or
// DTypeError names the first that differs from the one in front; ValueError where there are none.
TENON_API Batch collate(std::span<const Example> examples);

}  // namespace tenon::data
