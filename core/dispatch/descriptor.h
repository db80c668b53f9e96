// The parts of a call that a plan depends on: types, shapes and strides, no tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tenon/core/dispatch/attrs.h>
#include <tenon/core/dtype.h>
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
  int64_t numel;

  uint64_t bytes() const { return static_cast<uint64_t>(numel) * size_of(dtype); }
};
TensorDesc describe(const TensorImpl& tensor);
// Whether several elements are one place in memory, as in an expanded tensor: it must not be
// changed in place.
bool shares_places(const Shape& shape, const Strides& strides);
// The input that `out` is, value for value in memory, or -1.
int32_t alias_of(const Tensor& out, std::span<const Tensor* const> inputs);

// How an output comes to be: as a tensor of its own, as an input that is changed, or not at all.
enum class OutputKind : uint8_t { made, in_place, absent };

// A call without its tensors. Plans keep theirs.
struct CallDesc {
  const Op* op = nullptr;
  Attrs attrs;
  size_t num_scalars = 0;
  uint32_t wanted = ~0u;
  std::vector<std::optional<TensorDesc>> inputs;
  std::optional<Shape> shape;     // of output 0, where it is given
  std::optional<TensorDesc> out;  // the given output of run_into …
  int32_t out_input = -1;         // … and the input that it is, value for value in memory, or -1
  bool flat = false;              // one dimension stands for whatever shape all tensors have

  // `common` as of common_shape in plan_cache.h.
  CallDesc(const Call& call, const Shape* common);
  // The shape of all tensors of a flat call.
  const Shape& shape_of_all() const;
};

}  // namespace tenon
