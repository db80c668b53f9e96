// What poolings of lines, planes and volumes share (core/ops/pooling.h). Operators pool planes; a
// line is a plane of one row, and a volume is pooled over its planes, then over its depth.
#pragma once

#include <string>

#include <tenon/core/dispatch/op.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Windows over the last one to three dimensions, with a number for each.
struct PoolWindows {
  Shape kernel, stride, padding, dilation;
  bool ceil_mode = false;

  PoolWindows() = default;
  explicit PoolWindows(const Attrs& attrs);
  // Throws a ValueError for numbers outside their ranges.
  template <class Size>
  PoolWindows(const char* op, const Size& kernel, const Size& stride, const Size& padding,
              const Size& dilation, bool ceil_mode)
      : kernel(kernel.shape()),
        stride(stride.given() ? stride.shape() : kernel.shape()),
        padding(padding.shape()),
        dilation(dilation.shape()),
        ceil_mode(ceil_mode) {
    check(op);
  }
  size_t dims() const { return kernel.size(); }
  Attrs attrs() const;
  // Whether every element is a window of its own.
  bool are_elements() const;
  // Windows over planes whose height and width are these of the dimensions; -1: of one element.
  PoolWindows over(int height, int width) const;
  // Puts the number of windows in the place of each size of x. Returns why they do not fit, or "".
  std::string count(Shape& x, bool dilated) const;
  // Throws it as a ShapeError.
  void require_fit(const char* op, const Shape& x) const;

 private:
  void check(const char* op) const;
};

// The shape of what an operator pools from planes, whose windows are its attributes; with the
// attribute `dilation`, if `dilated`.
Shape pooled_shape(Infer& infer, bool dilated);

// Returns "the planes of an input of shape (2, 3, 0, 5)"; of 1 or 3 dimensions, lines or volumes.
std::string described_planes(size_t dims, const Shape& x);

// Checks the dtype and the number of dimensions of the input of a pooling over the last `dims`, and
// returns it with a batch dimension.
Tensor batched(const char* op, const Tensor& x, size_t dims);
// Throws a ShapeError if one of the last `dims` dimensions of x is empty.
void require_elements(const char* op, const Tensor& x, size_t dims);
// Returns y without the batch dimension, if x had none.
Tensor unbatched(const Tensor& y, const Tensor& x);

// Poolings of planes (n, c, h, w). Indices are those in a plane, and undefined unless wanted.
ValuesIndices max_planes(const Tensor& x, const PoolWindows& windows, bool indices);
Tensor average_planes(const Tensor& x, const PoolWindows& windows, bool count_include_pad);

// The indices in volumes (n, c, d, h, w) of what was chosen first from each plane, at the places
// `inner` (n, c d, h', w'), and then from all planes, at the places `outer` (n, c, d', h' w').
Tensor join_indices(const Tensor& inner, const Tensor& outer, const Shape& volumes);

// Pools x, of any dimensions, over these windows.
ValuesIndices max_pool(const char* op, const Tensor& x, const PoolWindows& windows, bool indices);

}  // namespace tenon
