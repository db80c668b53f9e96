// What strides say of a tensor: its format, whether it has gaps, and the order of its dimensions in
// memory. The rules are PyTorch's (c10/core/MemoryFormat.h, aten/src/ATen/TensorIterator.cpp).
#pragma once

#include <span>

#include <tenon/core/memory_format.h>
#include <tenon/core/shape.h>

namespace tenon {

// "channels_last".
const char* name_of(MemoryFormat format);
// The number of dimensions of tensors in a format that moves the channels; 0 for any other.
size_t rank_of(MemoryFormat format);
inline bool moves_channels(MemoryFormat format) { return rank_of(format) != 0; }

// Returns whether a tensor with these strides is in the format, without gaps. Strides of dimensions
// of size 1 do not count, so that it may be in several formats.
bool has_format(const Shape& shape, const Strides& strides, MemoryFormat format);
// Returns the one format that the strides mean, those of dimensions of size 1 included: a format of
// channels only if it cannot be contiguous_format as well. Gaps do not matter.
MemoryFormat suggested_format(const Shape& shape, const Strides& strides);
// Returns the dimensions of a tensor in the format, outermost first.
Shape order_of(size_t rank, MemoryFormat format);
// Returns the strides of a tensor of `shape` in the format, which must not be preserve_format.
Strides strides_in(const Shape& shape, MemoryFormat format);
// Throws a ShapeError "<op>: …" unless tensors of `shape` can be in the format.
void require_rank(const char* op, const Shape& shape, MemoryFormat format);

// The dimensions of more than one element, that of the smallest stride first.
struct DimsByStride {
  size_t dims[Shape::max_rank];
  size_t count = 0;
  DimsByStride(const Shape& shape, const Strides& strides);
};

// Returns whether there are neither gaps between the elements nor several at one place, in whatever
// order the dimensions are.
bool is_dense(const Shape& shape, const Strides& strides);

// Returns the dimensions of `shape`, outermost first, in the order in which a new tensor has them
// that is computed from `operands`, the strides of tensors of that shape (0 where one is
// broadcast): the first that tells two dimensions apart decides.
Shape memory_order(const Shape& shape, std::span<const Strides> operands);
// Returns the strides of a tensor without gaps whose dimensions are in this order.
Strides strides_in_order(const Shape& shape, const Shape& order);
// Returns strides that read a tensor as if it had the shape `expanded`: 0 for dimensions that
// broadcasting adds.
Strides expanded_strides(const Shape& shape, const Strides& strides, const Shape& expanded);
// Returns the strides of a copy of a tensor that keeps its order but not its gaps.
Strides preserved_strides(const Shape& shape, const Strides& strides);

}  // namespace tenon
