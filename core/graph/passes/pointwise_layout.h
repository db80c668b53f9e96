// How the tensors of a pointwise node lie, told in the order of the result in memory: so the result
// is row-major, and nodes that name the same elements by other shapes can be compared.
#pragma once

#include <optional>
#include <vector>

#include <tenon/core/graph/trace.h>

namespace tenon::graph {

struct PointwiseLayout {
  Shape shape;                   // without dimensions of size 1
  std::vector<Strides> strides;  // of the inputs over that shape; 0 where one repeats
};

// Returns nothing for a node whose only result leaves gaps in memory, or that is not pointwise.
std::optional<PointwiseLayout> pointwise_layout(const TraceNode& node);
// The layout of a reduction of the rows of a row-major tensor: (rows, elements of a row).
PointwiseLayout row_layout(const TensorDesc& operand);

// Returns the shape whose dimensions make up those of both shapes, which have the same number of
// elements: (2, 12) and (6, 4) give (2, 3, 4). Nothing if there is none of at most eight
// dimensions.
std::optional<Shape> common_refinement(const Shape& a, const Shape& b);
// Returns the strides over a refinement of `shape`.
Strides refined_strides(const Shape& shape, const Strides& strides, const Shape& refinement);
// Puts neighbouring dimensions together that all these strides go through in one step.
void merge_dimensions(Shape& shape, std::vector<Strides>& strides);

}  // namespace tenon::graph
