// The part of a call on which a plan depends: dtypes, shapes and strides, but no tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tenon/core/dispatch/attrs.h>
#include <tenon/core/dtype.h>
#include <tenon/core/memory_format.h>
#include <tenon/core/shape.h>

namespace tenon {

struct Op;
struct Call;
class Tensor;
struct TensorImpl;

struct TensorDesc {
  DType dtype;
  Shape shape;
  Strides strides;
  bool contiguous;
  MemoryFormat format;  // that the strides mean
  int64_t numel;

  uint64_t bytes() const { return static_cast<uint64_t>(numel) * size_of(dtype); }
};
TensorDesc describe(const TensorImpl& tensor);
// The same for a tensor that need not exist.
TensorDesc describe(DType dtype, const Shape& shape, const Strides& strides);
// Returns whether several elements may share one place in memory, as in an expanded tensor or in
// windows that overlap. Such a tensor must not be changed in place. The answer is false only where
// the steps along each dimension lead past everything that the dimensions of smaller strides reach,
// as in all views of a tensor without overlaps but windows; strides such as (3, 2) of shape (2, 3)
// count as overlapping, although they are not.
bool elements_overlap(const Shape& shape, const Strides& strides);
// Returns the index of the input that is the same memory as `out`, element for element, or -1.
int32_t alias_of(const Tensor& out, std::span<const Tensor* const> inputs);

// How an output is made: as a new tensor, as an input that is changed in place, or not at all.
enum class OutputKind : uint8_t { made, in_place, absent };

// A call without its tensors. Each plan keeps the one for which it was made.
struct CallDesc {
  const Op* op = nullptr;
  Attrs attrs;
  size_t num_scalars = 0;
  uint32_t wanted = ~0u;
  std::vector<std::optional<TensorDesc>> inputs;
  std::optional<Shape> shape;             // the shape of output 0, if it is given
  MemoryFormat format = preserve_format;  // that of Call
  std::optional<TensorDesc> out;          // the given output of run_into …
  int32_t out_input = -1;                 // … and the input with the same memory, or -1
  bool flat = false;  // all tensors have one shape, which counts as one dimension

  CallDesc() = default;
  // `common` is the result of common_layout in plan_cache.h.
  CallDesc(const Call& call, const TensorImpl* common);
  // Returns the shape of all tensors of a flat call.
  const Shape& shape_of_all() const;
};

}  // namespace tenon
